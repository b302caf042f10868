/** Mount the picture in an element and hand back what a host can do with it. */

import { Actions } from './input/actions.js';
import { fly } from './input/fly.js';
import { Gestures } from './input/gestures.js';
import { listenToKeys } from './input/keys.js';
import { holds } from './layout/rect.js';
import { buffersOf, isCompact, makeView } from './layout/views.js';
import { buildBar } from './parts/bar.js';
import { buildCard } from './parts/card.js';
import { buildMore } from './parts/more.js';
import { savePicture } from './parts/save.js';
import { Journey } from './move/journey.js';
import { buildKeys } from './find/dialog.js';
import { buildPalette } from './find/palette.js';
import { buildSpoken } from './parts/spoken.js';
import { buildTools } from './parts/tools.js';
import { buildTourbar } from './parts/tourbar.js';
import { recolour } from './scene/recolour.js';
import { Stage } from './stage.js';
import { drawGhosts, drawRings, ringedRows } from './text/ghosts.js';
import { drawHeaders } from './text/headers.js';
import { drawHeld } from './text/held.js';
import { drawLabels, placeLabels } from './text/labels.js';
import { drawAxes, drawNames } from './text/names.js';
import { update } from './update.js';

/** @typedef {ReturnType<typeof mount>} Handle */

/** @param {HTMLElement} element @param {import('./types.js').Input} input @param {import('./types.js').Callbacks} [callbacks] */
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
  const go = (/** @type {import('./input/fly.js').Target} */ target) => fly(stage, actions, target);
  buildSpoken(stage, actions);
  const near = (/** @type {import('./types.js').Rect} */ box) => {
    const { at } = gestures;
    return at && holds(box, ...at, 80) && !holds(box, ...at) ? 0.4 : 1;
  };
  const more = buildMore(stage, actions, {
    update: (options) => update(stage, actions, { options }),
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
  /** @type {import('./text/labels.js').Label[]} */
  let labels = [];
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
    /** Another scene of the same data, or options. @param {import('./update.js').Next} next */
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
