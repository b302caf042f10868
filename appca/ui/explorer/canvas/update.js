/** Take over options, or another scene of the same data: rows keep their number, components theirs, points travel. */

import { placesOf } from './move/morph.js';
import { Scene } from './scene/scene.js';

/** @typedef {import('./stage.js').Stage} Stage */

/** @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {import('./text/headers.js').Pictures} pictures @param {Partial<import('./types.js').Input>} next */
export async function update(stage, actions, pictures, { options = {}, ...input }) {
  const before = { ...stage.options };
  Object.assign(stage.options, options);
  if (input.meta && input.buffers) await change(stage, actions, pictures, /** @type {import('./types.js').Input} */ ({ ...input, options: stage.options }));
  else {
    if (options.layout && options.layout !== stage.views[0].layout.name) await actions.morph(stage.views[0], options.layout);
    if (options.colouring && options.colouring !== before.colouring) await stage.recolour();
  }
  if (options.beside !== undefined && options.beside !== (before.beside ?? '')) await beside(stage, actions, options.beside);
  if (options.filter) actions.filter(options.filter);
  stage.root.dataset.theme = stage.dark ? 'dark' : 'light';
  stage.resize();
  stage.frame = '';
  stage.settleSoon();
}

/** @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {import('./text/headers.js').Pictures} pictures @param {import('./types.js').Input} input */
async function change(stage, actions, pictures, input) {
  const scene = await new Scene(input).open();
  if (stage.gone) return;
  if (scene.rows !== stage.rows.count) throw new Error(`The new scene has ${scene.rows} rows and the picture ${stage.rows.count}; mount it anew.`);
  const names = stage.views.map(({ layout }) => (layout.name in scene.meta.layouts ? layout.name : scene.meta.first ?? Object.keys(scene.meta.layouts)[0]));
  const { input: old } = stage.scene;
  await Promise.all(names.map((name) => scene.layout(name)));
  const places = stage.views.map((view) => placesOf(stage, view));
  stage.scene = scene;
  if (JSON.stringify(old.meta.sheets) !== JSON.stringify(scene.meta.sheets) || old.meta.seed !== scene.meta.seed) stage.startSheets();
  const made = await Promise.all(names.map((name) => stage.makeView(name)));
  if (stage.gone) return;
  actions.endTour();
  stage.rows.readMarks(scene);
  pictures.load();
  if (!(stage.colouringName in scene.meta.colourings)) stage.options.colouring = Object.keys(scene.meta.colourings)[0];
  await stage.recolour();
  stage.views.slice(1).forEach((_, i) => { stage.views[i + 1] = made[i + 1]; });
  actions.replace(stage.views[0], made[0], places[0]);
  stage.gpu.prune(new Set(stage.views.flatMap(({ parts }) => parts.map(({ layout }) => layout))));
}

/** Show a second view, or only one. @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {string} name */
async function beside(stage, actions, name) {
  stage.views = name in stage.meta.layouts ? [stage.views[0], await stage.makeView(name)] : [stage.views[0]];
  stage.share();
  stage.views.slice(1).forEach((view) => { view.cam = view.home; });
  actions.after();
}
