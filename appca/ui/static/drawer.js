/** In a narrow window the drawer is a strip of its tabs: one opens it over the picture, and closes it again. */

const ROOM = 1000; // pixels of the window from which on it is always open

export default function follow() {
  const body = document.body;
  /** @param {MouseEvent} event */
  const press = (event) => {
    const at = /** @type {Element} */ (event.target);
    const tab = at.closest('.st-key-drawer_tab [role="radio"]');
    if (tab && innerWidth < ROOM) {
      const shut = body.dataset.drawer === 'open' && tab.getAttribute('aria-checked') === 'true';
      body.dataset.drawer = shut ? 'shut' : 'open';
    } else if (at.closest('.st-key-explore_canvas')) body.dataset.drawer = 'shut';
  };
  /** @param {KeyboardEvent} event */
  const key = (event) => {
    if (event.key === 'Escape') body.dataset.drawer = 'shut';
  };
  const leaving = new AbortController();
  document.addEventListener('click', press, { capture: true, signal: leaving.signal });
  document.addEventListener('keydown', key, { signal: leaving.signal });
  return () => leaving.abort();
}
