/** While a slider of K or L is dragged, tell the page over which number it moves, as often as the page can follow. */

const BUSY = '[data-test-script-state]:not([data-test-script-state="notRunning"])';
const EVERY = 60; // milliseconds

/** @param {{setTriggerValue: Function}} call */
export default function follow({ setTriggerValue }) {
  /** @type {HTMLInputElement | null} */
  let input = null;
  let told = '';
  let timer = 0;
  const tell = () => {
    if (!input || input.value === told || document.querySelector(BUSY)) return;
    told = input.value;
    const size = input.closest('.st-key-k') ? 'k' : 'l';
    setTriggerValue('moving', { size, value: Number(told) });
  };
  /** @param {PointerEvent} event */
  const down = (event) => {
    const slider = /** @type {Element} */ (event.target).closest('.st-key-bar_sizes .stSlider');
    input = slider?.querySelector('input[type="range"]') ?? null;
    if (!input) return;
    told = input.value;
    timer = setInterval(tell, EVERY);
  };
  const up = () => {
    clearInterval(timer);
    input = null;
  };
  document.addEventListener('pointerdown', down, true);
  document.addEventListener('pointerup', up, true);
  return () => {
    up();
    document.removeEventListener('pointerdown', down, true);
    document.removeEventListener('pointerup', up, true);
  };
}
