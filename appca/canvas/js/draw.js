/** One frame: grounds, points (direct or from the layer) and images; and what lies over them. */

import {
  chooseImages,
  drawImages,
  imageSize,
  drawGrounds,
  drawnOf,
  drawPoints,
  groundOf,
  jobsOf,
  passesOf,
  pointsIn,
  scissor,
} from './gl/points.js';
import { carried, touches, placeView, tableOf } from './layout/geometry.js';
import { HIDDEN } from './scene/rows.js';
import { heldRows } from './text/marks.js';
import { rgb } from './theme.js';

const DIRECT = 20000; // points drawn anew in every frame; of more, a layer is carried along
const FEW = 60000; // points drawn anew all the same where the layer would be scaled
const ONCE = 100000; // points of a layer drawn at once
const SAMPLE = 0.03; // points a pixel of what is shown at once when colours or the selection changed; the rest follows
const PART = 'sample ';
const SCALED = 4; // times its own pixels an image is drawn at most
const IMAGES_EVERY = 130; // ms between choices of images while moving

/** @param {Stage} stage */
export function drawFrame(stage) {
  const { gpu, theme, rows, views, width, height, dpr } = stage;
  const { gl } = gpu;
  /** @type {Look} */ const look = {
    width,
    height,
    dpr,
    selecting: rows.selected > 1, // one row has its ring
    only: stage.only,
    grey: theme.grey,
  };
  gpu.update(rows, stage.colouring, stage.dark);
  stage.placed = views.flatMap(placeView);
  const table = tableOf(stage.placed, stage.panels, drawnOf);
  stage.tour?.place(stage, table);
  gpu.setTable(table);
  gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
  gl.disable(gl.SCISSOR_TEST);
  gl.clearColor(...rgb(theme.ground), 1);
  gl.clear(gl.COLOR_BUFFER_BIT);
  const heavy = prepareLayer(stage, look);
  gl.flush(); // the card draws the points while the rest is prepared
  gl.enable(gl.SCISSOR_TEST);
  stage.stats.whole = true;
  for (const view of views) {
    const here = stage.placed.filter((spot) => spot.view === view);
    drawGrounds(
      gpu,
      [...(stage.morph?.fading(view) ?? []), ...here.map((spot) => groundNow(stage, spot))],
      theme,
      look,
      view.rect,
    );
    const shown = here.filter((spot) => !stage.tour?.hides(spot));
    if (stage.morph?.view === view) stage.morph.draw(stage, look);
    else if (heavy) drawHeavy(stage, view, shown, look, heavy);
    else direct(stage, shown, look, Infinity);
    stage.stats.whole &&=
      !heavy || (layerIs(stage, heavy) && !stage.layer.key.startsWith(heavy + PART));
  }
  drawAllImages(stage, look);
  gl.disable(gl.SCISSOR_TEST);
  stage.tour?.draw(stage, look);
  gl.flush(); // the card draws while the words are written
}

/** @param {Stage} stage @param {Placed} spot */
function groundNow({ tour, morph }, spot) {
  const { view, panel, part, strength } = spot;
  return {
    ...groundOf(tour?.hides(spot) ? tour.shown(spot) : spot),
    focus: view.focus === panel.index && !part.inset && view.focusShown,
    strength: strength * (morph?.view === view ? morph.t : 1),
    apart: view.shift >= 1,
  };
}

/** @param {Stage} stage @param {Placed[]} placed @param {Look} look @param {number} budget */
function direct(stage, placed, look, budget) {
  for (const job of jobsOf(placed, budget)) {
    const { array } = stage.gpu.layout(job.layout);
    for (const pass of passesOf(look))
      drawPoints(
        stage.gpu,
        look,
        { array },
        job.base,
        job.firsts,
        pass === 2 ? job.fulls : job.counts,
        [pass],
      );
  }
}

/** Whether points come from the layer, which is brought up to date while nothing moves. @param {Stage} stage @param {Look} look */
function prepareLayer(stage, look) {
  const { layer, placed, rows, views } = stage;
  const total = pointsIn(placed);
  if (total * look.dpr <= DIRECT || stage.morph) {
    layer.building = ''; // of what is not shown any more
    return '';
  }
  const shape = `${stage.width} ${stage.height} ${look.dpr} ${views.map((view) => `${view.layout.name} ${view.layout.revision} ${view.rect.x} ${view.opened ? `${view.opened.panel} ${view.opened.range}` : ''}`)}`;
  const cams = views.map(({ cam }) => `${cam.x} ${cam.y} ${cam.k}`).join();
  const content = `${shape}|${rows.codesChanged} ${rows.flagsChanged} ${stage.only} ${stage.dark} ${stage.colouringName} ${stage.tour ? 'tour' : ''} ${JSON.stringify(stage.options.filter ?? '')}|`;
  const key = `${content}|${cams}`;
  const steady = !stage.moving && views.every((view) => view.shift >= 1);
  const still = steady && !stage.waiting;
  const shown = placed.filter((spot) => !stage.tour?.hides(spot));
  const from = views.map(({ cam }) => ({ ...cam }));
  if (steady && !layerIs(stage, content)) {
    // a fair sample at once
    const most =
      total * look.dpr <= ONCE
        ? Infinity
        : SAMPLE * shown.reduce((sum, { plot }) => sum + plot.w * plot.h, 0);
    const under =
      most < total && layer.key.startsWith(`${shape}|`) && layer.key.endsWith(`|${cams}`)
        ? shown
        : [];
    layer.quick(
      most < total ? `${content}${PART}|${cams}` : key,
      jobsOf(shown, most),
      look,
      from,
      under,
    );
  }
  if (still && layer.key !== key && layer.building !== key) {
    layer.begin(key, jobsOf(shown, Infinity), look, from);
    layer.step(look); // at once: a frame less to wait
  }
  if (!still) layer.building = '';
  stage.building = layer.building ? () => layer.step(look) : null;
  return content;
}

