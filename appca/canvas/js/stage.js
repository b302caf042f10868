/** The parts of the picture, and the loop: draw a frame after each change, and defer work until nothing moves. */

import { Gpu } from './gl/gpu.js';
import { drawFrame, Layer, Sheets } from './gl/points.js';
import { clamp, holds, placeView } from './layout/geometry.js';
import { share } from './layout/view.js';
import { Tweens } from './motion.js';
import { element } from './parts/dom.js';
import { Rows } from './scene/rows.js';
import { Scene } from './scene/scene.js';
import { Pictures } from './text/headers.js';
import { THEMES } from './theme.js';

let mounted = 0; // number of canvases so far, so that elements have unique names
const TIGHT = 600; // maximum width in px of the layout for phones
export const BUDGET = 30000; // of points at first; slow machines adapt to fewer
const REST = 140; // ms without movement until the picture settles
const SHOWN = 40; // ms until a change of a still picture is on the screen
const WAIT = 25; // ms for which the browser may keep the page waiting for a frame
const QUICK = 30; // late frames that were finished in this time, until no more are late

export class Stage {
  /** @param {HTMLElement} root @param {Input} input @param {Callbacks} callbacks */
  constructor(root, input, callbacks) {
    this.root = root;
    this.id = `appca-${(mounted += 1)}`;
    this.callbacks = callbacks;
    this.options = { ...input.options };
    this.scene = new Scene(input);
    this.rows = new Rows(this.scene.rows);
    this.canvas = input.gpu?.canvas ?? element('canvas', 'appca-gl');
    this.over = element('canvas', 'appca-over');
    this.hit = element('div', 'appca-hit');
    root.append(this.canvas, this.over, this.hit);
    this.context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext('2d'));
    this.tweens = new Tweens();
    /** @type {View[]} */ this.views = [];
    this.gpu = input.gpu ?? new Gpu(this.canvas);
    this.layer = new Layer(this.gpu);
    /** @type {Sheets | null} */ this.sheets = null;
    this.pictures = new Pictures(this);
    this.only = -1; // code of the class shown alone, or -1
    this.held = input.options?.held ?? -1; // row under focus, whose details are on the page
    this.near = input.options?.near ?? []; // the rows nearest to it
    this.chosen = -1; // the row among them under keyboard focus
    /** @type {import('./motion.js').Morph | null} */ this.morph = null;
    /** @type {import('./motion.js').Tour | null} */ this.tour = null;
    /** @type {Placed[]} */ this.placed = [];
    /** @type {{wanted: import('./gl/points.js').Picture[], px: number, rect: Rect}[]} */
    this.images = [];
    this.frame = ''; // when the images were chosen; '' to choose again
    /** @type {{name: string, colouring: Colouring} | null} a colouring made here */
    this.computed = null;
    this.cameUntil = 0; // until then, chips show the components' origins
    this.moving = false;
    this.waiting = false; // timer that settles the picture
    this.slow = false; // the page would wait for frames: they are late
    this.quick = 0; // late frames in a row that were not slow
    this.waits = 0; // frames in a row for which the page waited
    this.still = false; // settled, with text in place
    this.gone = false;
    this.active = 0; // the view that the user last touched
    this.request = 0;
    this.dirty = true;
    /** @type {(() => boolean) | null} draw the next part of the layer; true when it is complete */
    this.building = null;
    this.timer = 0;
    this.budget = BUDGET; // points drawn while moving, adapted
    this.stats = { renders: 0, images: 0, ms: 0, last: 0, whole: true };
    /** @type {((stage: Stage) => void)[]} drawn over the points in every frame */
    this.overlays = [];
    /** @type {((stage: Stage) => void)[]} called when the picture is at rest */
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
  /** Screen pixels per page pixel. */
  get ratio() {
    return clamp(this.options.dpr ?? devicePixelRatio, 1, 3);
  }
  get colouringName() {
    return this.options.colouring ?? Object.keys(this.meta.colourings)[0] ?? '';
  }
  /** @returns {Colouring | undefined} */
  get colouring() {
    const { computed, colouringName: name } = this;
    return computed?.name === name ? computed.colouring : this.meta.colourings[name];
  }
  get palette() {
    return this.gpu.colours;
  }
  /** Number of panels in the panel table; the last is the tour's stage. */
  get panels() {
    const parts = this.views.flatMap((view) => view.parts);
    return parts.reduce((sum, { layout }) => sum + layout.panels.length, 1);
  }

