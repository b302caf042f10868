/** A view: one layout arranged in a rectangle, its camera, its opened panel; and what makes views. */

import { extentOf, fullest, having, some, withPanels } from '../scene/layouts.js';
import { around, clamp, fitting, toPage, placeView } from './geometry.js';

/** @param {Layout} old @param {Layout} layout whose cells are changed */
export function keepCells(old, layout) {
  if (old.kind !== 'grid' || layout.kind !== 'grid') return;
  const [columns, lines] = extentOf(layout);
  const cellOf = new Map(old.panels.map(({ name, cell }) => [name, cell]));
  /** @type {Map<string, Panel>} */ const taken = new Map();
  /** @type {Panel[]} */ const others = [];
  for (const panel of layout.panels) {
    const cell = cellOf.get(panel.name);
    if (cell && cell[0] < columns && cell[1] < lines) {
      panel.cell = cell;
      taken.set(`${cell}`, panel);
    } else others.push(panel);
  }
  for (const panel of fullest(others)) {
    let best = -Infinity;
    const wanted = panel.cell ?? [0, 0];
    for (let at = 0; at < columns * lines; at += 1) {
      const cell = /** @type {[number, number]} */ ([at % columns, Math.floor(at / columns)]);
      if (taken.has(`${cell}`)) continue;
      const worth =
        sharedAround(taken, cell, panel) -
        0.01 * Math.hypot(cell[0] - wanted[0], cell[1] - wanted[1]);
      if (worth > best) {
        best = worth;
        panel.cell = cell;
      }
    }
    taken.set(`${panel.cell}`, panel);
  }
}

/** @param {Map<string, Panel>} taken @param {[number, number]} cell @param {Panel} panel */
function sharedAround(taken, [column, line], { components }) {
  let shared = 0;
  for (const [dx, dy] of [
    [-1, 0],
    [1, 0],
    [0, -1],
    [0, 1],
  ]) {
    const beside = taken.get(`${[column + dx, line + dy]}`);
    shared += beside ? beside.components.filter((k) => components.includes(k)).length : 0;
  }
  return shared;
}

/**
 * @typedef {object} Arrangement
 * @property {Part[]} parts @property {Rect} world what "all panels" shows
 * @property {{component: number, rect: Rect}[]} diagonal @property {Rect | null} free space for title and legend
 * @property {'triangle' | 'grid' | 'strips' | 'map' | 'columns'} kind
 */

const CARD = 0.935; // of a cell

/** @param {Layout} layout @param {Layout | null} map shown in the free half of a triangle @param {number} components @param {Rect} view @returns {Arrangement} */
export function arrange(layout, map, components, view) {
  const aspect = view.w / Math.max(1, view.h);
  if (layout.kind === 'map') return plain('map', layout, [{ x: 0, y: 0, w: aspect, h: 1 }]);
  if (view.w < 560 && layout.panels.length > 2 && layout.kind !== 'strips')
    return columns(layout, view);
  if (layout.kind === 'triangle') return triangle(layout, map, components, view);
  if (layout.kind === 'strips') {
    const rects = layout.panels.map((_, i) => ({
      x: 0,
      y: i * 1.06,
      w: Math.max(3, aspect * layout.panels.length),
      h: 1,
    }));
    return plain('strips', layout, rects);
  }
  const across = columnsFor(layout.panels.length, aspect);
  const rects = layout.panels.map(({ cell, size }, i) => {
    const [column, row] = cell ?? [i % across, Math.floor(i / across)];
    return inCell(column, row, size);
  });
  return plain('grid', layout, rects);
}

/** Panels at their places, with nothing beside them. @param {Arrangement['kind']} kind @param {Layout} layout @param {Rect[]} rects @param {Rect} [world] @returns {Arrangement} */
const plain = (kind, layout, rects, world = around(rects)) => ({
  kind,
  parts: [{ layout, base: 0, rects, inset: false }],
  world,
  diagonal: [],
  free: null,
});

/** Columns that make so many squares the largest. @param {number} panels @param {number} aspect of the view */
function columnsFor(panels, aspect) {
  const side = (/** @type {number} */ columns) =>
    Math.min(aspect / columns, 1 / Math.ceil(panels / columns));
  let best = 1;
  for (let columns = 2; columns <= panels; columns += 1)
    if (side(columns) > side(best)) best = columns;
  return best;
}

const WORDS = 218; // px of height that title and legend need
const TOOLS = 366; // px of width
const NARROW = 210; // px of width below which only the legend is shown, above the map

