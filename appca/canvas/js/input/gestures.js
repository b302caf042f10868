/** The hand: wheel, drag, pinch, double click; lasso and box; hover and its rest. */

import { imagesShown } from '../draw.js';
import { clamp, holds, zoomed, pointToPage } from '../layout/geometry.js';
import { isCompact } from '../layout/view.js';
import { HIDDEN } from '../scene/rows.js';

const REACH = 9; // px from the hand to a point

/** @typedef {{side: number, starts: Uint32Array, list: Uint32Array}} Grid points of a panel by cell of its range */

/** The panel at a place, the last drawn first. @param {Stage} stage @param {number} x @param {number} y */
export function panelAt(stage, x, y) {
  return stage.placed.findLast(
    ({ card, view, strength }) => strength > 0.5 && holds(card, x, y) && holds(view.rect, x, y),
  );
}

/** @type {WeakMap<Panel, {key: string, grid: Grid}>} */ const grids = new WeakMap();

/** Counting sort of a panel's points into cells of its own extent. @param {Layout} layout @param {Panel} panel @returns {Grid} */
function gridOf(layout, panel) {
  const key = `${layout.name} ${layout.revision} ${layout.rows.length}`;
  const cached = grids.get(panel);
  if (cached?.key === key) return cached.grid;
  const side = clamp(Math.ceil(Math.sqrt(panel.count / 3)), 1, 512);
  const cell = cellIn(panel, side);
  const cells = new Uint32Array(panel.count);
  const starts = new Uint32Array(side * side + 1);
  for (let j = 0; j < panel.count; j += 1) {
    const i = 2 * (panel.start + j);
    cells[j] = cell(0, layout.xy[i]) + side * cell(1, layout.xy[i + 1]);
    starts[cells[j] + 1] += 1;
  }
  for (let c = 0; c < side * side; c += 1) starts[c + 1] += starts[c];
  const next = starts.slice();
  const list = new Uint32Array(panel.count);
  for (let j = 0; j < panel.count; j += 1) {
    list[next[cells[j]]] = panel.start + j;
    next[cells[j]] += 1;
  }
  const grid = { side, starts, list };
  grids.set(panel, { key, grid });
  return grid;
}

/** @param {Panel} panel @param {number} side @returns {(axis: number, value: number) => number} */
const cellIn =
  ({ extent }, side) =>
  (axis, value) =>
    clamp(
      Math.floor(((value - extent[2 * axis]) / (extent[2 * axis + 1] - extent[2 * axis])) * side),
      0,
      side - 1,
    );

/** The row nearest to a place of the page; an image counts as near when the hand is on it. @param {Stage} stage @param {number} x @param {number} y @returns {Found | null} */
export function pick(stage, x, y) {
  const spot = panelAt(stage, x, y);
  if (!spot || stage.morph || stage.tour) return null;
  const image = imageAt(stage, spot, x, y);
  if (image) return image;
  const { panel, plot, range } = spot;
  const { layout } = spot.part;
  const grid = gridOf(layout, panel);
  const [ux, uy] = [(range[1] - range[0]) / plot.w, (range[3] - range[2]) / plot.h];
  const [vx, vy] = [range[0] + (x - plot.x) * ux, range[2] + (plot.y + plot.h - y) * uy];
  const cell = cellIn(panel, grid.side);
  let best = null;
  let least = REACH ** 2;
  for (let b = cell(1, vy - REACH * uy); b <= cell(1, vy + REACH * uy); b += 1) {
    for (let a = cell(0, vx - REACH * ux); a <= cell(0, vx + REACH * ux); a += 1) {
      for (let k = grid.starts[a + grid.side * b]; k < grid.starts[a + grid.side * b + 1]; k += 1) {
        const i = grid.list[k];
        const [dx, dy] = [(layout.xy[2 * i] - vx) / ux, (layout.xy[2 * i + 1] - vy) / uy];
        if (dx * dx + dy * dy >= least || stage.rows.flags[layout.rows[i]] & HIDDEN) continue;
        least = dx * dx + dy * dy;
        best = { row: layout.rows[i], x: x + dx, y: y - dy, spot, index: i };
      }
    }
  }
  return best;
}

