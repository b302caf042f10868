/** A view: a layout arranged in a rectangle, its camera and its opened panel; creation of views. */

import { fullest, having, some, withPanels } from '../scene/layouts.js';
import { around, box, clamp, fitting, toPage, placeView } from './geometry.js';

/**
 * @typedef {object} Arrangement
 * @property {Part[]} parts @property {Rect} world part of the world that "all panels" shows
 * @property {{component: number, rect: Rect}[]} diagonal @property {Rect | null} free space for title and legend
 * @property {'triangle' | 'grid' | 'strips' | 'map' | 'columns'} kind
 */

const CARD = 0.935; // share of a cell

/** @param {number} column @param {number} row @param {number} [size] */
function inCell(column, row, size = 1) {
  const side = CARD * size;
  return box(column + (1 - side) / 2, row + (1 - side) / 2, side, side);
}

/** @param {Layout} layout @param {Layout | null} map shown in the free half of a triangle @param {number} components @param {Rect} view @param {boolean} [beside] whether another view is beside it @returns {Arrangement} */
export function arrange(layout, map, components, view, beside = false) {
  const { panels } = layout;
  const aspect = view.w / Math.max(1, view.h);
  if (layout.kind === 'map') return plain('map', layout, [box(0, 0, aspect, 1)]);
  if (view.w < 560 && !beside && panels.length > 2 && layout.kind !== 'strips') {
    /** @type {Rect[]} in two columns, largest first or in the given order */ const rects = [];
    (layout.feet ? panels : fullest(panels)).forEach(
      ({ index }, i) => (rects[index] = inCell(i % 2, i >> 1)),
    );
    const h = Math.min(Math.ceil(rects.length / 2), (2 * view.h) / view.w);
    return plain('columns', layout, rects, box(0, 0, 2, h));
  }
  if (layout.kind === 'triangle') return triangle(layout, map, components, view);
  if (layout.kind === 'strips') {
    const w = Math.max(3, aspect * panels.length);
    const rects = panels.map((_, i) => box(0, i * 1.06, w, 1));
    return plain('strips', layout, rects);
  }
  const sideIn = (/** @type {number} */ columns) =>
    Math.min(aspect / columns, 1 / Math.ceil(panels.length / columns));
  let across = 1; // number of columns that makes the squares largest
  for (let columns = 2; columns <= panels.length; columns += 1)
    if (sideIn(columns) > sideIn(across)) across = columns;
  const rects = panels.map(({ size }, i) => inCell(i % across, Math.floor(i / across), size));
  return plain('grid', layout, rects);
}

/** Arrange panels at given places, with nothing else. @param {Arrangement['kind']} kind @param {Layout} layout @param {Rect[]} rects @param {Rect} [world] @returns {Arrangement} */
function plain(kind, layout, rects, world = around(rects)) {
  const part = { layout, base: 0, rects, inset: false };
  return { kind, parts: [part], world, diagonal: [], free: null };
}

const WORDS = 218; // height in px for title and legend
const TOOLS = 366; // width in px for the tools
const NARROW = 210; // width in px below which only the legend is shown, above the map

/** Arrange a triangle: row a, column b; component pictures on the diagonal; title, legend and map in the empty half. @param {Layout} layout @param {Layout | null} map @param {number} count @param {Rect} view @returns {Arrangement} */
function triangle(layout, map, count, view) {
  const rects = layout.panels.map(({ cell: [column, row] = [0, 0], components }) =>
    inCell(column, row, components.length > 1 ? 1 : 0.8),
  );
  const tall = count + 0.25;
  const extra = clamp((view.w / Math.max(1, view.h)) * tall - count, 0.1, 0.75 * count);
  const k = Math.min(view.h / tall, view.w / (count + extra)); // px per cell when all panels are shown
  const narrow = extra * k < NARROW;
  const least = narrow ? 0 : Math.min(count - 3, Math.ceil(WORDS / k));
  const top = Math.min(count - 2, Math.max(1, least, Math.ceil((count - extra) / 2)));
  const made = plain('triangle', layout, rects, box(-extra, 0, count + extra, tall));
  const left = -extra + 0.06;
  if (map && count > 2) {
    const beside = (count - 0.8 - top) * k > TOOLS; // leaves space for the tools between map and diagonal
    const rect = box(left, top + 0.1, extra + top - 0.2, count - top - (beside ? 0 : 56 / k));
    made.parts.push({ layout: map, base: layout.panels.length, rects: [rect], inset: true });
  }
  const from = narrow ? Math.max(0, top - 1.9) : 0;
  made.free = box(left, from + 0.06, extra + from - 0.1, top - from - 0.1);
  for (let i = 0; i < count; i += 1) made.diagonal.push({ component: i, rect: inCell(i, i, 0.8) });
  return made;
}

