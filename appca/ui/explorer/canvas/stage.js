/** What the picture consists of, and its loop: one frame when something changed, and what waits until nothing moves. */

import { drawFrame } from './draw.js';
import { Gpu } from './gl/gpu.js';
import { Layer } from './gl/layer.js';
import { Sheets } from './gl/sheets.js';
import { View } from './layout/view.js';
import { Tweens } from './move/tween.js';
import { Rows } from './scene/rows.js';
import { Scene } from './scene/scene.js';
import { THEMES } from './theme.js';

const REST = 140; // ms without movement until the picture settles

export class Stage {
  /** @param {HTMLElement} root @param {import('./types.js').Input} input @param {import('./types.js').Callbacks} callbacks */
  constructor(root, input, callbacks) {
    this.root = root;
    this.callbacks = callbacks;
    this.options = { ...input.options };
    this.scene = new Scene(input);
    this.rows = new Rows(this.scene.rows);
    this.canvas = add(root, 'canvas', 'appca-gl');
    this.over = add(root, 'canvas', 'appca-over');
    this.hit = add(root, 'div', 'appca-hit');
    this.context = /** @type {CanvasRenderingContext2D} */ (this.over.getContext('2d'));
    this.tweens = new Tweens();
    /** @type {View[]} */
    this.views = [];
    this.gpu = new Gpu(this.canvas);
    this.layer = new Layer(this.gpu);
    /** @type {Sheets | null} */
    this.sheets = null;
    this.only = -1; // the class shown alone
    /** @type {import('./move/morph.js').Morph | null} */
    this.morph = null;
    /** @type {import('./move/tour.js').Tour | null} */
    this.tour = null;
    /** @type {import('./layout/place.js').Placed[]} */
    this.placed = [];
    this.moving = false;
    this.gone = false;
    this.active = 0; // the view the hand was last in
    this.request = 0;
    this.timer = 0;
    this.budget = 30000; // points drawn while moving, adapted
    this.stats = { renders: 0, points: 0, images: 0, ms: 0, last: 0 };
    /** @type {((stage: Stage) => void)[]} drawn over the points in every frame */
    this.overlays = [];
    /** @type {((stage: Stage) => void)[]} called when the picture stands still */
    this.settled = [];
    this.width = 0;
    this.height = 0;
    this.dpr = 1;
  }

  get meta() { return this.scene.meta; }
  get dark() { return this.options.theme === 'dark'; }
  get theme() { return this.dark ? THEMES.dark : THEMES.light; }
  get colouringName() { return this.options.colouring ?? Object.keys(this.meta.colourings)[0] ?? ''; }
  /** @returns {import('./types.js').Colouring | undefined} */
  get colouring() { return this.meta.colourings[this.colouringName]; }
  get palette() { return this.gpu.colours ?? new Uint8Array(4); }
  /** Panels in the panel table; the tour's stage is the last. */
  get panels() { return this.views.reduce((sum, view) => sum + view.parts.reduce((all, part) => all + part.layout.panels.length, 0), 0) + 1; }

  startSheets() {
    const { input } = this.scene;
    this.sheets = input.meta.sheets && input.sheets?.tile ? new Sheets(this.gpu, input, () => { this.frame = ''; this.schedule(); }) : null;
  }
  frame = ''; // what the images were chosen for

  /** Bring the colours of rows up to the colouring. */
  async recolour() {
    const name = this.colouringName;
    const codes = await this.scene.codes(name);
    if (name !== this.colouringName || this.gone) return;
    this.rows.codes = codes;
    this.rows.codesChanged += 1;
    this.schedule();
  }

  /** The view's layout by name, the map for the free half included. @param {string} name */
  async makeView(name) {
    const { layouts, components } = this.meta;
    const layout = await this.scene.layout(name);
    const map = layout.kind === 'triangle' ? (['umap', 'map', 'pca'].find((one) => layouts[one]?.kind === 'map') ?? Object.keys(layouts).find((one) => layouts[one].kind === 'map')) : undefined;
    const view = new View(layout, map ? await this.scene.layout(map) : null, components.length);
    view.filter = this.options.filter ?? {};
    return view;
  }

