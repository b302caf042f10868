/** Mount the picture in an element, and hand back what a host can do with it. */

import { buildKeys, buildPalette } from './parts/palette.js';
import { Actions, fly } from './input/actions.js';
import { Gestures } from './input/gestures.js';
import { buildSpoken, listenToKeys } from './input/keys.js';
import { holds } from './layout/geometry.js';
import { buffersOf, isCompact, makeView, share } from './layout/view.js';
import { Journey } from './motion.js';
import { buildBar } from './parts/bar.js';
import { buildCard } from './parts/card.js';
import { buildMore, buildTools, buildTourbar, savePicture } from './parts/tools.js';
import { colouredBy, recolour, Scene } from './scene/scene.js';
import { Stage } from './stage.js';
import { drawAxes, drawHeaders, drawNames } from './text/headers.js';
import { drawLabels, placeLabels } from './text/labels.js';
import { drawGhosts, drawHeld, drawRings, ringedRows } from './text/marks.js';

const CAME = 3000; // ms for which a chip says what a component was before

/** @typedef {Partial<Input>} Next another scene, and options */

/** @param {Stage} stage @param {Actions} actions @param {Next} next */
async function update(stage, actions, { options = {}, ...input }) {
  const before = { ...stage.options };
  Object.assign(stage.options, options);
  actions.follow(options);
  if (String(stage.options.came ?? '') !== String(before.came ?? '')) {
    stage.cameUntil = performance.now() + CAME;
    setTimeout(() => stage.settleSoon(), CAME + 50);
  }
  const scene =
    input.meta && input.buffers && (await new Scene(/** @type {Input} */ (input)).open());
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

/** Layouts that the views show of another scene: the present ones, or the first where it has none of them. @param {Stage} stage @param {Meta} meta @param {string} [chosen] of the first view */
const namesIn = ({ views }, { layouts, first }, chosen) =>
  views.map(
    ({ layout: { name } }, i) =>
      [i ? undefined : chosen, name, first].find(
        (candidate) => candidate && candidate in layouts,
      ) ?? Object.keys(layouts)[0],
  );

/** @param {Stage} stage @param {Actions} actions @param {Scene} scene @param {string | undefined} chosen layout of the first view */
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
  made.slice(1).forEach((view, i) => (stage.views[i + 1] = view));
  actions.replace(stage.views[0], made[0]);
  await recolour(stage);
}

/** Show a second view, or only one. @param {Stage} stage @param {Actions} actions @param {string} name */
async function beside(stage, actions, name) {
  stage.views =
    name in stage.meta.layouts ? [stage.views[0], await makeView(stage, name)] : [stage.views[0]];
  share(stage);
  actions.after();
}

