/** Pictures of what the palette found. */

import { element, icon, paint } from '../parts/dom.js';
import { countOf } from '../scene/names.js';
import { cssOf } from '../theme.js';
import { caps } from './dialog.js';
import { usersOf } from './find.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('./find.js').Hit} Hit */

const ENDS = 5; // rows at an end of a component
/** @type {Partial<Record<import('./find.js').Kind, 'play' | 'bookmark' | 'tune'>>} */
const ICONS = { action: 'play', selection: 'bookmark', column: 'tune' };

/** The picture of a hit: a component, an image of a row with the colour of its class, or an icon. @param {Stage} stage @param {Hit} hit @param {number} side px */
export function pictureOf(stage, { component, row, code, kind }, side) {
  const canvas = element('canvas', 'appca-hitpicture', { 'aria-hidden': 'true' });
  canvas.width = canvas.height = 2 * side;
  if (component !== undefined && stage.pictures?.there) {
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

/** Beside the list: the chosen hit at large, a component with the rows at its ends. @param {Stage} stage @param {Hit} hit @param {boolean} selects whether Ctrl+Enter does */
export function preview(stage, hit, selects) {
  const { scene, meta, rows } = stage;
  const parts = [element('b', '', {}, hit.label)];
  const { component } = hit;
  if (component === undefined) parts.push(element('p', 'appca-count', {}, hit.note ?? ''));
  else {
    const used = usersOf(stage)[component];
    const share = Math.round((100 * used) / rows.count);
    const text = `used by ${countOf(meta, used)}, ${share}% of all`;
    parts.push(element('p', 'appca-count', {}, text));
    const users = [];
    for (let row = 0; stage.sheets && row < rows.count; row += 1)
      if (scene.score(row, component)) users.push(row);
    users.sort((a, b) => scene.score(b, component) - scene.score(a, component));
    for (const [word, few] of /** @type {[string, number[]][]} */ ([
      ['Highest', users.slice(0, ENDS)],
      ['Lowest', users.slice(-ENDS).reverse()],
    ]))
      if (stage.sheets)
        parts.push(
          element('p', 'appca-count', {}, word),
          element(
            'div',
            'appca-ends',
            {},
            ...few.map((row) => pictureOf(stage, { ...hit, component: undefined, row }, 38)),
          ),
        );
  }
  const does = {
    component: 'Show its row and column',
    panel: 'Open it',
    class: 'Select them',
    selection: 'Select them',
    row: 'Go there',
    column: 'Colour by it',
    action: 'Do it',
  };
  parts.push(element('p', '', {}, does[hit.kind], caps('Enter')));
  if (selects) parts.push(element('p', '', {}, 'Select its rows', caps('Ctrl', 'Enter')));
  return [pictureOf(stage, hit, 132), ...parts];
}
