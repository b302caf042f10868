/** What the picture consists of, and its loop: one frame when something changed, and what waits until nothing moves. */

import { drawFrame, drawOver } from './draw.js';
import { Gpu } from './gl/gpu.js';
import { Sheets, Layer } from './gl/points.js';
import { clamp } from './layout/geometry.js';
import { share } from './layout/view.js';
import { Tweens } from './motion.js';
import { element } from './parts/dom.js';
import { Rows } from './scene/rows.js';
import { Scene } from './scene/scene.js';
import { Pictures } from './text/headers.js';
import { THEMES } from './theme.js';

/** @type {WeakMap<Layout, number>} different rows of a layout */ const counted = new WeakMap();

/** @param {Stage} stage */
export function tell(stage) {
  const { root, stats, rows } = stage;
  const [view] = stage.views;
  const { layout, opened } = view;
  root.classList.remove('appca-blank');
  Object.assign(root.dataset, {
    points: layout.panels.reduce((sum, { count }) => sum + count, 0),
    rows: different(layout, rows.count),
    panels: layout.panels.length,
    thumbnails: stats.images,
    selected: rows.selected,
    held: stage.held,
    renders: stats.renders,
    frameMs: stats.ms.toFixed(2),
    theme: stage.dark ? 'dark' : 'light',
    view:
      stage.views.map((shownView) => shownView.layout.name).join('+') +
      (opened ? ` ${layout.panels[opened.panel].name}` : ''),
    drawn: stats.whole ? 'all' : 'sample',
    settled: stage.still && !stage.layer.building ? 'yes' : '',
  });
}

/** @param {Layout} layout @param {number} all */
function different(layout, all) {
  const cached = counted.get(layout);
  if (cached !== undefined) return cached;
  const seen = new Uint8Array(all);
  let count = 0;
  for (const { start, count: many } of layout.panels)
    for (const row of layout.rows.subarray(start, start + many)) {
      count += 1 - seen[row];
      seen[row] = 1;
    }
  counted.set(layout, count);
  return count;
}

let mounted = 0; // canvases so far, so that elements have names of their own
const TIGHT = 600; // px of width up to which a canvas is laid out as on a phone
const REST = 140; // ms without movement until the picture settles
const SHOWN = 40; // ms for what has changed in a picture that stands to be on the screen