/** Row a, column b; component pictures on the diagonal; title, legend and map in the empty half. @param {Layout} layout @param {Layout | null} map @param {number} count @param {Rect} view @returns {Arrangement} */
function triangle(layout, map, count, view) {
  const rects = layout.panels.map(({ cell: [column, row] = [0, 0], components }) =>
    inCell(column, row, components.length > 1 ? 1 : 0.8),
  );
  const tall = count + 0.25;
  const extra = clamp((view.w / Math.max(1, view.h)) * tall - count, 0.1, 0.75 * count);
  const k = Math.min(view.h / tall, view.w / (count + extra)); // px a cell when all panels are shown
  const narrow = extra * k < NARROW;
  const least = narrow ? 0 : Math.min(count - 3, Math.ceil(WORDS / k));
  const top = Math.min(count - 2, Math.max(1, least, Math.ceil((count - extra) / 2)));
  const diagonal = Array.from({ length: count }, (_, i) => ({
    component: i,
    rect: inCell(i, i, 0.8),
  }));
  const world = { x: -extra, y: 0, w: count + extra, h: tall };
  const made = plain('triangle', layout, rects, world);
  if (map && count > 3) {
    const beside = (count - 0.8 - top) * k > TOOLS; // there is room for the tools between map and diagonal
    const rect = {
      x: -extra + 0.06,
      y: top + 0.1,
      w: extra + top - 0.2,
      h: count - top - (beside ? 0 : 56 / k),
    };
    made.parts.push({ layout: map, base: layout.panels.length, rects: [rect], inset: true });
  }
  const from = narrow ? Math.max(0, top - 1.9) : 0;
  const free = { x: -extra + 0.06, y: from + 0.06, w: extra + from - 0.1, h: top - from - 0.1 };
  return { ...made, diagonal, free };
}

/** Two columns, the fullest first. @param {Layout} layout @param {Rect} view @returns {Arrangement} */
function columns(layout, view) {
  /** @type {Rect[]} */ const rects = [];
  fullest(layout.panels).forEach(
    ({ index }, i) => (rects[index] = inCell(i % 2, Math.floor(i / 2), 1)),
  );
  const rows = Math.ceil(rects.length / 2);
  const h = Math.min(rows, (2 * view.h) / view.w);
  return plain('columns', layout, rects, { x: 0, y: 0, w: 2, h });
}

/** @param {number} column @param {number} row @param {number} size @returns {Rect} */
function inCell(column, row, size) {
  const side = CARD * size;
  return { x: column + (1 - side) / 2, y: row + (1 - side) / 2, w: side, h: side };
}

/** @typedef {{turns: number, stays: number, panels: number[], x: number}} Group neighbours for which one component turns and the other stays */

/** Panels that share one shown component, the fullest first, in a group for each that stays. @param {Layout} layout @param {number} index @returns {Group[]} */
export function neighbours(layout, index) {
  if (layout.kind === 'map') return [];
  const openAxes = layout.panels[index].axes;
  const groups = openAxes.map((stays, i) => ({
    turns: openAxes[1 - i],
    stays,
    panels: /** @type {number[]} */ ([]),
    x: 0,
  }));
  for (const panel of fullest(layout.panels)) {
    if (panel.index === index || !panel.count) continue;
    const shared = openAxes.filter((axis) => panel.axes.includes(axis));
    if (shared.length === 1)
      groups.find(({ stays }) => stays === shared[0])?.panels.push(panel.index);
  }
  return groups.filter(({ panels }) => panels.length).reverse();
}

export const STRIP = 148; // height of the strip with its line of words
const TOUR = 148; // width of the player beside the neighbour it turns to

/** Large panel and strip, as many neighbours as fit. @param {Group[]} groups @param {number} index @param {Rect} view @returns {Map<number, Rect>} */
export function openRects(groups, index, view) {
  const top = 48;
  const roomy = view.h > 420 && groups.length > 0;
  /** @type {Map<number, Rect>} */ const rects = new Map();
  rects.set(index, {
    x: view.x + 16,
    y: view.y + top,
    w: view.w - 32,
    h: view.h - top - (roomy ? STRIP + 8 : 16),
  });
  if (!roomy) return rects;
  const side = STRIP - 44;
  const gap = 12;
  const room = Math.max(1, Math.floor((view.w - 32 - TOUR - 24) / (side + gap)));
  let x = view.x + 16;
  groups.forEach((group, i) => {
    const most = Math.max(1, Math.floor(room / groups.length));
    group.panels = group.panels.slice(0, i ? room - Math.min(most, groups[0].panels.length) : most);
    group.x = x;
    for (const panel of group.panels) {
      rects.set(panel, { x, y: view.y + view.h - side - 14, w: side, h: side });
      x += side + gap;
    }
    x += 20;
  });
  return rects;
}

