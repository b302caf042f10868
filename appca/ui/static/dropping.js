/** Upload files that are dropped on the window or chosen, one by one, and then notify the page. */

const AT_ONCE = 4; // number of simultaneous uploads
const OPENER = '[class*="st-key-upload-"]'; // the uploader on the page Data; other uploaders handle their own files
const instances = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const instance = instances.get(parentElement) ?? listen(parentElement);
  Object.assign(instance, { data, tell: setTriggerValue });
  return () => {
    instance.stop();
    instances.delete(parentElement);
  };
}

/** Handle events before the page does, because Streamlit's uploader sends all files at once and silently loses some if there are many. */
function listen(parent) {
  const place = parent.querySelector('.ca-drop');
  const instance = { data: null, tell: () => {}, busy: false };
  const takes = (event) => {
    const box = event.target.closest?.('section:has([type=file])');
    if (instance.busy || (box && !box.closest(OPENER))) return false;
    return event.dataTransfer?.types.includes('Files');
  };
  const say = (state, text) => {
    place.dataset.state = state;
    place.textContent = text;
  };
  const over = (event) => {
    if (!takes(event)) return instance.busy || say('', '');
    event.preventDefault();
    if (place.dataset.state !== 'over') say('over', 'Drop to open');
  };
  const leave = (event) => {
    if (!event.relatedTarget && !instance.busy) say('', '');
  };
  /** Refuse large files before Streamlit's uploader does, whose message is unclear. @param {Event} event @param {FileList} files */
  const keepSmall = (event, files) => {
    try {
      checkSizes(files, instance.data);
    } catch (error) {
      event.preventDefault();
      event.stopImmediatePropagation();
      instance.tell('refused', error.message);
    }
  };
  const drop = (event) => {
    if (!takes(event)) {
      if (event.dataTransfer?.files.length) keepSmall(event, event.dataTransfer.files);
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    const entries = [...event.dataTransfer.items]
      .map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile())
      .filter(Boolean);
    open(async () => (await Promise.all(entries.map((entry) => filesOf(entry)))).flat());
  };
  const change = (event) => {
    if (event.target.type !== 'file' || instance.busy) return;
    if (!event.target.closest(OPENER)) return keepSmall(event, event.target.files);
    event.stopImmediatePropagation();
    const named = (file) => ({ name: file.webkitRelativePath || file.name, file });
    const files = [...event.target.files].map(named);
    event.target.value = '';
    open(async () => files);
  };
  const open = async (chosen) => {
    instance.busy = true;
    try {
      const files = await chosen();
      const many = `${files.length.toLocaleString('en')} files`;
      say('busy', `Opening ${files.length === 1 ? files[0].name : many}`);
      instance.tell('dropped', await send(files, instance.data));
    } catch (error) {
      instance.tell('refused', error.message);
    }
    instance.busy = false;
    say('', '');
  };
  const listening = new AbortController();
  const handlers = { dragover: over, dragleave: leave, drop, change };
  for (const [name, act] of Object.entries(handlers))
    window.addEventListener(name, act, { capture: true, signal: listening.signal });
  instance.stop = () => listening.abort();
  instances.set(parent, instance);
  return instance;
}

/** Return the files of an entry; those of a folder have their paths as names. */
async function filesOf(entry, path = '') {
  if (entry instanceof File) return [{ name: entry.name, file: entry }];
  const name = path + entry.name;
  if (entry.isFile) return [{ name, file: await new Promise((...ends) => entry.file(...ends)) }];
  const reader = entry.createReader();
  const more = () => new Promise((...ends) => reader.readEntries(...ends)); // returns at most a hundred entries
  const files = [];
  for (let some = await more(); some.length; some = await more()) {
    const seen = some.filter((child) => !child.name.startsWith('.') || /\.zarr(\/|$)/.test(name));
    files.push(...(await Promise.all(seen.map((child) => filesOf(child, `${name}/`)))).flat());
  }
  return files;
}

/** Refuse a file that the server would not accept, before it is sent. @param {Iterable<{name: string, size: number}>} files @param {{largest: number}} limits */
function checkSizes(files, { largest }) {
  const large = [...files].find(({ size }) => size > largest);
  if (!large) return;
  const mb = (/** @type {number} */ bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
  throw new Error(
    `“${large.name}” has ${mb(large.size)}; the limit is ${mb(largest)}, so use a smaller file.`,
  );
}

/** Upload the files; return the name of the drop. */
async function send(files, { at, key, digits, most, largest }) {
  if (!files.length) throw new Error('The drop contains no file; drop at least one file.');
  if (files.length > most)
    throw new Error(
      `${files.length} files were dropped, and the limit is ${most}; drop a ZIP file of them.`,
    );
  const sizes = files.map(({ name, file: { size } }) => ({ name, size }));
  checkSizes(sizes, { largest });
  const random = crypto.getRandomValues(new Uint8Array(digits / 2));
  const drop = Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('');
  const waiting = [...files];
  const next = async () => {
    for (let entry = waiting.shift(); entry; entry = waiting.shift()) {
      const headers = { 'X-Appca-Key': key, 'X-Appca-Name': encodeURIComponent(entry.name) };
      const answer = await fetch(at + drop, { method: 'POST', headers, body: entry.file });
      if (answer.ok) continue;
      waiting.length = 0;
      const { refused } = [411, 413].includes(answer.status)
        ? await answer.json()
        : { refused: 'The page is no longer connected; reload it and drop the file again.' };
      throw new Error(refused);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return drop;
}
