/** While a slider of K or L moves, tell the canvas over which number, and the page as often as it can follow. */

const BUSY = '[data-test-script-state]:not([data-test-script-state="notRunning"])';
const EVERY = 60; // milliseconds

/** @param {{setTriggerValue: Function}} call */
export default function follow({ setTriggerValue }) {
  /** @type {HTMLInputElement | null} */
  let input = null;
  let [told, drawn] = ['', ''];
  let timer = 0;
  const size = () => (input?.closest('.st-key-k') ? 'k' : 'l');
  const show = () => {
    if (!input || input.value === drawn) return;
    drawn = input.value;
    document.dispatchEvent(new CustomEvent('appca-size', { detail: `${size()} ${drawn}` }));
  };
  const tell = () => {
    show();
    if (!input || input.value === told || document.querySelector(BUSY)) return;
    told = input.value;
    setTriggerValue('moving', { size: size(), value: Number(told) });
  };
  /** @param {Event} event */
  const down = ({ target, type }) => {
    const slider = /** @type {Element} */ (target).closest('.st-key-bar_sizes .stSlider');
    if (!slider || (type === 'keydown' && input)) return;
    input = slider.querySelector('input[type="range"]');
    told = drawn = input?.value ?? '';
    clearInterval(timer);
    if (type === 'pointerdown') timer = setInterval(tell, EVERY); // a key's value goes to the page at once
  };
  const up = () => {
    if (!input) return;
    requestAnimationFrame(() => { // the slider has moved by then
      show(); // the page hears of it from the slider itself
      clearInterval(timer);
      input = null;
    });
  };
  const leaving = new AbortController();
  for (const type of ['pointerdown', 'keydown']) document.addEventListener(type, down, { capture: true, signal: leaving.signal });
  // A key moves it at once. Not while capturing: React, drawn anew before it has heard, sets the slider back.
  document.addEventListener('input', show, { signal: leaving.signal });
  for (const type of ['pointerup', 'keyup']) document.addEventListener(type, up, { capture: true, signal: leaving.signal });
  return () => {
    leaving.abort();
    clearInterval(timer);
  };
}
