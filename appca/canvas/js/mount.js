/** Mount the picture in an element; return functions for its host. */

import { buildKeys, buildPalette } from './parts/palette.js';
import { Actions, fly } from './input/actions.js';
import { buildSpoken, listenToHand, listenToKeys } from './input/gestures.js';
import { holds } from './layout/geometry.js';
import { buffersOf, isCompact, makeView, opening, share } from './layout/view.js';
import { buildJourney } from './motion.js';
import { buildBar } from './parts/bar.js';
import { buildCard } from './parts/card.js';
import { trace } from './parts/dom.js';
import { buildMore, buildTools, buildTourbar, savePicture } from './parts/tools.js';
import { colouredBy, recolour, Scene } from './scene/scene.js';
import { Stage } from './stage.js';
import { drawAxes, drawHeaders, drawNames } from './text/headers.js';
import { drawGhosts, drawHeld, drawLabels, drawRings, placeLabels } from './text/labels.js';

const CAME = 3000; // ms for which a chip shows a component's origin

/** @typedef {Partial<Input>} Next another scene, and options */

/** @param {Stage} stage @param {Actions} actions @param {Next} next */
async function update(stage, actions, { options: given = {}, ...input }) {
  const before = { ...stage.options };
  const now = namesOf(stage.views);
  const opens = !given.layout && `${now}` === `${Object.values(opening(stage.meta))}`;
  const options = input.meta && opens ? { ...given, ...opening(input.meta) } : given;
  Object.assign(stage.options, options);
  const { came, panels, compact } = stage.options;
  actions.follow(options);
  if (String(came ?? '') !== String(before.came ?? '')) {
    stage.cameUntil = performance.now() + CAME;
    setTimeout(() => stage.settleSoon(), CAME + 50);
  }
  const scene =
    input.meta && input.buffers && (await new Scene(/** @type {Input} */ (input)).open());
  if (stage.gone) return;
  const chosen = options.layout === before.layout ? undefined : options.layout;
  const name = chosen || now[0]; // the user may have changed it since the page chose it
  if (scene) await change(stage, actions, scene, [name, options.beside ?? now[1]]);
  else if (String(panels) !== String(before.panels) || compact !== before.compact)
    actions.replace(stage.views[0], await makeView(stage, name));
  else await actions.morph(stage.views[0], name);
  if (!scene && options.colouring && options.colouring !== before.colouring) await recolour(stage);
  if (!scene && options.beside !== undefined && options.beside !== now[1])
    await beside(stage, actions, options.beside);
  if (options.filter) actions.filter(options.filter);
  stage.root.dataset.theme = stage.dark ? 'dark' : 'light';
  stage.root.classList.toggle('appca-quiet', isCompact(stage.options));
  if (stage.ratio !== stage.dpr) stage.resize();
  stage.frame = '';
  if (scene && !stage.tweens.moving)
    stage.settle(); // nothing moves: draw everything at once
  else stage.settleSoon();
}

/** Return the layouts of one or two views. @param {View[]} views */
const namesOf = ([first, second]) => [first.layout.name, second?.layout.name ?? ''];

/** @param {Stage} stage @param {Actions} actions @param {Scene} scene @param {string[]} names of the layouts of the first view and the second */
async function change(stage, actions, scene, [layout, beside]) {
  const { meta, rows } = scene;
  if (rows !== stage.rows.count)
    throw new Error(
      `The new scene has ${rows} rows and the picture ${stage.rows.count}; mount it again.`,
    );
  const names = Object.values(opening(meta, { layout, beside })).filter(Boolean);
  const next = { scene, meta, options: stage.options };
  const made = await Promise.all(names.map((name) => makeView(next, name)));
  if (!colouredBy(meta, stage.colouringName).length) {
    if (!(stage.colouringName in meta.colourings))
      [stage.options.colouring] = Object.keys(meta.colourings);
    await scene.codes(stage.colouringName);
  }
  if (stage.gone) return;
  // nothing is drawn from here until the new views exist: scene, rows and views change together
  const { meta: old } = stage.scene;
  actions.endTour();
  stage.scene = scene;
  if (JSON.stringify(old.sheets) !== JSON.stringify(meta.sheets)) stage.startSheets();
  stage.rows.readMarks(scene);
  stage.pictures.load();
  stage.views = [stage.views[0], ...made.slice(1)];
  actions.replace(stage.views[0], made[0]);
  await recolour(stage);
}

/** Show a second view, or only one. @param {Stage} stage @param {Actions} actions @param {string} name */
async function beside(stage, actions, name) {
  const second = name in stage.meta.layouts ? [await makeView(stage, name)] : [];
  stage.views = [stage.views[0], ...second];
  share(stage);
  actions.after();
}

/** Show a layout, or "both". @param {Stage} stage @param {Actions} actions @param {string} name */
async function show(stage, actions, name) {
  const { layout, beside: second } = opening(stage.meta, { layout: name });
  if ([second, namesOf(stage.views)[1]].includes('pairs')) await beside(stage, actions, second);
  await actions.morph(stage.views[0], layout);
}

