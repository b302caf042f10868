/** Take over options, or another scene of the same data: rows keep their number, components theirs, points travel. */

import { isCompact, makeView, share } from './layout/views.js';
import { colouredBy, recolour } from './scene/recolour.js';
import { Scene } from './scene/scene.js';

/** @typedef {import('./stage.js').Stage} Stage */

const CAME = 3000; // ms for which a chip says what a component was before

/** @typedef {Partial<import('./types.js').Input>} Next another scene, and options */

/** @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {Next} next */
export async function update(stage, actions, { options = {}, ...input }) {
  const before = { ...stage.options };
  Object.assign(stage.options, options);
  actions.follow(options);
  if (String(stage.options.came ?? '') !== String(before.came ?? '')) {
    stage.cameUntil = performance.now() + CAME;
    setTimeout(() => stage.settleSoon(), CAME + 50);
  }
  const scene =
    input.meta &&
    input.buffers &&
    (await new Scene(/** @type {import('./types.js').Input} */ (input)).open());
  if (stage.gone) return;
  const chosen = options.layout === before.layout ? undefined : options.layout;
  if (scene) await change(stage, actions, scene, chosen);
  else {
    const others =
      String(stage.options.panels) !== String(before.panels) ||
      stage.options.compact !== before.compact;
    const shown = stage.views[0].layout.name; // a hand may have changed it since the page chose
    const name = chosen || shown;
    if (others) actions.replace(stage.views[0], await makeView(stage, name));
    else await actions.morph(stage.views[0], name);
    if (options.colouring && options.colouring !== before.colouring) await recolour(stage);
  }
  if (options.beside !== undefined && options.beside !== (before.beside ?? ''))
    await beside(stage, actions, options.beside);
  if (options.filter) actions.filter(options.filter);
  stage.root.dataset.theme = stage.dark ? 'dark' : 'light';
  stage.root.classList.toggle('appca-quiet', isCompact(stage.options));
  if (stage.ratio !== stage.dpr) stage.resize();
  stage.frame = '';
  if (scene && !stage.tweens.moving)
    stage.settle(); // nothing travels: all of it at once
  else stage.settleSoon();
}

/** Layouts that the views show of another scene: the present ones, or the first where it has none of them. @param {Stage} stage @param {import('./types.js').Meta} meta @param {string} [chosen] of the first view */
const namesIn = ({ views }, { layouts, first }, chosen) =>
  views.map(
    ({ layout: { name } }, i) =>
      [i ? undefined : chosen, name, first].find(
        (candidate) => candidate && candidate in layouts,
      ) ?? Object.keys(layouts)[0],
  );

/** @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {Scene} scene @param {string | undefined} chosen layout of the first view */
async function change(stage, actions, scene, chosen) {
  if (scene.rows !== stage.rows.count)
    throw new Error(
      `The new scene has ${scene.rows} rows and the picture ${stage.rows.count}; mount it again.`,
    );
  const made = await Promise.all(
    namesIn(stage, scene.meta, chosen).map((name, i) =>
      makeView({ scene, meta: scene.meta, options: stage.options }, name, stage.views[i].layout),
    ),
  );
  if (!colouredBy(scene.meta, stage.colouringName).length) {
    if (!(stage.colouringName in scene.meta.colourings))
      [stage.options.colouring] = Object.keys(scene.meta.colourings);
    await scene.codes(stage.colouringName);
  }
  if (stage.gone) return;
  // from here to the new views nothing is drawn: scene, rows and views change together
  const { meta: old } = stage.scene;
  actions.endTour();
  stage.scene = scene;
  if (JSON.stringify(old.sheets) !== JSON.stringify(scene.meta.sheets)) stage.startSheets();
  stage.rows.readMarks(scene);
  stage.pictures.load();
  made.slice(1).forEach((view, i) => {
    stage.views[i + 1] = view;
  });
  actions.replace(stage.views[0], made[0]);
  await recolour(stage);
}

/** Show a second view, or only one. @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {string} name */
async function beside(stage, actions, name) {
  stage.views =
    name in stage.meta.layouts ? [stage.views[0], await makeView(stage, name)] : [stage.views[0]];
  share(stage);
  actions.after();
}