  /** Give each view its part of the canvas. */
  share() {
    const half = this.views.length > 1 ? Math.round(this.width * 0.56) : this.width;
    this.views.forEach((view, i) => view.resize(i ? { x: half + 1, y: 0, w: this.width - half - 1, h: this.height } : { x: 0, y: 0, w: half, h: this.height }));
    let base = 0;
    for (const view of this.views) for (const part of view.parts) { part.base = base; base += part.layout.panels.length; }
    this.frame = '';
  }

  resize() {
    const { clientWidth, clientHeight } = this.root;
    const dpr = Math.min(3, Math.max(1, this.options.dpr ?? devicePixelRatio ?? 1));
    if (clientWidth === this.width && clientHeight === this.height && dpr === this.dpr) return;
    [this.width, this.height, this.dpr] = [clientWidth, clientHeight, dpr];
    for (const canvas of [this.canvas, this.over]) {
      canvas.width = Math.max(1, Math.round(clientWidth * dpr));
      canvas.height = Math.max(1, Math.round(clientHeight * dpr));
    }
    this.share();
    this.settleSoon();
  }

  /** The view at a point of the page. @param {number} x */
  viewAt(x) {
    return this.views.find(({ rect }) => x >= rect.x && x < rect.x + rect.w) ?? this.views[0];
  }

  /** The picture moves: draw, and settle when it rests. */
  moved() {
    this.moving = true;
    this.settleSoon();
  }

  settleSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.settle(), REST);
    this.schedule();
  }

  settle() {
    if (this.tweens.moving) { this.settleSoon(); return; }
    this.moving = false;
    this.frame = '';
    this.draw();
    this.settled.forEach((one) => one(this));
    this.schedule();
  }

  schedule() {
    if (this.request || this.gone) return;
    this.request = requestAnimationFrame((now) => {
      this.request = 0;
      const gap = now - this.stats.last;
      if (this.moving && gap < 500) this.budget = Math.min(150000, Math.max(8000, this.budget * (gap > 50 ? 0.85 : gap < 28 ? 1.1 : 1)));
      this.stats.last = now;
      this.tweens.tick(now);
      this.draw();
      if (this.tweens.moving) this.moved();
    });
  }

  draw() {
    if (this.gone || !this.views.length || this.gpu.gl.isContextLost()) return;
    const start = performance.now();
    drawFrame(this);
    this.stats.ms = performance.now() - start;
    this.stats.renders += 1;
    this.tell();
  }

  /** Keep the attributes of the root current. */
  tell() {
    const { root, stats, rows, views: [view] } = this;
    const opened = view.opened ? ` ${view.layout.panels[view.opened.panel].name}` : '';
    Object.assign(root.dataset, {
      points: view.layout.rows.length, rows: this.different(view.layout), panels: view.layout.panels.length,
      thumbnails: stats.images, selected: rows.selected, renders: stats.renders, frameMs: stats.ms.toFixed(2),
      theme: this.dark ? 'dark' : 'light',
      view: this.views.map(({ layout }) => layout.name).join('+') + opened, settled: this.moving || this.layer.building ? '' : 'yes',
    });
  }

  /** Different rows of a layout, counted once. @private @param {import('./scene/layouts.js').Layout} layout */
  different(layout) {
    const known = this.counted.get(layout);
    if (known !== undefined) return known;
    const seen = new Uint8Array(this.rows.count);
    let count = 0;
    for (const row of layout.rows) { count += 1 - seen[row]; seen[row] = 1; }
    this.counted.set(layout, count);
    return count;
  }
  /** @private @type {WeakMap<import('./scene/layouts.js').Layout, number>} */
  counted = new WeakMap();

  /** Start anew on the card after its context was lost. */
  restore() {
    this.gpu = new Gpu(this.canvas);
    this.layer = new Layer(this.gpu);
    this.rows.flagsChanged += 1;
    this.startSheets();
    this.morph = null;
    this.frame = '';
    this.tour?.restore(this);
    this.settleSoon();
  }
}

/** @template {keyof HTMLElementTagNameMap} T @param {Element} parent @param {T} tag @param {string} name @returns {HTMLElementTagNameMap[T]} */
export function add(parent, tag, name) {
  const made = document.createElement(tag);
  made.className = name;
  parent.append(made);
  return made;
}
