/** In a narrow window the drawer is a strip of its tabs: one opens it over the picture, and closes it again. */

const ROOM = 1000; // pixels of the window from which on it is always open

let listens = false;

/** @param {MouseEvent} event */
function press(event) {
  const { body } = document;
  const at = /** @type {Element} */ (event.target);
  const tab = at.closest('.st-key-drawer_tab [role="radio"]');
  if (tab && innerWidth < ROOM) {
    const shut = body.dataset.drawer === 'open' && tab.getAttribute('aria-checked') === 'true';
    body.dataset.drawer = shut ? 'shut' : 'open';
  } else if (at.closest('.st-key-explore_canvas')) body.dataset.drawer = 'shut';
}

/** Streamlit calls this again at each change of the theme, and does not end what the call before began. */
export default function follow() {
  if (listens) return;
  listens = true;
  document.addEventListener('click', press, { capture: true });
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') document.body.dataset.drawer = 'shut';
  });
}
