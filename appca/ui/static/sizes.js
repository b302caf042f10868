/** While K or L moves, show the number and tell the page as often as it can follow; keep the focus. */

const BUSY = '[data-test-script-state]:not([data-test-script-state="notRunning"])';
const EVERY = 60; // milliseconds
const WIDGET = /\bst-key-([kl](?:_typed)?)-\d/;

/** @type {HTMLInputElement | null} */ let input = null;
let [told, drawn, held] = ['', '', '']; // held: which widget has the focus
let timer = 0;
/** @type {Function} */ let send = () => {};
/** @type {AbortController | null} */ let leaving = null;

/** @param {EventTarget | null} target */
function widgetOf(target) {
  const place = /** @type {Element | null} */ (target)?.closest?.('.st-key-bar_sizes > *');
  return WIDGET.exec(place?.className ?? '')?.[1] ?? '';
}

/** Show K and L under the hand in their fields and in the status line; L pushes K up before it, K pushes L down. @param {string} moved @param {number} value */
function write(moved, value) {
  for (const name of ['k', 'l']) {
    const field = /** @type {HTMLElement | null} */ (
      document.querySelector(`.st-key-bar_sizes > [class*="st-key-${name}_typed-"]`)
    );
    const current = Number(field?.querySelector('input')?.value);
    if (!field) continue;
    const pushed = moved === 'l' ? Math.max(current, value) : Math.min(current, value);
    const now = String(name === moved ? value : pushed);
    field.dataset.hand = now;
    const said = document.querySelector(`.ca-side .ca-size-${name}`);
    if (said) said.textContent = (said.textContent ?? '').replace(/\d+$/, now);
  }
}

function show() {
  if (!input || input.value === drawn) return;
  drawn = input.value;
  write(widgetOf(input), Number(drawn));
}

function tell() {
  if (!input || input.value === told || document.querySelector(BUSY)) return;
  told = input.value;
  send('moving', { size: widgetOf(input), value: Number(told) });
}

// The slider tells of its moves only by how it is drawn: while a key is held, too, and before the next frame.
const moves = new MutationObserver(show);

/** @param {Event} event */
function down({ target, type }) {
  if (type === 'pointerdown') held = '';
  const widget = /** @type {Element} */ (target).closest('.st-key-bar_sizes > *');
  /** @type {HTMLInputElement | null | undefined} */ const slider =
    widget?.querySelector('[type=range]');
  if (!slider || (type === 'keydown' && input)) return;
  input = slider;
  told = drawn = input.value;
  clearInterval(timer);
  moves.observe(input, { attributes: true, attributeFilter: ['aria-valuetext'] });
  if (type === 'pointerdown') timer = setInterval(tell, EVERY); // a key's value goes to the page at once
}

function up() {
  if (!input) return;
  requestAnimationFrame(() => {
    // the slider has moved by then
    clearInterval(timer);
    moves.disconnect();
    if (!input?.isConnected) send('moving', null); // the page has replaced it: nobody takes its value over
    input = null;
  });
}

/** A size that was set otherwise, as by Undo, is another widget: it takes over the focus of the last one. */
function focusAgain() {
  if (!held || document.activeElement !== document.body) return;
  for (const place of document.querySelectorAll('.st-key-bar_sizes > *'))
    if (WIDGET.exec(place.className)?.[1] === held) place.querySelector('input')?.focus();
}

function listen() {
  const { signal } = (leaving = new AbortController());
  for (const type of ['pointerdown', 'keydown'])
    document.addEventListener(type, down, { capture: true, signal });
  for (const type of ['pointerup', 'keyup'])
    document.addEventListener(type, up, { capture: true, signal });
  document.addEventListener('focusin', ({ target }) => (held = widgetOf(target)), { signal });
}

/** What Streamlit calls at every change of the sizes and of the theme. @param {{setTriggerValue: Function}} call */
export default function follow({ setTriggerValue }) {
  send = setTriggerValue;
  if (!leaving) listen();
  setTimeout(focusAgain, EVERY); // the widgets are there by then
  return () => {
    leaving?.abort();
    moves.disconnect();
    leaving = input = null; // a key that is down when the page is left is released elsewhere
    clearInterval(timer);
  };
}
