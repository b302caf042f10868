/** Colours of the canvas: tokens of both themes, and a colouring's table as bytes. */

/** Tokens of the light and the dark theme. */
const TOKENS = {
  ground: ['#f4f6f9', '#0c1016'],
  panel: ['#ffffff', '#161d27'],
  line: ['#dde3ea', '#2c3743'],
  axis: ['#d5dce5', '#313d4b'],
  text: ['#1c2733', '#e6ebf1'],
  soft: ['#576474', '#a3afbd'],
  faint: ['#6a7786', '#7e8b99'],
  primary: ['#2f6fb3', '#6aa9e9'],
  tint: ['#e8f0f9', '#1d2f44'],
  grey: ['#8f9bab', '#667486'],
  low: ['#b9d0ea', '#2f4d73'],
  high: ['#183e6e', '#cfe3fa'],
  below: ['#bcd5ef', '#26486f'],
  above: ['#f3c6bd', '#6b332c'],
};
const theme = (/** @type {number} */ i) =>
  Object.fromEntries(Object.entries(TOKENS).map(([name, colours]) => [name, colours[i]]));

/** @type {Record<'light' | 'dark', Record<keyof typeof TOKENS, string>>} */
export const THEMES = { light: /** @type {any} */ (theme(0)), dark: /** @type {any} */ (theme(1)) };

const VISIBLE = 0.36; // start of Viridis: below it, colours have less than 3:1 on a dark panel

/** Shapes, which distinguish classes in addition to colour, in the shader's order. */
const SHAPES = ['circle', 'diamond', 'square', 'cross', 'triangle-up'];

/** @param {string} hex @returns {[number, number, number]} 0..1 */
export function rgb(hex) {
  return /** @type {any} */ ([1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255));
}

/** Colours of all codes as lines of 256 texels, with the shape as their last byte: codes above the table and "missing" are grey. @param {Colouring | undefined} colouring @param {boolean} dark */
export function paletteBytes(colouring, dark) {
  const theme = dark ? THEMES.dark : THEMES.light;
  const hexes = colouring?.table ?? [];
  const ramp = colouring?.kind === 'quantity';
  const stops = (ramp && hexes.length < 2 ? [theme.low, theme.high] : hexes).map(rgb);
  const grey = rgb(theme.grey);
  const used = ramp ? 255 : stops.length;
  const missing = ramp && stops.length === used ? used - 1 : used; // Viridis ends with that colour
  const first = dark && missing < used ? VISIBLE : 0;
  const bytes = new Uint8Array(1024 * Math.ceil((used + 1) / 256));
  for (let code = 0; code < bytes.length / 4; code += 1) {
    const share = first + ((1 - first) * code) / (missing - 1);
    const inRamp = ramp && code < missing;
    const colour = inRamp ? between(stops.slice(0, missing), share) : (stops[code] ?? grey);
    for (let i = 0; i < 3; i += 1) bytes[4 * code + i] = Math.round(colour[i] * 255);
    bytes[4 * code + 3] =
      code < used && !ramp ? Math.max(0, SHAPES.indexOf(colouring?.shapes?.[code] ?? '')) : 0;
  }
  return bytes;
}

/** @param {number[][]} stops @param {number} share */
function between(stops, share) {
  const at = Math.min(share, 0.9999) * (stops.length - 1);
  const [a, b, t] = [stops[Math.floor(at)], stops[Math.floor(at) + 1], at % 1];
  return a.map((value, i) => value + (b[i] - value) * t);
}

/** Return the colour of a code as CSS. @param {Uint8Array} palette @param {number} code */
export const cssOf = (palette, code) => `rgb(${palette.subarray(4 * code, 4 * code + 3)})`;

/** Whether Streamlit's theme around an element is dark. @param {Element} element */
export function isDark(element) {
  const ground = getComputedStyle(element).getPropertyValue('--st-background-color').trim();
  return ground.length === 7 && rgb(ground).reduce((sum, part) => sum + part) < 1.5;
}
