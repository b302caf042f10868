/**
 * What the frame asks of the browser itself: keys for undo and redo, a Back that undoes, and the drawer of a narrow window.
 * Streamlit adds an entry to the browser's history with every change of the address. Here only
 * another page, tab or step is one; all else takes the place of the present entry.
 */
const TYPED =
  'input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable=true]';
const DRAWN = 3000; // milliseconds until the first page has been drawn, if it has not many rows
const BUSY = '[data-test-script-state=running], .appca-canvas-box:not([data-settled=yes])';

const ROOM = 1000; // pixels of the window from which on the drawer is always open

function isAnotherPlace(url) {
  const [from, to] = [new URL(location.href), new URL(url ?? '', location.href)];
  const changed = (name) =>
    ![null, to.searchParams.get(name)].includes(from.searchParams.get(name));
  return from.pathname !== to.pathname || changed('step') || changed('tab');
}

function watchHistory() {
  const push = history.pushState.bind(history);
  history.pushState = (state, title, url) => {
    isAnotherPlace(url) ? push(state, title, url) : history.replaceState(state, title, url);
    remember();
  };
}

/** In a narrow window the drawer is a strip of tabs: a tab opens it over the picture, or closes it again. @param {MouseEvent} event */
function press({ target }) {
  const { dataset } = document.body;
  const tab = target.closest('.st-key-drawer_tab [role="radio"]');
  if (tab && innerWidth < ROOM) {
    const shut = dataset.drawer === 'open' && tab.getAttribute('aria-checked') === 'true';
    dataset.drawer = shut ? 'shut' : 'open';
  } else if (target.closest('.st-key-explore_canvas')) dataset.drawer = 'shut';
}

/** Remember the open work in this browser, so that the bare address opens it again. */
function remember() {
  const here = new URL(location.href).searchParams;
  const kept = new URLSearchParams();
  for (const name of ['data', 'run', 'k', 'l']) if (here.has(name)) kept.set(name, here.get(name));
  if (!kept.has('data')) return;
  document.cookie = `appca_last=${encodeURIComponent(kept)}; path=${window.appcaBase}; max-age=31536000; SameSite=Strict`;
}

/** Run the code of widgets, charts (4.7 MB) and tables when the page has been drawn and nothing moves: the first page with one waits for it else. */
function loadAhead(modules) {
  const script = document.querySelector('script[type=module][src*="static/js/"]');
  const idle = () => new Promise((now) => (window.requestIdleCallback ?? setTimeout)(now)); // Safari has none
  const load = async () => {
    if (document.querySelector(BUSY)) return setTimeout(load, DRAWN);
    for (const name of script ? modules : []) {
      await idle();
      await import(new URL(name, script.src).href).catch(() => {});
    }
  };
  setTimeout(load, DRAWN);
}

/** @type {Function | null} */ let tell = null;

/** @param {KeyboardEvent} event */
function onKey(event) {
  const at = document.activeElement;
  if (event.key === 'Escape') document.body.dataset.drawer = 'shut';
  if (/^[1-9]$/.test(event.key) && !event.ctrlKey && !event.metaKey && !event.altKey) {
    if (at === document.body || at.matches('.appca-hit'))
      document.querySelectorAll('nav li a')[event.key - 1]?.click();
    return;
  }
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target.closest?.(TYPED)) return;
  const key = event.key.toLowerCase();
  if (key !== 'z' && !(key === 'y' && !event.shiftKey)) return;
  event.preventDefault();
  tell(key === 'y' || event.shiftKey ? 'redo' : 'undo', true);
}

/** Streamlit calls this again after each change of the theme, without ending the earlier call's listeners. */
export default function frame({ data, setTriggerValue }) {
  const isFirst = !tell;
  tell = setTriggerValue;
  if (!isFirst) return;
  watchHistory();
  window.appcaBase = data?.base || '/'; // below it are all pages of this server
  if (data?.picture) import(`${data.base}/canvas/${data.picture}`).catch(() => {}); // while it is computed
  loadAhead(data?.ahead ?? []);
  window.addEventListener('keydown', onKey);
  document.addEventListener('click', press, { capture: true });
  window.addEventListener('pagehide', remember);
}
