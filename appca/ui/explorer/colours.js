/**
 * Colours of points: a code for every row into a table of colours that Python chose.
 */

/** Plotly's numbers of the shapes that classes beyond the tenth are drawn with. */
export const SHAPE_NUMBERS = { circle: 0, diamond: 2, square: 1, cross: 3, 'triangle-up': 5 };
const OPEN_SYMBOL = 100;

/** Gather the codes of a panel's rows. */
export function codesOf(codes, rows) {
  const gathered = new codes.constructor(rows.length);
  for (let i = 0; i < rows.length; i += 1) gathered[i] = codes[rows[i]];
  return gathered;
}

/** The table as a Plotly colour scale whose nodes are the codes themselves. */
export function scaleOf(table) {
  const last = Math.max(1, table.length - 1);
  return table.map((colour, code) => [code / last, colour]);
}

/**
 * The marker of one trace in a colouring. A panel with colours of its own keeps them.
 *
 * @param {Object} marker as Python sent it
 * @param {Object} panel {rows, own, symbols, hollow}
 * @param {{codes: Uint8Array, table: string[], shapes: ?string[]}} colour
 * @param {number} size of a point
 */
export function paintedMarker(marker, panel, colour, size) {
  if (panel.own) return { ...marker, size };
  const codes = codesOf(colour.codes, panel.rows);
  const painted = {
    ...marker,
    size,
    color: codes,
    colorscale: scaleOf(colour.table),
    cmin: 0,
    cmax: Math.max(1, colour.table.length - 1),
  };
  if (colour.shapes && !panel.symbols) painted.symbol = shapesOf(codes, panel.hollow, colour.shapes);
  return painted;
}

/** Symbol numbers of classes drawn with shapes of their own; outlines where hollow. */
export function shapesOf(codes, hollow, shapes) {
  const numbers = shapes.map((shape) => SHAPE_NUMBERS[shape] ?? 0);
  return Array.from(codes, (code, i) => numbers[code] + (hollow && hollow[i] ? OPEN_SYMBOL : 0));
}

/** The colour of the point at a place of a panel, as CSS. */
export function colourOf(panel, place, colour) {
  if (!panel.own) return colour.table[colour.codes[panel.rows[place]]];
  const { color, colorscale } = panel.trace.marker;
  return colorscale[color[place]][1];
}
