/**
 * Streamlit's colours, read from the style variables it sets.
 */

export function readTheme(element, fill) {
  const style = getComputedStyle(element);
  const read = (name, fallback) => style.getPropertyValue(`--st-${name}`).trim() || fallback;
  const text = read('text-color', style.color);
  return {
    text,
    soft: withOpacity(text, 0.85), // names of axes
    faint: withOpacity(text, 0.72), // tick labels
    background: read('background-color', '#ffffff'),
    primary: read('primary-color', '#2f6fb3'),
    zero: withOpacity(text, 0.28), // the axes through zero
    font: read('font', 'sans-serif'),
    fill,
  };
}

/** A theme as one text, to notice a change of it. */
export function themeKey(theme) {
  return Object.values(theme).join('|');
}

/** Mix a #rrggbb or rgb() colour with transparency, since Plotly does not read color-mix. */
export function withOpacity(colour, opacity) {
  const [red, green, blue] = channelsOf(colour);
  return `rgba(${red},${green},${blue},${opacity})`;
}

/** @returns {number[]} red, green, blue of #rgb, #rrggbb, rgb() or rgba() */
export function channelsOf(colour) {
  const numbers = colour.match(/^rgba?\(([^)]+)\)$/);
  if (numbers) return numbers[1].split(',').slice(0, 3).map(Number);
  const hex = colour.replace('#', '');
  const long = hex.length < 6 ? [...hex].map((digit) => digit + digit).join('') : hex;
  return [0, 2, 4].map((start) => parseInt(long.slice(start, start + 2), 16) || 0);
}

const STROKE_CONTRAST = 2.4; // of strokes on their plate: pale classes stay readable
const POINT_CONTRAST = 2.1; // of points on a dark page: the palette was made for a light one

/** A table of colours for points: as it is on a light page, dark ones lifted on a dark page. */
export function pointTable(table, theme) {
  if (luminance(channelsOf(theme.background)) > 0.3) return table;
  return table.map((colour) => legible(colour, theme, POINT_CONTRAST));
}

/** A colour mixed with the text's until it can be read on the page's ground. */
export function legible(colour, { background, text }, least = STROKE_CONTRAST) {
  const ground = luminance(channelsOf(background));
  const [from, to] = [channelsOf(colour), channelsOf(text)];
  for (let share = 0; share < 1; share += 0.1) {
    const mixed = from.map((channel, i) => Math.round(channel * (1 - share) + to[i] * share));
    const enough = contrast(luminance(mixed), ground) >= least;
    if (enough) return share === 0 ? colour : `rgb(${mixed.join(',')})`;
  }
  return text;
}

/** Relative luminance of 0..255 channels, as the contrast of web pages is defined. */
export function luminance(channels) {
  const [red, green, blue] = channels.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a, b) {
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