/** Whether the layer shows these rows in these colours. @param {Stage} stage @param {string} content */
const layerIs = ({ layer }, content) => layer.key.startsWith(content);

/** @param {Stage} stage @param {View} view @param {Placed[]} placed @param {Look} look @param {string} content */
function drawHeavy(stage, view, placed, look, content) {
  const { layer, gpu } = stage;
  const { rect } = view;
  const from = layer.cameras[stage.views.indexOf(view)];
  const scale = from ? view.cam.k / from.k : 0;
  const few = pointsIn(stage.placed) * stage.dpr <= FEW;
  if (
    !layerIs(stage, content) ||
    view.shift < 1 ||
    scale < 0.35 ||
    scale > 3 ||
    (few && scale !== 1)
  ) {
    direct(stage, placed, look, few ? Infinity : stage.budget);
    return;
  }
  const to = view.opened ? rect : carried(from, view.cam, rect);
  layer.show(placed, look, to, rect);
  const edges = [
    { x: rect.x, y: rect.y, w: to.x - rect.x, h: rect.h },
    { x: to.x + to.w, y: rect.y, w: rect.x + rect.w - to.x - to.w, h: rect.h },
    { x: to.x, y: rect.y, w: to.w, h: to.y - rect.y },
    { x: to.x, y: to.y + to.h, w: to.w, h: rect.y + rect.h - to.y - to.h },
  ].filter(({ w, h }) => w > 1 && h > 1);
  for (const edge of edges) {
    scissor(gpu.gl, look, edge);
    const near = placed.filter(({ card }) => touches(card, edge));
    direct(stage, near, look, stage.budget / edges.length);
  }
  scissor(gpu.gl, look, rect);
}

/** @type {WeakMap<Stage, {wanted: import('./gl/points.js').Wanted, px: number, card: string, rect: Rect}[]>} */
const chosen = new WeakMap();

/** @param {Stage} stage @param {Look} look */
function drawAllImages(stage, look) {
  const { sheets, scene, rows, gpu } = stage;
  stage.stats.images = 0;
  if (!sheets || stage.options.images === false || stage.morph) return;
  const old = chosen.get(stage);
  const now = performance.now();
  if (!old || stage.frame === '' || (stage.moving && now - Number(stage.frame) > IMAGES_EVERY)) {
    stage.frame = String(now);
    const groups = stage.views.flatMap((view) =>
      [true, false].map((open) =>
        stage.placed.filter(
          (spot) => spot.view === view && spot.open === open && !stage.tour?.hides(spot),
        ),
      ),
    );
    const [h, w] = sheets.meta.tile;
    const pictures = groups
      .filter((group) => group.length)
      .map((group) => {
        const sides = group
          .filter((spot) => !spot.part.inset)
          .map(({ plot }) => Math.min(plot.w, plot.h))
          .sort((a, b) => a - b);
        const largest = Math.min(340, stage.height * 0.6, SCALED * Math.max(h, w));
        const px = imageSize(sides[sides.length >> 1] ?? 300, largest);
        return {
          px,
          card: stage.theme.panel,
          rect: group[0].view.rect,
          wanted: chooseImages(
            group,
            px,
            (row) => scene.tile[row],
            (row) => (rows.flags[row] & HIDDEN) !== 0,
            stage.options.dense,
          ),
        };
      });
    chosen.set(stage, pictures);
    /** @type {Map<number, number>} */ const sheetsWanted = new Map();
    const held = heldRows(stage).map((row) => scene.tile[row]);
    for (const tile of [...pictures.flatMap(({ wanted }) => wanted.tile), ...held]) {
      const sheet = Math.floor(tile / sheets.meta.per_sheet);
      sheetsWanted.set(sheet, (sheetsWanted.get(sheet) ?? 0) + 1);
    }
    sheets.ask(sheetsWanted);
  }
  for (const { wanted, px, card, rect } of chosen.get(stage) ?? []) {
    scissor(gpu.gl, look, rect);
    stage.stats.images += drawImages(gpu, sheets, wanted, look, px, card);
  }
}

/** @param {Stage} stage */
export const imagesShown = (stage) => chosen.get(stage) ?? [];

/** Words and what else lies over the points. @param {Stage} stage */
export function drawOver(stage) {
  const { context, dpr, over } = stage;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, over.width, over.height);
  context.setTransform(dpr, 0, 0, dpr, 0, 0);
  stage.overlays.forEach((overlay) => overlay(stage));
}