/** @param {HTMLElement} element @param {Input} input @param {Callbacks} [callbacks] */
export function mount(element, input, callbacks = {}) {
  element.classList.add('appca-explorer', 'appca-blank');
  element.dataset.theme = input.options?.theme ?? 'light';
  const stage = new Stage(element, input, callbacks);
  const { meta, options } = stage;
  const names = [
    options.layout ?? meta.first ?? Object.keys(meta.layouts)[0],
    options.beside ?? '',
  ].filter((name) => name in meta.layouts);
  const opened = stage.scene.open([
    ...buffersOf(meta, options, names),
    `codes.${stage.colouringName}`,
  ]); // on its way while the rest is built
  const actions = new Actions(stage);
  const gestures = new Gestures(stage, actions);
  stage.pictures.load();
  const go = (/** @type {Target} */ target) => fly(stage, actions, target);
  buildSpoken(stage, actions);
  const near = (/** @type {Rect} */ box) => {
    const { at } = gestures;
    return at && holds(box, ...at, 80) && !holds(box, ...at) ? 0.4 : 1;
  };
  const more = buildMore(stage, actions, {
    update: (options) => {
      if (options.colouring) callbacks.onAct?.('colour', options.colouring);
      update(stage, actions, { options });
    },
    save: () => savePicture(stage),
  });
  const journey = new Journey(stage, actions, (on) => tools.touring(on));
  const tools = buildTools(
    stage,
    actions,
    () => journey.toggle(),
    () => palette(),
    more,
  );
  const bar = buildBar(stage, actions, tools.bar, more.box, near, (...names) =>
    callbacks.onAct?.('class', JSON.stringify(names)),
  );
  stage.hit.addEventListener('pointermove', bar.follow);
  const tourbar = buildTourbar(stage, actions);
  const keys = buildKeys(stage);
  const palette = buildPalette(stage, actions, go, () => [
    ...Object.entries(stage.meta.layouts).map(([name, { title }]) => ({
      label: `Show ${title}`,
      run: () => actions.morph(stage.views[0], name),
    })),
    { label: 'Show all panels', key: '0', run: () => actions.home(stage.views[0]) },
    { label: 'Show all rows again', run: () => actions.filter({}) },
    { label: 'Select with the lasso', key: 'L', run: () => tools.choose('lasso') },
    { label: 'Select with a box', key: 'B', run: () => tools.choose('box') },
    { label: 'Tour of the fullest panels', run: () => journey.toggle() },
    { label: 'Save the picture', run: () => savePicture(stage) },
    { label: 'Show all keys', key: '?', run: keys },
    ...(callbacks.acts?.() ?? []),
  ]);
  /** @type {Label[]} */ let labels = [];
  buildCard(stage, actions, () => labels);
  listenToKeys(stage, actions, {
    choose: tools.choose,
    tour: tourbar.run,
    search: palette,
    keys,
    halt: () => journey.stop(),
    go,
  });

  stage.overlays.unshift(
    drawNames,
    drawAxes,
    drawGhosts,
    () => drawRings(stage, ringed),
    () => drawLabels(stage, labels),
    drawHeaders,
    drawHeld,
    () => drawPath(stage, gestures.path),
    bar.follow,
  );
  let ringed = ringedRows(stage);
  stage.settled.push(() => {
    labels = placeLabels(stage);
    ringed = ringedRows(stage);
  });
  stage.canvas.addEventListener('webglcontextlost', (event) => event.preventDefault());
  stage.canvas.addEventListener('webglcontextrestored', () => stage.restore());
  const sizes = new ResizeObserver(() => stage.resize());
  element.classList.toggle('appca-quiet', isCompact(stage.options));
  const ready = (async () => {
    await opened;
    stage.rows.readMarks(stage.scene);
    stage.views = await Promise.all(names.map((name) => makeView(stage, name)));
    await recolour(stage);
    if (stage.gone) return;
    stage.startSheets();
    sizes.observe(element);
    stage.resize();
    actions.changed.forEach((tell) => tell());
    if (stage.options.filter) actions.filter(stage.options.filter);
  })();
  return {
    ready,
    stage,
    actions,
    /** Another scene of the same data, or options. @param {Next} next */
    update: (next) => update(stage, actions, next),
    /** @param {string} layout @param {number} [view] */
    morph: (layout, view = 0) => actions.morph(stage.views[view], layout),
    /** @param {string | number} from @param {string | number} to @param {number} [t] where to stop; without it the turn plays */
    tour: (from, to, t) => {
      const [view] = stage.views;
      const [a, b] = [from, to].map((panel) =>
        typeof panel === 'number'
          ? panel
          : view.layout.panels.findIndex(({ name }) => name === panel),
      );
      if (view.opened?.panel !== a && stage.tour?.a.index !== a) {
        actions.open(view, a);
        view.shift = 1;
        stage.tweens.stop('shift');
      }
      actions.tour(view, b, t);
    },
    /** @param {Uint8Array | Iterable<number>} rows packed bits or row numbers */
    select: (rows) => {
      if (rows instanceof Uint8Array) stage.rows.unpack(rows);
      else stage.rows.applyList(rows, 'replace');
      stage.settleSoon();
    },
    fly: go,
    destroy: () => {
      stage.gone = true;
      clearTimeout(stage.timer);
      cancelAnimationFrame(stage.request);
      sizes.disconnect();
      stage.gpu.destroy();
      element.replaceChildren();
      element.classList.remove('appca-explorer');
    },
  };
}

/** The lasso or box being drawn. @param {Stage} stage @param {[number, number][]} path */
function drawPath({ context, theme }, path) {
  if (path.length < 2) return;
  context.beginPath();
  path.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
  context.fillStyle = `${theme.primary}22`;
  context.fill();
  context.setLineDash([5, 4]);
  context.strokeStyle = theme.primary;
  context.lineWidth = 1.5;
  context.stroke();
  context.setLineDash([]);
}