/** @typedef {{panel: number, rects: Map<number, Rect>, range: Bounds, groups: Group[]}} Opened */

const LINES = 1000; // px of width below which the title has a line of its own
const CORNER = { view: 560, w: 110, h: 60 }; // px that a view and its corner must have at least

export class View {
  /** @param {Layout} layout @param {Layout | null} map @param {number} components */
  constructor(layout, map, components) {
    this.layout = layout;
    this.map = map;
    this.components = components;
    /** @type {Rect} */ this.rect = { x: 0, y: 0, w: 1, h: 1 };
    /** @type {Camera} */ this.cam = { x: 0, y: 0, k: 1 };
    /** @type {Opened | null} */ this.opened = null;
    /** @type {Map<number, import('./geometry.js').Goal> | null} where panels were before they began to move */
    this.from = null;
    this.shift = 1;
    this.focus = -1; // the panel that keys have reached
    this.focusShown = false;
    /** @type {Filter} */ this.filter = {};
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

  /** Show one panel large. @param {number} panel @param {Bounds} [range] */
  open(panel, range = this.layout.panels[panel].extent) {
    const groups = neighbours(this.layout, panel);
    this.opened = { panel, range, groups, rects: openRects(groups, panel, this.rect) };
    this.focus = panel;
  }

  /** Whether the filter shows a panel. @param {Panel} panel @param {Part} part */
  shows(panel, part) {
    if (part.inset || this.layout.kind === 'map') return true;
    const { components, least } = this.filter;
    return (
      panel.count >= (least ?? 0) && (components ?? []).every((k) => panel.components.includes(k))
    );
  }
}

const FIRST = 0.56; // of the width where there are two

/** A view of a layout; a triangle has a map in its free half. @param {Pick<Stage, 'meta' | 'scene' | 'options'>} stage @param {string} name @param {Layout} [before] whose panels keep their places */
export async function makeView({ meta, scene, options }, name, before) {
  const whole = await scene.layout(name);
  if (before) keepCells(before, whole);
  const layout = options.panels?.length
    ? some(whole, options.panels)
    : await withPanels(scene, whole, await openedOf(scene, whole, options));
  const map = layout.kind === 'triangle' ? besideTriangle(meta, options) : undefined;
  const view = new View(layout, map ? await scene.layout(map) : null, meta.components.length);
  view.filter = options.filter ?? {};
  view.compact = isCompact(options);
  return view;
}

/** The map in the free half of a triangle. @param {Meta} meta @param {Options} options */
function besideTriangle({ layouts }, { compact }) {
  const maps = Object.keys(layouts).filter((map) => layouts[map].kind === 'map');
  return compact ? undefined : ['slices', 'umap', ...maps].find((map) => maps.includes(map));
}

/** Buffers that views of some layouts need, of those that there are. @param {Meta} meta @param {Options} options @param {string[]} names */
export const buffersOf = (meta, options, names) =>
  [...names, besideTriangle(meta, options)].flatMap((name) => [`order.${name}`, `map.${name}`]);

/** Gathered subspaces that a search or a filter has opened. @param {Scene} scene @param {Layout} layout @param {Options} options */
async function openedOf(scene, layout, { sought = [], filter }) {
  if (!layout.panels.some(({ other }) => other)) return [];
  const gathered = await scene.gathered(layout.name);
  const kept = filter?.components?.length ? having(gathered, filter.components) : [];
  return [
    ...gathered.filter(({ components }) => sought.includes(`${components}`)),
    ...kept.filter(({ components }) => !sought.includes(`${components}`)),
  ];
}

/** Whether there is no title above the picture. @param {Options} options */
export const isCompact = ({ compact, panels }) => compact ?? Boolean(panels?.length);

/** Give each view its part of the canvas, and its panels their lines of the panel table. @param {Stage} stage */
export function share(stage) {
  const { width, height, views } = stage;
  const half = views.length > 1 ? Math.round(width * FIRST) : width;
  for (const view of views) view.alone = half === width;
  views.forEach((view, i) =>
    view.resize(
      i
        ? { x: half + 1, y: 0, w: width - half - 1, h: height }
        : { x: 0, y: 0, w: half, h: height },
    ),
  );
  let base = 0;
  for (const view of views)
    for (const part of view.parts) {
      part.base = base;
      base += part.layout.panels.length;
    }
  stage.frame = '';
}
