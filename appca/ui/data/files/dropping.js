/** Files dropped anywhere on the window go to the server one by one; then the page is told. */

const AT_ONCE = 4; // files on the way
const instances = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  const own = instances.get(parentElement) ?? listen(parentElement);
  Object.assign(own, { data, tell: setTriggerValue });
  return () => {
    own.stop();
    instances.delete(parentElement);
  };
}

/** Listen for files over the window; what lies over an uploader of the page is that one's. */
function listen(parent) {
  const place = parent.querySelector('.ca-drop');
  const own = { data: null, tell: () => {}, busy: false };
  const takes = (event) => !own.busy && event.dataTransfer?.types.includes('Files') && !event.target.closest?.('[data-testid=stFileUploaderDropzone]');
  const say = (state, text) => {
    if (state) place.dataset.state = state;
    else delete place.dataset.state;
    place.textContent = text;
  };
  const over = (event) => {
    if (!takes(event)) return own.busy || say('', '');
    event.preventDefault();
    if (place.dataset.state !== 'over') say('over', 'Drop to open');
  };
  const leave = (event) => { if (!event.relatedTarget && !own.busy) say('', ''); };
  const drop = async (event) => {
    if (!takes(event)) return;
    event.preventDefault();
    own.busy = true;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile()).filter(Boolean);
    try {
      const files = (await Promise.all(entries.map((entry) => filesOf(entry)))).flat();
      say('busy', files.length === 1 ? `Opening ${files[0].name}` : `Opening ${files.length.toLocaleString('en')} files`);
      own.tell('dropped', await send(files, own.data));
    } catch (error) {
      own.tell('refused', error.message);
    }
    own.busy = false;
    say('', '');
  };
  const handlers = { dragover: over, dragleave: leave, drop };
  for (const [name, act] of Object.entries(handlers)) window.addEventListener(name, act);
  own.stop = () => { for (const [name, act] of Object.entries(handlers)) window.removeEventListener(name, act); };
  instances.set(parent, own);
  return own;
}

/** The files of an entry, those of a folder under their path. */
async function filesOf(entry, path = '') {
  if (entry instanceof File) return [{ name: entry.name, file: entry }];
  const name = path + entry.name;
  if (entry.isFile) return [{ name, file: await new Promise((done, failed) => { entry.file(done, failed); }) }];
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader gives a hundred entries at a time
    const part = await new Promise((done, failed) => { reader.readEntries(done, failed); });
    if (!part.length) break;
    found.push(...part.filter((one) => !one.name.startsWith('.')));
  }
  return (await Promise.all(found.map((one) => filesOf(one, `${name}/`)))).flat();
}

/** Send the files, and return the name under which they wait. */
async function send(files, { at, key, digits, most }) {
  if (!files.length) throw new Error('There is no file in what was dropped; drop at least one.');
  if (files.length > most) throw new Error(`${files.length} files were dropped, more than the ${most} of a drop; give one zip of them.`);
  const drop = Array.from(crypto.getRandomValues(new Uint8Array(digits / 2)), (byte) => byte.toString(16).padStart(2, '0')).join('');
  const waiting = [...files];
  const next = async () => {
    for (let one = waiting.shift(); one; one = waiting.shift()) {
      const headers = { 'X-Appca-Key': key, 'X-Appca-Name': encodeURIComponent(one.name) };
      const answer = await fetch(at + drop, { method: 'POST', headers, body: one.file });
      if (answer.ok) continue;
      waiting.length = 0;
      const { refused } = answer.status === 413 ? await answer.json() : { refused: 'The page is no longer connected; reload it and drop the file again.' };
      throw new Error(refused);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
  return drop;
}
