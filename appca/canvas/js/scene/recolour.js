/** Codes of the rows for a colouring; by one component or two they are made here, from scores: rows without them are grey. */

import { clamp } from '../layout/rect.js';

const PREFIX = 'component:';

/** The component a colouring is of, by its number. @param {import('../types.js').Meta} meta @param {string} name */
export function componentOf(meta, name) {
  return name.startsWith(PREFIX)
    ? meta.components.findIndex(({ number }) => `${number}` === name.slice(PREFIX.length))
    : -1;
}

/** @param {import('./scene.js').Scene} scene @param {number} component */
export function componentCodes(scene, component) {
  const { components, scores, active, rows } = scene;
  let most = 1;
  for (let at = 0; at < scores.length; at += 1)
    if (components[at] === component) most = Math.max(most, Math.abs(scores[at]));
  const codes = new Uint8Array(rows).fill(255);
  for (let at = 0; at < scores.length; at += 1) {
    if (components[at] === component)
      codes[Math.floor(at / active)] = Math.round(127 + (127 * scores[at]) / most);
  }
  return { codes, limit: most * scene.meta.score_unit };
}

/** @param {import('../types.js').Meta} meta @param {number} component @param {number} limit @returns {import('../types.js').Colouring} */
export function componentColouring(meta, component, limit) {
  const { number, name } = meta.components[component];
  const ends = ['#2f6fb3', '#c9ccd2', '#c83c28'];
  return {
    kind: 'quantity',
    title: `Component ${number}${name ? ` ${name}` : ''}`,
    names: [],
    table: ends,
    limits: [-limit, limit],
  };
}

/** Whether a colouring is made from scores. @param {import('../types.js').Meta} meta @param {string} name */
export const isComputed = (meta, name) => colouredBy(meta, name).length > 0;

const PLANE = /^components:(\d+),(\d+)$/;
const SIDE = 15; // steps of a plane's key, an odd number so that zero is in the middle
const CORNERS = ['#2f6fb3', '#2a9d6f', '#8a4fc4', '#d4552a']; // −−, +−, −+, ++
const MIDDLE = '#b9bec6';

/** The name of a colouring by one component or two. @param {import('../types.js').Meta} meta @param {number[]} some */
export const colouringBy = (meta, some) =>
  some.length
    ? `component${some.length > 1 ? 's' : ''}:${some.map((k) => meta.components[k].number)}`
    : '';

/** The components that rows are coloured by. @param {import('../types.js').Meta} meta @param {string} name @returns {number[]} */
export const colouredBy = (meta, name) =>
  planeOf(meta, name) ?? [componentOf(meta, name)].filter((k) => k >= 0);

/** The two components a colouring is of, by their numbers. @param {import('../types.js').Meta} meta @param {string} name @returns {[number, number] | null} */
export function planeOf(meta, name) {
  const axes = PLANE.exec(name)
    ?.slice(1)
    .map((digits) => meta.components.findIndex(({ number }) => `${number}` === digits)) ?? [-1, -1];
  return axes.includes(-1) ? null : [axes[0], axes[1]];
}

/** A step on a square for each row that uses one of two components. @param {import('./scene.js').Scene} scene @param {[number, number]} axes */
export function planeCodes({ components, scores, active, rows }, axes) {
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
  return codes;
}

/** @param {import('../types.js').Meta} meta @param {[number, number]} axes @returns {import('../types.js').Colouring} */
export function planeColouring(meta, axes) {
  const bytes = (/** @type {string} */ hex) =>
    [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const corners = CORNERS.map(bytes);
  const middle = bytes(MIDDLE);
  const table = Array.from({ length: SIDE * SIDE }, (_, code) => {
    const [x, y] = [
      (2 * (code % SIDE)) / (SIDE - 1) - 1,
      (2 * Math.floor(code / SIDE)) / (SIDE - 1) - 1,
    ];
    const far = Math.min(1, Math.hypot(x, y));
    const colour = middle.map((grey, i) => {
      const low = corners[0][i] + ((corners[1][i] - corners[0][i]) * (x + 1)) / 2;
      const high = corners[2][i] + ((corners[3][i] - corners[2][i]) * (x + 1)) / 2;
      return Math.round(grey + (low + ((high - low) * (y + 1)) / 2 - grey) * far);
    });
    return `#${colour.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
  });
  return {
    kind: 'plane',
    title: `Components ${axes.map((k) => meta.components[k].number).join(' and ')}`,
    names: [],
    table,
    axes,
  };
}

/** Bring the colours of rows up to the colouring. @param {import('../stage.js').Stage} stage */
export async function recolour(stage) {
  const { meta, scene, rows, colouringName: name } = stage;
  const component = componentOf(meta, name);
  const made = component >= 0 ? componentCodes(scene, component) : null;
  const plane = planeOf(meta, name);
  stage.computed = made
    ? { name, colouring: componentColouring(meta, component, made.limit) }
    : plane && { name, colouring: planeColouring(meta, plane) };
  const codes = made?.codes ?? (plane ? planeCodes(scene, plane) : await scene.codes(name));
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
