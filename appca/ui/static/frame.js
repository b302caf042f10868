/**
 * Functions of the frame that need the browser: keys for undo and redo, a Back button that undoes,
 * and the drawer of a narrow window. Streamlit adds an entry to the browser's history with every
 * change of the address; here only another page, tab or step adds one.
 */
const TYPED =
  'input:not([type=range], [type=checkbox], [type=radio]), textarea, select, [contenteditable=true]';
const DRAWN = 3000; // ms in which a first page without many rows is drawn
const BUSY = '[data-test-script-state=running], .appca-canvas-box:not([data-settled=yes])';

const ROOM = 1000; // minimum width of the window in px for a permanently open drawer

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

/** Load the code of widgets, charts (4.7 MB) and tables in advance, once the page is drawn and nothing moves. */
function loadAhead(modules) {
  const script = document.querySelector('script[type=module][src*="static/js/"]');
  const idle = () => new Promise((now) => (window.requestIdleCallback ?? setTimeout)(now)); // Safari lacks requestIdleCallback
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

/** Start once: Streamlit calls this again after each change of the theme, without removing the earlier listeners. */
export default function frame({ data, setTriggerValue }) {
  const isFirst = !tell;
  tell = setTriggerValue;
  if (!isFirst) return;
  watchHistory();
  window.appcaBase = data?.base || '/'; // base path of all pages of this server
  if (data?.picture) import(`${data.base}/canvas/${data.picture}`).catch(() => {}); // loads while the server computes the page
  loadAhead(data?.ahead ?? []);
  window.addEventListener('keydown', onKey);
  document.addEventListener('click', press, { capture: true });
  window.addEventListener('pagehide', remember);
}