/** @param {Stage} stage @param {Placed} spot @param {number} x @param {number} y @returns {Found | null} */
function imageAt(stage, spot, x, y) {
  let best = null;
  for (const { wanted, px } of imagesShown(stage)) {
    wanted.panel.forEach((key, i) => {
      if (key !== spot.key) return;
      const [ix, iy] = pointToPage(spot, wanted.raw[4 * i], wanted.raw[4 * i + 1]);
      if (Math.max(Math.abs(ix - x), Math.abs(iy - y)) < px / 2)
        best = { row: wanted.row[i], x: ix, y: iy, spot, index: -1 };
    });
  }
  return best;
}

const CLICK = 4; // px a press may move and still be a click
const TWICE = 600; // ms in which a second click may make a double click of the first

export class Gestures {
  /** @param {Stage} stage @param {Actions} actions */
  constructor(stage, actions) {
    this.stage = stage;
    this.actions = actions;
    /** @type {Map<number, [number, number]>} */ this.pointers = new Map();
    /** @type {{x: number, y: number, view: View, cam: Camera, kind: 'pan' | 'lasso' | 'box', range?: Bounds, moved: boolean} | null} */
    this.drag = null;
    /** @type {[number, number][]} the lasso or box being drawn */ this.path = [];
    /** @type {[number, number] | null} where the hand is */ this.at = null;
    this.before = { bits: new Uint8Array(), change: 0, held: -1, time: -TWICE }; // a click
    const on = (
      /** @type {string} */ kind,
      /** @type {(event: any) => void} */ run,
      passive = true,
    ) => stage.hit.addEventListener(kind, run, { passive });
    on('wheel', (event) => this.wheel(event), false);
    on('pointerdown', (event) => this.down(event));
    on('pointermove', (event) => this.move(event));
    on('pointerup', (event) => this.up(event));
    on('pointercancel', (event) => {
      this.path = [];
      this.up(event);
    });
    on('pointerleave', () => {
      this.at = null;
      actions.rest(null);
    });
    on('dblclick', (event) => this.twice(event));
  }

  /** Open or close a panel, with the selection there was before the two clicks. @param {MouseEvent} event */
  twice(event) {
    const { stage, actions, before } = this;
    const spot = panelAt(stage, ...this.place(event));
    if (!spot) return;
    if (before.change !== stage.rows.flagsChanged) {
      stage.rows.unpack(before.bits);
      actions.selected();
    }
    actions.hold(before.held);
    if (spot.open) actions.close(spot.view);
    else actions.open(spot.view, spot.panel.index, spot.part);
  }

  /** @param {PointerEvent} event @param {How} how */
  click(event, how) {
    const { rows } = this.stage;
    if (event.timeStamp - this.before.time > TWICE)
      this.before = {
        bits: rows.packed,
        change: rows.flagsChanged,
        held: this.stage.held,
        time: event.timeStamp,
      };
    this.actions.click(...this.place(event), how);
  }