/** @typedef {{turns: number, stays: number, panels: number[], x: number}} Group neighbours that show the component `stays`, but not `turns` */

/** Return panels that share a shown component, in a group per shared component, largest first. @param {Layout} layout @param {number} index @returns {Group[]} */
export function neighbours(layout, index) {
  if (layout.kind === 'map') return [];
  const { axes } = layout.panels[index];
  const others = fullest(layout.panels).filter((panel) => panel.index !== index && panel.count);
  const groups = axes.map((stays, i) => {
    const shares = (/** @type {Panel} */ panel) =>
      axes.filter((axis) => panel.axes.includes(axis)).join() === `${stays}`;
    const panels = others.filter(shares).map((panel) => panel.index);
    return { turns: axes[1 - i], stays, panels, x: 0 };
  });
  return groups.filter(({ panels }) => panels.length).reverse();
}

export const STRIP = 148; // height of the strip with its line of text
const TOUR = 148; // width of the player beside the neighbour to which it turns

/** Return the places of the large panel and of as many neighbours as fit into the strip. @param {Group[]} groups @param {number} index @param {Rect} view @returns {Map<number, Rect>} */
export function openRects(groups, index, view) {
  const top = 48;
  const roomy = view.h > 420 && groups.length > 0;
  const high = view.h - top - (roomy ? STRIP + 8 : 16);
  const rects = new Map([[index, box(view.x + 16, view.y + top, view.w - 32, high)]]);
  if (!roomy) return rects;
  const [side, gap] = [STRIP - 44, 12];
  const room = Math.max(1, Math.floor((view.w - 32 - TOUR - 24) / (side + gap)));
  const most = Math.max(1, Math.floor(room / groups.length));
  let x = view.x + 16;
  groups.forEach((group, i) => {
    group.panels = group.panels.slice(0, i ? room - Math.min(most, groups[0].panels.length) : most);
    group.x = x;
    for (const panel of group.panels) {
      rects.set(panel, box(x, view.y + view.h - side - 14, side, side));
      x += side + gap;
    }
    x += 20;
  });
  return rects;
}

/** @typedef {{panel: number, rects: Map<number, Rect>, range: Bounds, groups: Group[]}} Opened */

const LINES = 1000; // width in px below which the title has its own line
const CORNER = { view: 560, w: 110, h: 60 }; // minimum size in px of a view and of its corner

export class View {
  /** @param {Layout} layout @param {Layout | null} map @param {number} components */
  constructor(layout, map, components) {
    this.layout = layout;
    this.map = map;
    this.components = components;
    /** @type {Rect} */ this.rect = { x: 0, y: 0, w: 1, h: 1 };
    /** @type {Camera} */ this.cam = { x: 0, y: 0, k: 1 };
    /** @type {Opened | null} */ this.opened = null;
    /** @type {Map<number, import('./geometry.js').Goal> | null} positions of panels before a movement */
    this.from = null;
    this.shift = 1;
    this.focus = -1; // the panel under keyboard focus
    this.focusShown = false;
    /** @type {Filter} */ this.filter = {};
    this.compact = false; // whether there is no bar above the panels
    this.alone = true; // whether it is the only view, with the whole bar
    this.beside = false; // whether the other view is beside it, not below
    this.corner = false; // whether title and legend are in the free corner of a triangle
    this.arrangement = arrange(layout, map, components, this.rect);
  }

  get parts() {
    return this.arrangement.parts;
  }

  /** @param {Pick<View, 'rect' | 'alone' | 'beside'>} now */
  resize(now) {
    const atFit = this.rect.w <= 1 || this.atFit;
    Object.assign(this, now);
    this.corner = !this.compact && this.alone && this.rect.w >= CORNER.view;
    this.arrangement = arrange(this.layout, this.map, this.components, this.inner, this.beside);
    const { free } = this.arrangement;
    const room = free && toPage(this.home, this.rect, free);
    this.corner = Boolean(this.corner && room && room.w > CORNER.w && room.h > CORNER.h);
    if (!this.corner)
      this.arrangement = arrange(this.layout, this.map, this.components, this.inner, this.beside);
    if (atFit) this.cam = this.home;
    if (this.opened) this.open(this.opened.panel, this.opened.range);
  }

  /** Whether title and legend are in separate lines of the bar, because they do not fit side by side. */
  get inLines() {
    return this.alone && !this.corner && !this.compact && this.rect.w < LINES;
  }

  /** Return the rectangle for "all panels": below the bar, or the whole view if the bar fits into a triangle's corner. */
  get inner() {
    const top = this.compact || this.corner || this.rect.y > 0 ? 8 : this.inLines ? 66 : 44;
    const { x, y, w, h } = this.rect;
    return box(x + 8, y + top, Math.max(1, w - 16), Math.max(1, h - top - 8));
  }

