/** Codes of the rows for a colouring; by one component or two they are made here, from scores: rows without them are grey. */

import { clamp } from '../layout/geometry.js';
import { rgb } from '../theme.js';
import { componentName } from './names.js';

const COMPUTED = /^components?:(\d+)(?:,(\d+))?$/;
const RAMP = ['#2f6fb3', '#c9ccd2', '#c83c28'];
const SIDE = 15; // steps of a plane's key, an odd number so that zero is in the middle
const CORNERS = ['#2f6fb3', '#2a9d6f', '#8a4fc4', '#d4552a'].map(rgb); // −−, +−, −+, ++
const MIDDLE = rgb('#b9bec6');

/** The name of a colouring by one component or two. @param {Meta} meta @param {number[]} some */
export const colouringBy = (meta, some) =>
  some.length
    ? `component${some.length > 1 ? 's' : ''}:${some.map((k) => meta.components[k].number)}`
    : '';

/** The components that rows are coloured by: none, one or two. @param {Meta} meta @param {string} name */
export function colouredBy(meta, name) {
  const numbers = COMPUTED.exec(name)?.slice(1).filter(Boolean) ?? [];
  const by = numbers.map((digits) =>
    meta.components.findIndex(({ number }) => `${number}` === digits),
  );
  return by.includes(-1) ? [] : by;
}

/** @typedef {{codes: Uint8Array, colouring: Colouring}} Colours */

/** A ramp of the rows' scores on a component. @param {Scene} scene @param {number} component @returns {Colours} */
export function rampOf({ components, scores, active, rows, meta }, component) {
  let most = 1;
  for (let at = 0; at < scores.length; at += 1)
    if (components[at] === component) most = Math.max(most, Math.abs(scores[at]));
  const codes = new Uint8Array(rows).fill(255);
  for (let at = 0; at < scores.length; at += 1) {
    if (components[at] === component)
      codes[Math.floor(at / active)] = Math.round(127 + (127 * scores[at]) / most);
  }
  const limit = most * meta.score_unit;
  const title = `Component ${componentName(meta, component)}`;
  return {
    codes,
    colouring: { kind: 'quantity', title, names: [], table: RAMP, limits: [-limit, limit] },
  };
}

/** A step on a square for each row that uses one of two components. @param {Scene} scene @param {number[]} axes @returns {Colours} */
export function planeOf({ components, scores, active, rows, meta }, axes) {
  const steps = axes.map((axis) => {
    const sizes = scores
      .filter((_, at) => components[at] === axis)
      .map(Math.abs)
      .sort();
    const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1; // far outliers do not flatten the rest
    return (/** @type {number} */ score) =>
      Math.round(((SIDE - 1) / 2) * (1 + clamp(score / most, -1, 1)));
  });
  const none = (SIDE - 1) / 2;
  const codes = new Uint8Array(rows).fill(255);
  for (let row = 0; row < rows; row += 1) {
    const at = [none, none];
    let used = false;
    for (let i = row * active; i < (row + 1) * active; i += 1) {
      const axis = axes.indexOf(components[i]);
      if (axis >= 0) {
        at[axis] = steps[axis](scores[i]);
        used = true;
      }
    }
    if (used) codes[row] = at[0] + SIDE * at[1];
  }
  const title = `Components ${axes.map((k) => meta.components[k].number).join(' and ')}`;
  const table = Array.from({ length: SIDE * SIDE }, (_, code) => squareColour(code));
  return { codes, colouring: { kind: 'plane', title, names: [], table, axes } };
}

/** The colour of a step: a mixture of the corners' colours, grey in the middle. @param {number} code */
function squareColour(code) {
  const [x, y] = [code % SIDE, Math.floor(code / SIDE)].map((step) => step / (SIDE - 1));
  const far = Math.min(1, Math.hypot(2 * x - 1, 2 * y - 1));
  const colour = MIDDLE.map((grey, i) => {
    const [low, high] = [0, 2].map((k) => CORNERS[k][i] + (CORNERS[k + 1][i] - CORNERS[k][i]) * x);
    return Math.round(255 * (grey + (low + (high - low) * y - grey) * far));
  });
  return `#${colour.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** Bring the colours of rows up to the colouring. @param {Stage} stage */
export async function recolour(stage) {
  const { meta, scene, rows, colouringName: name } = stage;
  const by = colouredBy(meta, name);
  const made = by.length ? (by.length > 1 ? planeOf(scene, by) : rampOf(scene, by[0])) : null;
  stage.computed = made && { name, colouring: made.colouring };
  const codes = made?.codes ?? (await scene.codes(name));
  if (name !== stage.colouringName || stage.gone) return;
  const names = String(stage.colouring?.names);
  if (!same(rows.codes, codes) || names !== rows.names) rows.codesChanged += 1; // another scene of the same data has the same classes
  Object.assign(rows, { codes, names });
  stage.settleSoon();
}

/** @param {Uint8Array | Uint16Array} a @param {Uint8Array | Uint16Array} b */
function same(a, b) {
  if (a.constructor !== b.constructor || a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 1) if (a[i] !== b[i]) return false;
  return true;
}