  /** @param {MouseEvent} event @returns {[number, number]} */
  place(event) {
    const box = this.stage.root.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (
      isCompact(this.stage.options) &&
      !event.ctrlKey &&
      document.activeElement !== this.stage.hit
    )
      return; // the page scrolls
    event.preventDefault();
    const [x, y] = this.place(event);
    const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0017));
    zoomView(this.stage, this.stage.viewAt(x), x, y, factor);
  }

  /** @param {PointerEvent} event */
  down(event) {
    const { stage, pointers, actions } = this;
    const [x, y] = this.place(event);
    stage.hit.focus({ preventScroll: true });
    stage.hit.setPointerCapture?.(event.pointerId);
    pointers.set(event.pointerId, [x, y]);
    actions.rest(null);
    const view = stage.viewAt(x);
    stage.tweens.stop('fly');
    if (pointers.size === 2) {
      this.path = [];
      this.drag = null;
      return;
    }
    const tool = stage.options.tool ?? 'pan';
    const keys = event.shiftKey || event.ctrlKey || event.metaKey;
    const kind = event.button ? 'pan' : tool === 'pan' && keys ? 'lasso' : tool;
    this.drag = { x, y, view, cam: { ...view.cam }, kind, range: view.opened?.range, moved: false };
    this.path = kind === 'lasso' || kind === 'box' ? [[x, y]] : [];
  }

  /** The middle between two fingers, and how far apart they are. */
  fingers() {
    const [[ax, ay], [bx, by]] = this.pointers.values();
    const apart = Math.max(1, Math.hypot(ax - bx, ay - by));
    return { x: (ax + bx) / 2, y: (ay + by) / 2, apart };
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { stage, pointers, drag } = this;
    const [x, y] = (this.at = this.place(event));
    stage.active = stage.views.indexOf(stage.viewAt(x));
    if (pointers.size === 2 && pointers.has(event.pointerId)) {
      const before = this.fingers();
      pointers.set(event.pointerId, [x, y]);
      const now = this.fingers();
      const view = stage.viewAt(now.x);
      panView(stage, view, now.x - before.x, now.y - before.y);
      zoomView(stage, view, now.x, now.y, now.apart / before.apart);
      return;
    }
    if (!drag) {
      const came = this.actions.cameAt(x, y);
      if (stage.hit.title !== came) stage.hit.title = came;
      this.actions.rest([x, y]);
      return;
    }
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > CLICK;
    if (drag.kind !== 'pan') {
      if (drag.kind === 'box')
        this.path = [
          [drag.x, drag.y],
          [x, drag.y],
          [x, y],
          [drag.x, y],
        ];
      else this.path.push([x, y]);
      stage.schedule();
    } else if (drag.moved) {
      drag.view.cam = { ...drag.view.cam, x: drag.cam.x, y: drag.cam.y };
      if (drag.view.opened && drag.range) drag.view.opened.range = drag.range;
      panView(stage, drag.view, x - drag.x, y - drag.y);
    }
  }

  /** @param {PointerEvent} event */
  up(event) {
    const { stage, drag, path, actions } = this;
    this.pointers.delete(event.pointerId);
    this.drag = null;
    this.path = [];
    if (!drag) return;
    const how = event.shiftKey
      ? 'add'
      : event.ctrlKey || event.metaKey || event.altKey
        ? 'subtract'
        : 'replace';
    if (!drag.moved && event.type === 'pointerup') this.click(event, how);
    else if (path.length > 2) actions.lasso(drag.view, path, how);
    stage.settleSoon();
  }
}

/** Zoom about a point; in an opened panel its range changes instead. @param {Stage} stage @param {View} view @param {number} x @param {number} y @param {number} factor */
export function zoomView(stage, view, x, y, factor) {
  const spot = view.opened && stage.placed.find((placed) => placed.view === view && placed.open);
  if (view.opened && spot && !stage.tour) {
    const { plot, panel } = spot;
    const [x0, x1, y0, y1] = spot.range;
    const { extent } = panel;
    const whole = extent[1] - extent[0];
    const by = clamp((x1 - x0) / factor, whole / 4000, 3 * whole) / (x1 - x0);
    const [cx, cy] = [
      x0 + ((x - plot.x) / plot.w) * (x1 - x0),
      y1 - ((y - plot.y) / plot.h) * (y1 - y0),
    ];
    view.opened.range = [
      cx + (x0 - cx) * by,
      cx + (x1 - cx) * by,
      cy + (y0 - cy) * by,
      cy + (y1 - cy) * by,
    ];
  } else if (!view.opened)
    view.cam = zoomed(view.cam, view.rect, x, y, factor, view.home.k * 0.5, view.home.k * 4000);
  stage.moved();
}

/** @param {Stage} stage @param {View} view @param {number} dx @param {number} dy */
export function panView(stage, view, dx, dy) {
  const spot = view.opened && stage.placed.find((placed) => placed.view === view && placed.open);
  if (view.opened && spot) {
    const { plot } = spot;
    const [x0, x1, y0, y1] = view.opened.range;
    const [sx, sy] = [(-dx * (x1 - x0)) / plot.w, (dy * (y1 - y0)) / plot.h];
    view.opened.range = [x0 + sx, x1 + sx, y0 + sy, y1 + sy];
  } else {
    const { x, y, w, h } = view.arrangement.world;
    const tall =
      view.arrangement.kind === 'columns'
        ? Math.max(h, ...view.parts[0].rects.map((rect) => rect.y + rect.h))
        : h;
    view.cam = {
      ...view.cam,
      x: clamp(view.cam.x - dx / view.cam.k, x, x + w),
      y: clamp(view.cam.y - dy / view.cam.k, y, y + tall),
    };
  }
  stage.moved();
}