  /** Return the camera that shows all panels. */
  get home() {
    const { inner, rect } = this;
    const cam = fitting(this.arrangement.world, inner, this.arrangement.kind === 'map' ? 0 : 0.012);
    cam.x -= (inner.x + inner.w / 2 - rect.x - rect.w / 2) / cam.k;
    cam.y -= (inner.y + inner.h / 2 - rect.y - rect.h / 2) / cam.k;
    return cam;
  }

  get atFit() {
    const { home, cam } = this;
    const far = Math.hypot(cam.x - home.x, cam.y - home.y) * cam.k;
    return Math.abs(cam.k / home.k - 1) < 0.02 && far < 12;
  }

  /** Store the current places of panels, where a movement will begin. */
  hold() {
    this.from = new Map(placeView(this).map((spot) => [spot.key, spot]));
    this.shift = 0;
  }

  /** Enlarge one panel. @param {number} panel @param {Bounds} [range] */
  open(panel, range = this.layout.panels[panel].extent) {
    const groups = neighbours(this.layout, panel);
    this.opened = { panel, range, groups, rects: openRects(groups, panel, this.rect) };
    this.focus = panel;
  }

  /** Whether a panel passes the filter. @param {Panel} panel */
  shows({ count, components }) {
    const { components: wanted = [], least = 0 } = this.filter;
    if (this.layout.kind === 'map') return true;
    return count >= least && wanted.every((k) => components.includes(k));
  }
}

const FIRST = 0.56; // share of the width for the first of two views
const PHONE = 560; // width in px below which the second view is below the first

/** A view of a layout, with panels of gathered subspaces that a search or a filter has opened; a triangle has a map in its free half. @param {Pick<Stage, 'meta' | 'scene' | 'options'>} stage @param {string} name */
export async function makeView({ meta, scene, options }, name) {
  const whole = await scene.layout(name);
  const { panels, sought = [], filter = {} } = options;
  const given = (/** @type {import('../scene/layouts.js').Gathered} */ { components }) =>
    sought.includes(`${components}`);
  const gathered = whole.panels.some(({ other }) => other) ? await scene.gathered(name) : [];
  const kept = filter.components?.length ? having(gathered, filter.components) : [];
  const opened = [...gathered.filter(given), ...kept.filter((group) => !given(group))];
  const layout = panels?.length ? some(whole, panels) : await withPanels(scene, whole, opened);
  const map = layout.kind === 'triangle' ? besideTriangle(meta, options) : undefined;
  const view = new View(layout, map ? await scene.layout(map) : null, meta.components.length);
  view.filter = filter;
  view.compact = isCompact(options);
  return view;
}

/** Return the map in the free half of a triangle. @param {Meta} meta @param {Options} options */
function besideTriangle({ layouts }, { compact }) {
  const maps = Object.keys(layouts).filter((map) => layouts[map].kind === 'map');
  return compact ? undefined : ['slices', 'umap', ...maps].find((map) => maps.includes(map));
}

/** Return the available buffers that views of some layouts need. @param {Meta} meta @param {Options} options @param {string[]} names */
export const buffersOf = (meta, options, names) =>
  [...names, besideTriangle(meta, options)].flatMap((name) => [`order.${name}`, `map.${name}`]);

export const BOTH = 'both';

/** Return the layouts in the options, or by default the first layout and the one beside it. @param {Meta} meta @param {Options} [options] @returns {Required<Pick<Options, 'layout' | 'beside'>>} */
export function opening({ layouts, first }, { layout = BOTH, beside = '' } = {}) {
  const both = layout === BOTH;
  if (both && layouts.pairs) return { layout: 'subspaces', beside: 'pairs' };
  const only = layout in layouts ? layout : (first ?? Object.keys(layouts)[0]);
  return { layout: only, beside: !both && beside in layouts ? beside : '' };
}

/** Whether the picture is shown without a title. @param {Options} options */
export const isCompact = ({ compact, panels }) => compact ?? Boolean(panels?.length);

/** Assign each view its part of the canvas, and its panels their lines of the panel table. @param {Stage} stage */
export function share(stage) {
  const { width, height, views } = stage;
  const alone = views.length < 2;
  const [wide, high] = [Math.round(width * FIRST), height >> 1];
  const places = alone
    ? [box(0, 0, width, height)]
    : width < PHONE
      ? [box(0, 0, width, high), box(0, high + 1, width, height - high - 1)]
      : [box(0, 0, wide, height), box(wide + 1, 0, width - wide - 1, height)];
  const beside = !alone && width >= PHONE;
  views.forEach((view, i) => view.resize({ rect: places[i], alone, beside }));
  let base = 0;
  for (const view of views)
    for (const part of view.parts) {
      part.base = base;
      base += part.layout.panels.length;
    }
  stage.frame = '';
}
