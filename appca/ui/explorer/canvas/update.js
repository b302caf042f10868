/** Take over options, or another scene of the same data: rows keep their number, components theirs, points travel. */

import { isCompact, makeView, share } from './layout/views.js';
import { placesOf } from './move/morph.js';
import { isComputed, recolour } from './scene/recolour.js';
import { Scene } from './scene/scene.js';

/** @typedef {import('./stage.js').Stage} Stage */

/** @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {import('./text/headers.js').Pictures} pictures @param {Partial<import('./types.js').Input>} next */
export async function update(stage, actions, pictures, { options = {}, ...input }) {
  const before = { ...stage.options };
  Object.assign(stage.options, options);
  if (input.meta && input.buffers) await change(stage, actions, pictures, /** @type {import('./types.js').Input} */ ({ ...input, options: stage.options }), options.layout === before.layout ? undefined : options.layout);
  else {
    const others = String(stage.options.panels) !== String(before.panels) || stage.options.compact !== before.compact;
    const shown = stage.views[0].layout.name; // a hand may have changed it since the page chose
    const name = options.layout && options.layout !== before.layout ? options.layout : shown;
    if (others) actions.replace(stage.views[0], await makeView(stage, name));
    else await actions.morph(stage.views[0], name);
    if (options.colouring && options.colouring !== before.colouring) await recolour(stage);
  }
  if (options.beside !== undefined && options.beside !== (before.beside ?? '')) await beside(stage, actions, options.beside);
  if (options.filter) actions.filter(options.filter);
  stage.root.dataset.theme = stage.dark ? 'dark' : 'light';
  stage.root.classList.toggle('appca-quiet', isCompact(stage.options));
  stage.resize();
  stage.frame = '';
  stage.settleSoon();
}

/** @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {import('./text/headers.js').Pictures} pictures @param {import('./types.js').Input} input @param {string | undefined} chosen layout of the first view */
async function change(stage, actions, pictures, input, chosen) {
  const scene = await new Scene(input).open();
  if (stage.gone) return;
  if (scene.rows !== stage.rows.count) throw new Error(`The new scene has ${scene.rows} rows and the picture ${stage.rows.count}; mount it anew.`);
  const names = stage.views.map(({ layout }, i) => (!i && chosen && chosen in scene.meta.layouts ? chosen : layout.name in scene.meta.layouts ? layout.name : scene.meta.first ?? Object.keys(scene.meta.layouts)[0]));
  const made = await Promise.all(names.map((name, i) => makeView({ scene, meta: scene.meta, options: stage.options }, name, stage.views[i].layout)));
  const known = stage.colouringName in scene.meta.colourings || isComputed(scene.meta, stage.colouringName);
  if (!known) stage.options.colouring = Object.keys(scene.meta.colourings)[0];
  if (!isComputed(scene.meta, stage.colouringName)) await scene.codes(stage.colouringName);
  if (stage.gone) return;
  // from here to the new views nothing is drawn: scene, rows and views change together
  const { meta: old } = stage.scene;
  const places = placesOf(stage, stage.views[0]);
  actions.endTour();
  stage.scene = scene;
  if (JSON.stringify(old.sheets) !== JSON.stringify(scene.meta.sheets)) stage.startSheets();
  stage.rows.readMarks(scene);
  pictures.load();
  made.slice(1).forEach((view, i) => { stage.views[i + 1] = view; });
  actions.replace(stage.views[0], made[0], places);
  stage.views.slice(1).forEach((view) => { view.cam = view.home; });
  await recolour(stage);
}

/** Show a second view, or only one. @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {string} name */
async function beside(stage, actions, name) {
  stage.views = name in stage.meta.layouts ? [stage.views[0], await makeView(stage, name)] : [stage.views[0]];
  share(stage);
  stage.views.slice(1).forEach((view) => { view.cam = view.home; });
  actions.after();
}
