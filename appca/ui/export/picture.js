
// ---- the page: everything is in it
const given = JSON.parse(document.getElementById('data').textContent);
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** A buffer: its bytes were put together by rank before they were packed. */
async function unpacked(text) {
  const [size] = bytesOf(text.slice(0, 4));
  const stream = new Blob([bytesOf(text).subarray(1)]).stream().pipeThrough(new DecompressionStream('deflate'));
  const ranks = new Uint8Array(await new Response(stream).arrayBuffer());
  if (size === 1) return ranks.buffer;
  const count = ranks.length / size;
  const found = new Uint8Array(ranks.length);
  for (let rank = 0; rank < size; rank += 1) {
    for (let i = 0; i < count; i += 1) found[i * size + rank] = ranks[rank * count + i];
  }
  return found.buffer;
}

const dark = matchMedia('(prefers-color-scheme: dark)');
const theme = () => { document.documentElement.dataset.theme = dark.matches ? 'dark' : 'light'; return document.documentElement.dataset.theme; };
const input = {
  meta: given.meta,
  buffers: Object.fromEntries(Object.entries(given.buffers).map(([name, text]) => [name, () => unpacked(text)])),
  sheets: {
    tile: async (number) => new Blob([bytesOf(given.sheets[number])], { type: 'image/webp' }),
    ...(given.components ? { components: async () => new Blob([bytesOf(given.components)], { type: 'image/png' }) } : {}),
  },
  options: { layout: Object.keys(given.layouts)[0], colouring: given.colouring, theme: theme() },
};
const count = document.createElement('output');
const canvas = mount(document.getElementById('canvas'), input, { onSelect: (bits, n) => { count.textContent = n ? `${n.toLocaleString('en')} selected` : ''; } });
window.appca = canvas;

/** A choice in the head of the page. */
function choice(label, names, chosen, take) {
  const box = document.createElement('select');
  box.ariaLabel = label;
  for (const [key, name] of Object.entries(names)) box.add(new Option(name, key, key === chosen, key === chosen));
  box.addEventListener('change', () => take(box.value));
  return box;
}

const colourings = Object.fromEntries(Object.entries(given.meta.colourings).map(([key, one]) => [key, one.title || key]));
document.querySelector('header').append(
  choice('View', given.layouts, input.options.layout, (layout) => canvas.update({ options: { layout } })),
  choice('Colour', colourings, given.colouring, (colouring) => canvas.update({ options: { colouring } })),
  count,
);
dark.addEventListener('change', () => canvas.update({ options: { theme: theme() } }));
await canvas.ready;
document.documentElement.dataset.ready = 'yes';
