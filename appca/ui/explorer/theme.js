/**
 * Streamlit's colours, read from the style variables it sets.
 */

export function readTheme(element, fill) {
  const style = getComputedStyle(element);
  const read = (name, fallback) => style.getPropertyValue(`--st-${name}`).trim() || fallback;
  const text = read('text-color', style.color);
  return {
    text,
    soft: withOpacity(text, 0.75), // names of axes
    faint: withOpacity(text, 0.55), // tick labels
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