  startSheets() {
    const { input } = this.scene;
    const arrived = () => {
      this.frame = '';
      this.schedule();
    };
    const there = input.meta.sheets && input.sheets?.tile;
    this.sheets = there ? new Sheets(this.gpu, input, arrived) : null;
  }

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
    this.gpu.sent = 0;
    this.slow = false; // the canvases are empty
    share(this);
    this.settleSoon();
  }

  /** Return the view at a point of the page. @param {number} x @param {number} y */
  viewAt(x, y) {
    return this.views.find(({ rect }) => holds(rect, x, y)) ?? this.views[0];
  }

  /** Draw a moving picture, and settle when it stops. */
  moved() {
    this.moving = true;
    this.settleSoon();
  }

  settleSoon() {
    this.root.dataset.settled = '';
    this.still = false;
    this.waiting = true;
    clearTimeout(this.timer);
    const rest = () => {
      if (this.gpu.sent) this.timer = setTimeout(rest, SHOWN);
      else this.settle();
    };
    this.timer = setTimeout(rest, this.moving ? REST : SHOWN);
    this.schedule();
  }

  settle() {
    if (this.gone) return;
    clearTimeout(this.timer);
    if (this.tweens.moving) return this.settleSoon();
    this.moving = this.waiting = false;
    this.frame = '';
    this.draw(false, this.slow);
    if (this.building && !this.slow) this.drawOver(); // the new text appears with all points
    this.settled.forEach((tell) => tell(this));
    this.still = true;
    if (this.building || this.gpu.sent) return this.ask();
    this.drawOver();
    this.tell();
  }

  schedule() {
    this.dirty = true;
    this.ask();
  }

  /** @private */
  ask() {
    if (this.request || this.gone) return;
    const go = (/** @type {number} */ now) => {
      this.request = 0;
      if (this.gone) return;
      const late = this.gpu.sent && this.gpu.readLate();
      if (late) this.present(late, now);
      if (this.gpu.sent) return this.ask();
      const gap = now - this.stats.last;
      if (this.moving && gap < 500)
        this.budget = clamp(this.budget * (gap > 50 ? 0.85 : gap < 28 ? 1.1 : 1), 8000, 150000);
      this.stats.last = now;
      const { moving } = this.tweens;
      this.tweens.tick(now);
      if (moving && !this.tweens.moving) return this.settle(); // the movement has reached its goal
      if (this.building?.()) this.dirty = true;
      if (this.dirty) this.draw(true, this.slow);
      if (this.tweens.moving) this.moved();
      else if (this.building || this.gpu.sent) this.ask();
    };
    // draw a slow frame after the browser's own frame, so that other work has its turn
    this.request = requestAnimationFrame((now) => (this.slow ? setTimeout(go, 0, now) : go(now)));
  }

  /** Show a late frame, unless it is of another scene. @private @param {ImageData} image @param {number} now */
  present(image, now) {
    this.quick = now - this.gpu.sent < WAIT ? this.quick + 1 : 0;
    this.slow = this.quick < QUICK;
    this.gpu.sent = 0;
    if (this.placed.every(({ view }) => this.views.includes(view))) this.drawOver(image);
    this.stats.renders += 1;
    this.tell();
  }

  /** @param {boolean} [over] whether to draw the text and marks, too @param {boolean} [late] whether to show both only when the GPU has finished */
  draw(over = true, late = false) {
    if (this.gone || !this.views.length || this.gpu.gl.isContextLost()) return;
    const start = performance.now();
    this.dirty = false;
    this.building = null;
    this.placed = this.views.flatMap(placeView);
    const { width, height, dpr, only, theme } = this;
    const selecting = this.rows.selected > 1; // a single row is marked by a ring
    const look = { width, height, dpr, only, selecting, grey: theme.grey };
    this.gpu.sent = 0;
    if (late) {
      this.gpu.drawLate((target) => drawFrame(this, look, target));
      this.root.dataset.settled = '';
    } else {
      drawFrame(this, look, null);
      if (over) this.drawOver();
      // does the page wait, twice in a row, for the frame that the browser makes of it?
      requestAnimationFrame((now) =>
        setTimeout(() => {
          if (width !== this.width || height !== this.height || dpr !== this.dpr) return;
          this.waits = performance.now() - now > WAIT ? this.waits + 1 : 0;
          if (this.waits > 1) [this.slow, this.quick] = [true, 0];
        }),
      );
    }
    this.stats.ms = performance.now() - start;
    if (late) return;
    this.stats.renders += 1;
    this.tell();
  }

  /** Draw the text and marks over the points. @private @param {ImageData} [points] of a late frame */
  drawOver(points) {
    const { context, dpr, over } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, over.width, over.height);
    if (points) context.putImageData(points, 0, 0);
    context.setTransform(dpr, 0, 0, dpr, 0, 0);
    this.overlays.forEach((overlay) => overlay(this));
  }

  /** Set attributes that describe the picture. @private */
  tell() {
    const { root, stats, rows, views, dark, held } = this;
    const [{ layout, opened }] = views;
    const names = views.map((view) => view.layout.name).join('+');
    root.classList.remove('appca-blank');
    Object.assign(root.dataset, {
      points: layout.panels.reduce((sum, { count }) => sum + count, 0),
      rows: rows.count,
      panels: layout.panels.length,
      thumbnails: stats.images,
      selected: rows.selected,
      held,
      renders: stats.renders,
      frameMs: stats.ms.toFixed(2),
      theme: dark ? 'dark' : 'light',
      view: names + (opened ? ` ${layout.panels[opened.panel].name}` : ''),
      drawn: stats.whole ? 'all' : 'sample',
      settled: this.still && !this.layer.building && !this.gpu.sent ? 'yes' : '',
    });
  }

  /** Restore GPU resources after the context was lost. */
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