export class Stage {
  /** @param {HTMLElement} root @param {Input} input @param {Callbacks} callbacks */
  constructor(root, input, callbacks) {
    this.root = root;
    this.id = `appca-${(mounted += 1)}`;
    this.callbacks = callbacks;
    this.options = { ...input.options };
    this.scene = new Scene(input);
    this.rows = new Rows(this.scene.rows);
    this.canvas = element('canvas', 'appca-gl');
    this.over = element('canvas', 'appca-over');
    this.hit = element('div', 'appca-hit');
    root.append(this.canvas, this.over, this.hit);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext('2d'));
    this.tweens = new Tweens();
    /** @type {View[]} */ this.views = [];
    this.gpu = new Gpu(this.canvas);
    this.layer = new Layer(this.gpu);
    /** @type {Sheets | null} */ this.sheets = null;
    this.pictures = new Pictures(this);
    this.only = -1; // the class shown alone
    this.held = input.options?.held ?? -1; // the row whose details are on the page
    this.near = input.options?.near ?? []; // the rows nearest to it
    this.chosen = -1; // the one of them that keys have come to
    /** @type {import('./motion.js').Morph | null} */ this.morph = null;
    /** @type {import('./motion.js').Tour | null} */ this.tour = null;
    /** @type {Placed[]} */ this.placed = [];
    this.moving = false;
    this.waiting = false; // to settle
    this.still = false; // settled: words are placed
    this.gone = false;
    this.active = 0; // the view the hand was last in
    this.request = 0;
    this.dirty = true;
    /** @type {(() => boolean) | null} one more step of the layer; true when it stands */
    this.building = null;
    this.timer = 0;
    this.budget = 30000; // points drawn while moving, adapted
    this.stats = { renders: 0, images: 0, ms: 0, last: 0, whole: true };
    /** @type {((stage: Stage) => void)[]} drawn over the points in every frame */
    this.overlays = [];
    /** @type {((stage: Stage) => void)[]} called when the picture stands still */
    this.settled = [];
    this.width = 0;
    this.height = 0;
    this.dpr = 1;
  }

  get meta() {
    return this.scene.meta;
  }
  get dark() {
    return this.options.theme === 'dark';
  }
  get theme() {
    return this.dark ? THEMES.dark : THEMES.light;
  }
  /** Pixels of the screen a pixel of the page. */
  get ratio() {
    return clamp(this.options.dpr ?? devicePixelRatio, 1, 3);
  }
  get colouringName() {
    return this.options.colouring ?? Object.keys(this.meta.colourings)[0] ?? '';
  }
  /** @returns {Colouring | undefined} */
  get colouring() {
    return this.computed?.name === this.colouringName
      ? this.computed.colouring
      : this.meta.colourings[this.colouringName];
  }
  get palette() {
    return this.gpu.colours ?? new Uint8Array(4);
  }
  /** Panels in the panel table; the tour's stage is the last. */
  get panels() {
    return (
      this.views.reduce(
        (sum, view) => sum + view.parts.reduce((all, part) => all + part.layout.panels.length, 0),
        0,
      ) + 1
    );
  }

  startSheets() {
    const { input } = this.scene;
    this.sheets =
      input.meta.sheets && input.sheets?.tile
        ? new Sheets(this.gpu, input, () => {
            this.frame = '';
            this.schedule();
          })
        : null;
  }
  /** @type {{name: string, colouring: Colouring} | null} a colouring made here */
  computed = null;
  frame = ''; // what the images were chosen for
  cameUntil = 0; // chips say till then what components were before

  resize() {
    const { clientWidth, clientHeight } = this.root;
    if (!clientWidth || !clientHeight) return; // hidden for now
    const dpr = this.ratio;
    if (clientWidth === this.width && clientHeight === this.height && dpr === this.dpr) return;
    [this.width, this.height, this.dpr] = [clientWidth, clientHeight, dpr];
    this.root.classList.toggle('appca-tight', clientWidth <= TIGHT);
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.max(1, Math.round(clientWidth * dpr));
      canvas.height = Math.max(1, Math.round(clientHeight * dpr));
    }
    share(this);
    this.settleSoon();
  }

  /** The view at a point of the page. @param {number} x */
  viewAt(x) {
    return this.views.find(({ rect }) => x >= rect.x && x < rect.x + rect.w) ?? this.views[0];
  }

  /** The picture moves: draw, and settle when it rests. */
  moved() {
    this.moving = true;
    this.root.dataset.settled = '';
    this.settleSoon();
  }

  settleSoon() {
    this.root.dataset.settled = '';
    this.still = false;
    this.waiting = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), this.moving ? REST : SHOWN);
    this.schedule();
  }

  settle() {
    if (this.tweens.moving) return this.settleSoon();
    this.moving = this.waiting = false;
    this.frame = '';
    this.draw(false);
    if (this.building) drawOver(this); // the new words come with all points
    this.settled.forEach((tell) => tell(this));
    this.still = true;
    if (this.building) return this.ask();
    drawOver(this);
    tell(this);
  }

  schedule() {
    this.dirty = true;
    this.ask();
  }

  /** @private */
  ask() {
    if (this.request || this.gone) return;
    this.request = requestAnimationFrame((now) => {
      this.request = 0;
      const gap = now - this.stats.last;
      if (this.moving && gap < 500)
        this.budget = clamp(this.budget * (gap > 50 ? 0.85 : gap < 28 ? 1.1 : 1), 8000, 150000);
      this.stats.last = now;
      const { moving } = this.tweens;
      this.tweens.tick(now);
      if (moving && !this.tweens.moving) return this.settle(); // it is where it was to go
      if (this.building?.()) this.dirty = true;
      if (this.dirty) this.draw();
      if (this.tweens.moving) this.moved();
      else if (this.building) this.ask();
    });
  }

  /** @param {boolean} [over] whether what lies over the points is drawn, too */
  draw(over = true) {
    if (this.gone || !this.views.length || this.gpu.gl.isContextLost()) return;
    const start = performance.now();
    this.dirty = false;
    this.building = null;
    drawFrame(this);
    if (over) drawOver(this);
    this.stats.ms = performance.now() - start;
    this.stats.renders += 1;
    tell(this);
  }

  /** Start anew on the card after its context was lost. */
  restore() {
    this.gpu = new Gpu(this.canvas);
    this.layer = new Layer(this.gpu);
    this.rows.flagsChanged += 1;
    this.startSheets();
    this.building = null;
    this.morph = null;
    this.frame = '';
    this.tour?.restore(this);
    this.settleSoon();
  }
}
