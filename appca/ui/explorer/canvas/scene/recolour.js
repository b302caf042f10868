/** Codes of the rows for a colouring; by one component they are made here: a ramp of its score, rows without it grey. */

const PREFIX = 'component:';

/** The component a colouring is of, by its number. @param {import('../types.js').Meta} meta @param {string} name */
export function componentOf(meta, name) {
  return name.startsWith(PREFIX) ? meta.components.findIndex(({ number }) => `${number}` === name.slice(PREFIX.length)) : -1;
}

/** @param {import('./scene.js').Scene} scene @param {number} component */
export function componentCodes(scene, component) {
  const { components, scores, active, rows } = scene;
  let most = 1;
  for (let at = 0; at < scores.length; at += 1) if (components[at] === component) most = Math.max(most, Math.abs(scores[at]));
  const codes = new Uint8Array(rows).fill(255);
  for (let at = 0; at < scores.length; at += 1) {
    if (components[at] === component) codes[Math.floor(at / active)] = Math.round(127 + (127 * scores[at]) / most);
  }
  return { codes, limit: most * scene.meta.score_unit };
}

/** @param {import('../types.js').Meta} meta @param {number} component @param {number} limit @returns {import('../types.js').Colouring} */
export function componentColouring(meta, component, limit) {
  const { number, name } = meta.components[component];
  const ends = ['#2f6fb3', '#c9ccd2', '#c83c28'];
  return { kind: 'quantity', title: `Component ${number}${name ? ` ${name}` : ''}`, names: [], table: ends, limits: [-limit, limit] };
}

/** Bring the colours of rows up to the colouring. @param {import('../stage.js').Stage} stage */
export async function recolour(stage) {
  const { meta, scene, rows, colouringName: name } = stage;
  const component = componentOf(meta, name);
  const made = component >= 0 ? componentCodes(scene, component) : null;
  stage.computed = made && { name, colouring: componentColouring(meta, component, made.limit) };
  const codes = made?.codes ?? await scene.codes(name);
  if (name !== stage.colouringName || stage.gone) return;
  rows.codes = codes;
  rows.codesChanged += 1;
  stage.settleSoon();
}
