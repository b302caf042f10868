/** One view: a layout in a part of the canvas, its camera, and the panel that is opened in it. */

import { arrange } from './arrange.js';
import { fitting, toPage } from './camera.js';
import { neighbours, openRects } from './open.js';
import { placeView } from './place.js';

/** @typedef {import('../types.js').Rect} Rect @typedef {import('../types.js').Range} Range @typedef {import('../scene/layouts.js').Layout} Layout */
/** @typedef {{panel: number, rects: Map<number, Rect>, range: Range, groups: import('./open.js').Group[]}} Opened */

const LINES = 1000; // px of width below which the title has a line of its own
const CORNER = { view: 560, w: 110, h: 60 }; // px that a view and its corner must have at least

export class View {
  /** @param {Layout} layout @param {Layout | null} map @param {number} components */
  constructor(layout, map, components) {
    this.layout = layout;
    this.map = map;
    this.components = components;
    /** @type {Rect} */
    this.rect = { x: 0, y: 0, w: 1, h: 1 };
    /** @type {import('./camera.js').Camera} */
    this.cam = { x: 0, y: 0, k: 1 };
    /** @type {Opened | null} */
    this.opened = null;
    /** @type {Map<number, import('./place.js').Target> | null} where panels were before they began to move */
    this.from = null;
    this.shift = 1;
    this.focus = -1; // the panel that keys have reached
    this.focusShown = false;
    /** @type {import('../types.js').Filter} */
    this.filter = {};
    this.compact = false; // no bar stands above the panels
    this.alone = true; // no other view beside, which the bar stands above
    this.corner = false; // whether title and legend stand in the free corner of a triangle
    this.arrangement = arrange(layout, map, components, this.rect);
  }

  get parts() {
    return this.arrangement.parts;
  }

  /** @param {Rect} rect */
  resize(rect) {
    const atFit = this.rect.w <= 1 || this.atFit;
    this.rect = rect;
    this.corner = !this.compact && this.alone && this.rect.w >= CORNER.view;
    this.arrangement = arrange(this.layout, this.map, this.components, this.inner);
    const { free } = this.arrangement;
    const room = free && toPage(this.home, rect, free);
    this.corner = Boolean(this.corner && room && room.w > CORNER.w && room.h > CORNER.h);
    if (!this.corner)
      this.arrangement = arrange(this.layout, this.map, this.components, this.inner);
    if (atFit) this.cam = this.home;
    if (this.opened) this.open(this.opened.panel, this.opened.range);
  }

  /** Whether title and legend stand in the bar one below the other, for they have no room beside each other. */
  get inLines() {
    return this.alone && !this.corner && !this.compact && this.rect.w < LINES;
  }

  /** Where "all panels" is drawn: below the bar, which stands in the corner of a triangle where that has room for it. */
  get inner() {
    const top = this.compact || this.corner ? 8 : this.inLines ? 66 : 44;
    return {
      x: this.rect.x + 8,
      y: this.rect.y + top,
      w: Math.max(1, this.rect.w - 16),
      h: Math.max(1, this.rect.h - top - 8),
    };
  }

  /** The camera that shows all panels. */
  get home() {
    const { inner, rect } = this;
    const cam = fitting(this.arrangement.world, inner, this.arrangement.kind === 'map' ? 0 : 0.012);
    return {
      ...cam,
      x: cam.x - (inner.x + inner.w / 2 - rect.x - rect.w / 2) / cam.k,
      y: cam.y - (inner.y + inner.h / 2 - rect.y - rect.h / 2) / cam.k,
    };
  }

  get atFit() {
    const { home, cam } = this;
    return (
      Math.abs(cam.k / home.k - 1) < 0.02 && Math.hypot(cam.x - home.x, cam.y - home.y) * cam.k < 12
    );
  }

  /** Keep where panels are now, to move them from there. */
  hold() {
    this.from = new Map(placeView(this).map((spot) => [spot.key, spot]));
    this.shift = 0;
  }

  /** Show one panel large. @param {number} panel @param {Range} [range] */
  open(panel, range = this.layout.panels[panel].extent) {
    const groups = neighbours(this.layout, panel);
    this.opened = { panel, range, groups, rects: openRects(groups, panel, this.rect) };
    this.focus = panel;
  }

  /** Whether the filter shows a panel. @param {import('../scene/layouts.js').Panel} panel @param {import('./arrange.js').Part} part */
  shows(panel, part) {
    if (part.inset || this.layout.kind === 'map') return true;
    const { components, least } = this.filter;
    return (
      panel.count >= (least ?? 0) && (components ?? []).every((k) => panel.components.includes(k))
    );
  }
}
