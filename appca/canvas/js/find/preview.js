/** Pictures of what the palette found. */

import { element, icon, paint, quiet } from '../parts/dom.js';
import { cssOf } from '../theme.js';
import { caps } from './dialog.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('./find.js').Hit} Hit */

const ENDS = 5; // rows at an end of a component
/** @type {Partial<Record<import('./find.js').Kind, 'play' | 'bookmark' | 'tune'>>} */
const ICONS = { action: 'play', selection: 'bookmark', column: 'tune' };

/** The picture of a hit: a component, an image of a row with the colour of its class, or an icon. @param {Stage} stage @param {Hit} hit @param {number} side px */
export function pictureOf(stage, { component, row, code, kind }, side) {
  const canvas = element('canvas', 'appca-hitpicture', { 'aria-hidden': 'true' });
  canvas.width = canvas.height = 2 * side;
  if (component !== undefined && stage.pictures.there) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    stage.pictures.draw(component, { x: 0, y: 0, w: 2 * side, h: 2 * side }, context);
    return canvas;
  }
  const shown = row ?? (code === undefined ? -1 : stage.rows.codes.indexOf(code));
  const { sheets, scene } = stage;
  const bytes = shown >= 0 && sheets ? sheets.read(scene.tile[shown]) : null;
  if (bytes && sheets) {
    paint(canvas, bytes, sheets.meta, stage.dark);
  } else if (sheets && shown >= 0)
    sheets.ask(new Map([[Math.floor(scene.tile[shown] / sheets.meta.per_sheet), 1]]));
  else {
    if (code === undefined)
      return element('span', 'appca-hitpicture', {}, icon(ICONS[kind] ?? 'search'));
    const dot = element('i', 'appca-dot', { style: `background:${cssOf(stage.palette, code)}` });
    return element('span', 'appca-hitpicture', {}, dot);
  }
  if (code !== undefined) canvas.style.borderColor = cssOf(stage.palette, code);
  return canvas;
}

/** What Enter does. @type {Record<import('./find.js').Kind, string>} */
const DOES = {
  component: 'Show its row and column',
  panel: 'Open it',
  class: 'Select them',
  selection: 'Select them',
  row: 'Go there',
  column: 'Colour by it',
  action: 'Do it',
};

/** @param {Stage} stage @param {number} component */
export const rowsUsing = ({ rows, scene }, component) =>
  [...rows.codes.keys()].filter((row) => scene.score(row, component));

/** Beside the list: the chosen hit at large, a component with the rows at its ends. @param {Stage} stage @param {Hit} hit */
export function preview(stage, { component, ...hit }) {
  const { scene, sheets } = stage;
  const enter = element('p', '', {}, DOES[hit.kind], caps('Enter'));
  const parts = [
    pictureOf(stage, { ...hit, component }, 132),
    element('b', '', {}, hit.label),
    quiet(hit.note ?? ''),
  ];
  if (component === undefined) return [...parts, enter];
  const users = sheets ? rowsUsing(stage, component) : [];
  users.sort((a, b) => scene.score(b, component) - scene.score(a, component));
  const ends = { Highest: users.slice(0, ENDS), Lowest: users.slice(-ENDS).reverse() };
  for (const [word, few] of Object.entries(sheets ? ends : {}))
    parts.push(
      quiet(word),
      element('div', 'appca-ends', {}, ...few.map((row) => pictureOf(stage, { ...hit, row }, 38))),
    );
  return [...parts, enter, element('p', '', {}, 'Select its rows', caps('Ctrl', 'Enter'))];
}