/** @param {HTMLElement} element @param {Input} input @param {Callbacks} [callbacks] */
export function mount(element, input, callbacks = {}) {
  element.classList.add('appca-explorer', 'appca-blank');
  element.dataset.theme = input.options?.theme ?? 'light';
  const stage = new Stage(element, input, callbacks);
  const { meta, options } = stage;
  const names = Object.values(opening(meta, options)).filter(Boolean);
  const buffers = [...buffersOf(meta, options, names), `codes.${stage.colouringName}`];
  const opened = stage.scene.open(buffers); // fetched while the rest is built
  const actions = new Actions(stage);
  const hand = listenToHand(stage, actions);
  stage.pictures.load();
  const go = (/** @type {Target} */ target) => fly(stage, actions, target);
  buildSpoken(stage, actions);
  const near = (/** @type {Rect} */ box) => {
    const { at } = hand;
    return at && holds(box, ...at, 80) && !holds(box, ...at) ? 0.4 : 1;
  };
  const save = () => savePicture(stage);
  const set = (/** @type {Options} */ options) => {
    if (options.colouring) callbacks.onAct?.('colour', options.colouring);
    update(stage, actions, { options });
  };
  const more = buildMore(stage, actions, { update: set, save });
  const { toggle: tour, stop: halt } = buildJourney(stage, actions, (on) => tools.touring(on));
  const tools = buildTools(stage, actions, tour, () => palette(), more);
  const rename = (/** @type {string[]} */ ...names) =>
    callbacks.onAct?.('class', JSON.stringify(names));
  const bar = buildBar(stage, actions, tools.bar, more.box, near, rename);
  stage.hit.addEventListener('pointermove', bar.follow);
  const tourbar = buildTourbar(stage, actions);
  const keys = buildKeys(stage);
  const palette = buildPalette(stage, actions, go, () => [
    ...Object.entries(stage.meta.layouts).map(([name, { title }]) => ({
      label: `Show ${title}`,
      run: () => show(stage, actions, name),
    })),
    { label: 'Show all panels', key: '0', run: () => actions.home(stage.views[0]) },
    { label: 'Show all rows again', run: () => actions.filter({}) },
    { label: 'Select with the lasso', key: 'L', run: () => tools.choose('lasso') },
    { label: 'Select with a box', key: 'B', run: () => tools.choose('box') },
    { label: 'Tour of the fullest panels', run: tour },
    { label: 'Save the picture', run: save },
    { label: 'Show all keys', key: '?', run: keys },
    ...(callbacks.onAct
      ? [{ label: 'Leave out the selected rows', key: 'Del', run: () => actions.leaveOut() }]
      : []),
    ...(callbacks.acts?.() ?? []),
  ]);
  /** @type {Label[]} */ let labels = [];
  buildCard(stage, actions, () => labels);
  const does = { choose: tools.choose, tour: tourbar.run, search: palette, keys, halt, go };
  listenToKeys(stage, actions, does);
  const drawWords = () => drawLabels(stage, labels);
  const drawHand = () => drawPath(stage, hand.path);
  const under = [drawNames, drawAxes, drawGhosts, drawRings, drawWords, drawHeaders, drawHeld];
  stage.overlays.unshift(...under, drawHand, bar.follow);
  stage.settled.push(() => (labels = placeLabels(stage)));
  stage.canvas.addEventListener('webglcontextlost', (event) => {
    event.preventDefault();
    stage.gpu.sent = 0;
  });
  stage.canvas.addEventListener('webglcontextrestored', () => stage.gone || stage.restore());
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
    /** Show another scene of the same data, or change options. @param {Next} next */
    update: (next) => update(stage, actions, next),
    /** @param {string} name of a layout, or "both" */
    show: (name) => show(stage, actions, name),
    /** @param {string} layout @param {number} [view] */
    morph: (layout, view = 0) => actions.morph(stage.views[view], layout),
    /** @param {number} from panel @param {number} to @param {number} [t] where to stop; without it the turn plays */
    tour: (from, to, t) => {
      const [view] = stage.views;
      if (view.opened?.panel !== from && stage.tour?.a.index !== from) {
        actions.open(view, from);
        view.shift = 1;
        stage.tweens.running.delete('shift');
      }
      actions.tour(view, to, t);
    },
    /** @param {Uint8Array | Iterable<number>} rows packed bits or row numbers */
    select: (rows) => {
      if (rows instanceof Uint8Array) stage.rows.unpack(rows);
      else stage.rows.applyList(rows, 'replace');
      stage.settleSoon();
    },
    fly: go,
    destroy: (keep = false) => {
      stage.gone = true;
      clearTimeout(stage.timer);
      for (const slot of stage.sheets?.slots ?? []) slot.sheet = -1; // moving points have no fixed place
      cancelAnimationFrame(stage.request);
      sizes.disconnect();
      if (keep) stage.gpu.clear([stage.sheets, stage.layer.kept, ...stage.layer.sheets]);
      else stage.gpu.gl.getExtension('WEBGL_lose_context')?.loseContext();
      element.replaceChildren();
      element.classList.remove('appca-explorer');
      return stage.gpu;
    },
  };
}

/** Mount the picture of a self-contained page in the browser's theme. @param {Input} input @param {{follow: () => void}} head its controls */
export function mountAlone(input, head) {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const { dataset } = document.documentElement;
  const themed = () => {
    /** @type {'light' | 'dark'} */ const theme = dark.matches ? 'dark' : 'light';
    dataset.theme = theme;
    return { theme };
  };
  const place = /** @type {HTMLElement} */ (document.getElementById('canvas'));
  const options = { ...input.options, ...themed() };
  const made = mount(place, { ...input, options }, { onSelect: () => head.follow() });
  Object.assign(window, { appca: made });
  dark.addEventListener('change', () => made.update({ options: themed() }));
  made.ready.then(() => {
    made.stage.settled.push(head.follow);
    head.follow();
    dataset.ready = 'yes';
  });
  return made;
}

/** Draw the current lasso or box. @param {Stage} stage @param {[number, number][]} path */
function drawPath({ context, theme }, path) {
  if (path.length < 2) return;
  const look = { colour: theme.primary, width: 1.5, dash: [5, 4], fill: `${theme.primary}22` };
  trace(context, look, () => {
    for (const at of path) context.lineTo(...at);
    context.closePath();
  });
}
