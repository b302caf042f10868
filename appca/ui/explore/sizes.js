/** While a slider of K or L moves, tell the canvas over which number, and the page as often as it can follow. */

const BUSY = '[data-test-script-state]:not([data-test-script-state="notRunning"])';
const EVERY = 60; // milliseconds

/** @param {{setTriggerValue: Function}} call */
export default function follow({ setTriggerValue }) {
  /** @type {HTMLInputElement | null} */
  let input = null;
  let [told, drawn] = ['', ''];
  let timer = 0;
  const tell = () => {
    if (!input) return;
    const { value } = input;
    const size = input.closest('.st-key-k') ? 'k' : 'l';
    if (value !== drawn) document.dispatchEvent(new CustomEvent('appca-size', { detail: `${size} ${value}` }));
    drawn = value;
    if (value === told || document.querySelector(BUSY)) return;
    told = value;
    setTriggerValue('moving', { size, value: Number(value) });
  };
  /** @param {Event} event */
  const down = ({ target, type }) => {
    const slider = /** @type {Element} */ (target).closest('.st-key-bar_sizes .stSlider');
    if (!slider || (type === 'keydown' && input)) return;
    input = slider.querySelector('input[type="range"]');
    told = drawn = input?.value ?? '';
    clearInterval(timer);
    timer = setInterval(tell, EVERY);
  };
  const up = () => {
    if (!input) return;
    requestAnimationFrame(() => { // the slider has moved by then
      tell();
      clearInterval(timer);
      input = null;
    });
  };
  const leaving = new AbortController();
  for (const type of ['pointerdown', 'keydown']) document.addEventListener(type, down, { capture: true, signal: leaving.signal });
  // A key moves it at once. Not while capturing: React, drawn anew before it has heard, sets the slider back.
  document.addEventListener('input', tell, { signal: leaving.signal });
  for (const type of ['pointerup', 'keyup']) document.addEventListener(type, up, { capture: true, signal: leaving.signal });
  return () => {
    leaving.abort();
    clearInterval(timer);
  };
}
