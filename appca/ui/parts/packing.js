/**
 * Files that are too many for one request each go to the uploader as one zip, packed here.
 *
 * Of 1,440 images sent one by one, 29 did not arrive, and it took minutes. The zip is not compressed
 * (images are already), so all it takes is a checksum and a few bytes before and after each file.
 */

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const WIDE_END = 0x06064b50;
const WIDE_PLACE = 0x07064b50;
const MOST_16 = 0xffff;
const UTF8_NAMES = 0x0800;
const FIRST_DAY = 0x0021; // 1 January 1980 for all: the same folder makes the same zip
const AT_ONCE = 16; // files read side by side

const CRC_OF_BYTE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** The checksum that a zip keeps of a file's bytes. */
export function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_OF_BYTE[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Little-endian bytes of [width, value] pairs. */
function bytesOf(...fields) {
  const view = new DataView(new ArrayBuffer(fields.reduce((sum, [width]) => sum + width, 0)));
  let at = 0;
  for (const [width, value] of fields) {
    if (width === 2) view.setUint16(at, value, true);
    else if (width === 4) view.setUint32(at, value, true);
    else view.setBigUint64(at, BigInt(value), true);
    at += width;
  }
  return new Uint8Array(view.buffer);
}

/** What the header before a file and its line in the list at the end have in common. */
function description(name, size, crc) {
  return bytesOf(
    ...[[2, 20], [2, UTF8_NAMES], [2, 0], [2, 0], [2, FIRST_DAY]],
    ...[[4, crc], [4, size], [4, size], [2, name.length], [2, 0]],
  );
}

/** The end of a zip; beyond 65,535 files their number stands in a wider record before it. */
function ending(count, start, size) {
  const wide = bytesOf(
    ...[[4, WIDE_END], [8, 44], [2, 45], [2, 45], [4, 0], [4, 0]],
    ...[[8, count], [8, count], [8, size], [8, start]],
    ...[[4, WIDE_PLACE], [4, 0], [8, start + size], [4, 1]],
  );
  const told = Math.min(count, MOST_16);
  const plain = [[4, END], [2, 0], [2, 0], [2, told], [2, told], [4, size], [4, start], [2, 0]];
  return count >= MOST_16 ? [wide, bytesOf(...plain)] : [bytesOf(...plain)];
}

/**
 * Pack files into a zip without compressing them.
 *
 * @param {{path: string, file: Blob}[]} entries together below 4 GB
 * @param {(done: number) => void} progress
 * @returns {Promise<Blob>}
 */
export async function zipped(entries, progress = () => {}) {
  const parts = [];
  const list = [];
  let start = 0;
  for (let i = 0; i < entries.length; i += AT_ONCE) {
    const some = entries.slice(i, i + AT_ONCE);
    const contents = await Promise.all(some.map(({ file }) => file.arrayBuffer()));
    contents.forEach((content, j) => {
      const bytes = new Uint8Array(content);
      const name = new TextEncoder().encode(some[j].path);
      const told = description(name, bytes.length, crc32(bytes));
      parts.push(bytesOf([4, LOCAL]), told, name, new Blob([bytes]));
      list.push(bytesOf([4, CENTRAL], [2, 20]), told);
      list.push(bytesOf([2, 0], [2, 0], [2, 0], [4, 0], [4, start]), name);
      start += 4 + told.length + name.length + bytes.length;
    });
    progress(Math.min(i + AT_ONCE, entries.length));
  }
  const size = list.reduce((sum, part) => sum + part.length, 0);
  return new Blob([...parts, ...list, ...ending(entries.length, start, size)]);
}

/** The name of the folder that all paths share, else how many files there are. */
export function title(paths) {
  const folders = new Set(paths.map((path) => (path.includes('/') ? path.split('/')[0] : '')));
  const [only] = folders;
  return folders.size === 1 && only ? only : `${paths.length} files`;
}

/** All files below what was dropped, with their paths. */
async function below(entry) {
  if (entry.isFile) {
    const file = await new Promise((found, failed) => entry.file(found, failed));
    return [{ path: entry.fullPath.replace(/^\//, ''), file }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader gives a hundred at a time, and none at the end
    const some = await new Promise((given, failed) => reader.readEntries(given, failed));
    if (some.length === 0) return found;
    for (const inner of some) found.push(...(await below(inner)));
  }
}

const inOrder = (a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);

/** Pack what was chosen, put the zip into the uploader's field, and say meanwhile how far it is. */
async function handOver(input, chosen, limit, say) {
  try {
    const entries = (await chosen()).sort(inOrder);
    const bytes = entries.reduce((sum, { file }) => sum + file.size, 0);
    if (entries.length === 0) return say('There is no file in that folder.');
    if (bytes > limit) {
      const [has, most] = [bytes, limit].map((n) => Math.round(n / 2 ** 20).toLocaleString('en'));
      return say(`These files have ${has} MB together, more than ${most} MB; choose fewer.`);
    }
    const count = entries.length.toLocaleString('en');
    say(`Packing ${count} files into one`);
    const zip = await zipped(entries, (done) =>
      say(`Packing ${count} files into one: ${done.toLocaleString('en')} done`));
    const handed = new DataTransfer();
    const name = `${title(entries.map(({ path }) => path))}.zip`;
    handed.items.add(new File([zip], name, { type: 'application/zip' }));
    input.files = handed.files;
    input.dispatchEvent(new Event('change', { bubbles: true }));
    return say('');
  } catch (error) {
    return say(`The files cannot be read (${error.message}); choose them again, or zip them.`);
  }
}

/** Watch one uploader; what it is given beyond `most` files, and every folder, is packed. */
export default function watch({ parentElement, data }) {
  parentElement.appcaPacking?.abort(); // this function runs again when the theme changes
  const watching = new AbortController();
  parentElement.appcaPacking = watching;
  const status = parentElement.querySelector('.ca-packing');
  const say = (text) => { status.textContent = text; };
  const uploader = (event) => event.target.closest?.(`.st-key-${data.uploader}`);

  function chosen(event) {
    const input = event.target;
    if (!uploader(event) || input.type !== 'file') return;
    say('');
    if (input.files.length <= data.most) return;
    event.stopImmediatePropagation();
    const files = [...input.files];
    handOver(
      input,
      async () => files.map((file) => ({ path: file.webkitRelativePath || file.name, file })),
      data.limit,
      say,
    );
  }

  function dropped(event) {
    const box = uploader(event);
    if (!box || !event.dataTransfer) return;
    const files = [...event.dataTransfer.files]; // of a folder only itself, as an empty file
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.());
    const folders = entries.some((entry) => entry?.isDirectory);
    if (files.length <= data.most && !folders) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    handOver(
      box.querySelector('input[type=file]'),
      async () => (folders
        ? (await Promise.all(entries.filter(Boolean).map(below))).flat()
        : files.map((file) => ({ path: file.name, file }))),
      data.limit,
      say,
    );
  }

  const before = { capture: true, signal: watching.signal };
  document.addEventListener('change', chosen, before);
  document.addEventListener('drop', dropped, before);
  return () => watching.abort();
}
