/** What a person can do with the picture; hand, keys, parts and host all come here. */

import { toPage } from '../layout/camera.js';
import { holds } from '../layout/rect.js';
import { makeView } from '../layout/views.js';
import { setAxes } from '../scene/layouts.js';
import { grouped } from '../scene/names.js';
import { markUnder, maskOf } from './lasso.js';
import { Moves } from './moves.js';
import { panelAt, pick } from './pick.js';

/** @typedef {import('../layout/camera.js').Camera} Camera @typedef {import('../stage.js').Stage} Stage @typedef {import('../layout/view.js').View} View @typedef {import('../scene/rows.js').How} How */

const TELL = 250; // ms after a click until the host hears of it: a double click opens a panel
const ANSWER = 5000; // ms
const STEP = 8; // px in which a place that is seen is looked for

export class Actions extends Moves {
  /** @param {Stage} stage */
  constructor(stage) {
    super(stage);
    /** @type {(at: [number, number] | null) => void} the hand rests, or moved on */
    this.rest = () => {};
    this.told = -1; // the row that the host knows to be held
    this.asked = 0; // ms until which the host's answer about it is awaited
    this.telling = 0;
    /** @type {[View, Camera] | null} where the picture was before it came out from below the host */
    this.back = null;
  }

  /** Hold a row, or let go with -1; the host hears of it unless a double click takes it back. @param {number} row @param {[number, number]} [place] of the row @param {Camera} [cam] to which the picture is flying */
  hold(row, place, cam) {
    const { stage } = this;
    if (row === stage.held) return;
    const { held, near = [] } = stage.options; // what the host said last
    [stage.held, stage.near] = [row, row === held ? near : []];
    this.asked = performance.now() + ANSWER;
    clearTimeout(this.telling);
    const tell = () => {
      if (this.told !== row) stage.callbacks.onPoint?.(row);
      this.told = row;
      if (row >= 0 && place) this.uncover(...place, cam);
    };
    this.telling = setTimeout(tell, place ? TELL : 0);
    if (row < 0 && this.back) this.flyTo(...this.back);
    if (row < 0) this.back = null;
    this.say(row < 0 ? 'No row held' : `Row ${grouped(row)} held`);
    stage.frame = ''; // pictures of its nearest rows may be on other sheets
    stage.settleSoon();
  }

  /** Move a place of the picture that the host covers, such as by a sheet on a phone, to where it is seen. @param {number} x @param {number} y @param {Camera} [goal] of a flight */
  uncover(x, y, goal) {
    const { root } = this.stage;
    const { left, top } = root.getBoundingClientRect();
    const isFree = (/** @type {number} */ px, /** @type {number} */ py) =>
      root.contains(document.elementFromPoint(left + px, top + py));
    const view = this.stage.viewAt(x);
    if (view.opened || isFree(x, y)) return;
    let [freeX, freeY] = [x, y];
    while (freeY > 0 && !isFree(x, freeY)) freeY -= STEP;
    while (freeX > 0 && !isFree(freeX, y)) freeX -= STEP;
    const cam = { ...(goal ?? view.cam) };
    this.back ??= [view, { ...cam }];
    if (freeY > 0) cam.y += (y - freeY / 2) / cam.k;
    else if (freeX > 0) cam.x += (x - freeX / 2) / cam.k;
    this.flyTo(view, cam);
  }

  /** Take over from the host what is held, unless a hand has held another row since. @param {import('../types.js').Options} options */
  follow({ held, near = [] }) {
    const { stage } = this;
    if (held === undefined || (held !== stage.held && performance.now() < this.asked)) return;
    this.asked = 0;
    clearTimeout(this.telling); // the host has just said otherwise
    [stage.held, stage.near, this.told] = [held, near, held];
    stage.frame = '';
  }

  /** @param {View} view @param {[number, number][]} path @param {How} how */
  lasso(view, path, how) {
    const { stage } = this;
    const hits = stage.rows.bytes();
    markUnder(
      maskOf(path),
      stage.placed.filter((spot) => spot.view === view),
      hits,
    );
    stage.rows.apply(hits, how);
    this.selected();
  }

  /** @param {number} x @param {number} y @param {How} how */
  click(x, y, how) {
    const { stage } = this;
    const hit = pick(stage, x, y);
    const spot = panelAt(stage, x, y);
    const axis = spot && axisAt(spot, x, y);
    const picture = spot ? undefined : componentAt(stage.viewAt(x), x, y);
    if (spot && axis !== undefined) this.turnAxis(spot.view, axis);
    else if (picture !== undefined) this.toggleComponent(picture);
    else if (spot && spot.view.opened && !spot.open) this.tour(spot.view, spot.panel.index);
    else if (hit && how === 'replace' && stage.callbacks.onPoint)
      this.hold(hit.row === stage.held ? -1 : hit.row, [x, y]);
    else if (hit) this.select([hit.row], how);
    else if (how === 'replace' && stage.held >= 0) this.hold(-1, [x, y]);
    else if (how === 'replace' && stage.rows.selected) this.select([]);
  }

  /** Select rows and tell the host. @param {Iterable<number>} rows @param {How} [how] */
  select(rows, how = 'replace') {
    this.stage.rows.applyList(rows, how);
    this.selected();
  }

  /** What the component at a place was in the picture before. @param {number} x @param {number} y */
  cameAt(x, y) {
    const picture = componentAt(this.stage.viewAt(x), x, y);
    return (picture !== undefined && this.stage.options.came?.[picture]) || '';
  }

  /** Show the panel's next component on an axis of the opened panel. @param {View} view @param {number} axis */
  turnAxis(view, axis) {
    const panel = view.opened && view.layout.panels[view.opened.panel];
    const others = panel?.components.filter((k) => k !== panel.axes[1 - axis]) ?? [];
    if (!panel || others.length < 2) return;
    const axes = [...panel.axes];
    axes[axis] = others[(others.indexOf(axes[axis]) + 1) % others.length];
    setAxes(this.stage.scene, view.layout, panel, axes);
    view.open(panel.index);
    this.say(
      `Component ${this.stage.meta.components[axes[axis]].number} on the ${axis ? 'vertical' : 'horizontal'} axis`,
    );
    this.after();
  }

  /** Show only panels with a component, or all again. @param {number} component */
  toggleComponent(component) {
    const { components = [], ...filter } = this.stage.options.filter ?? {};
    this.filter({
      ...filter,
      components: components.includes(component)
        ? components.filter((k) => k !== component)
        : [...components, component],
    });
  }

  /** The selection changed here: show it and tell the host. */
  selected() {
    const { stage } = this;
    const { selected } = stage.rows;
    stage.settleSoon();
    this.say(selected ? `${grouped(selected)} rows selected` : 'Nothing selected');
    stage.callbacks.onSelect?.(stage.rows.packed, selected);
  }

  /** Show only what a filter keeps. @param {import('../types.js').Filter} filter */
  filter(filter) {
    const { stage } = this;
    const others =
      String(filter.components ?? '') !== String(stage.options.filter?.components ?? '');
    stage.options.filter = filter;
    for (const view of stage.views) view.filter = filter;
    const { classes, certainty } = filter;
    const kept = classes?.length ? new Set(classes) : null;
    const { codes } = stage.rows;
    const { doubt } = stage.scene;
    stage.rows.filter(
      (row) => (!kept || kept.has(codes[row])) && (doubt[row] ?? 255) >= 255 * (certainty ?? 0),
    );
    stage.frame = '';
    this.after();
    if (others) this.reopen();
  }

  /** Give panels to what is looked for among the gathered subspaces. */
  async reopen() {
    const { stage } = this;
    for (const view of stage.views) {
      if (!view.layout.panels.some(({ other }) => other)) continue;
      const made = await makeView(stage, view.layout.name);
      if (stage.views.includes(view) && made.layout.panels.length !== view.layout.panels.length)
        this.replace(view, made);
    }
  }
}

/** The axis whose name is at a place of the opened panel, where more components could stand on it. @param {import('../layout/place.js').Placed} spot @param {number} x @param {number} y */
function axisAt({ open, panel, card, plot }, x, y) {
  if (!open || panel.components.length < 3) return undefined;
  return y < plot.y && x < card.x + 160
    ? 1
    : y > plot.y + plot.h && x > card.x + card.w - 160
      ? 0
      : undefined;
}

/** The component whose picture on the diagonal is at a place. @param {View} view @param {number} x @param {number} y */
function componentAt(view, x, y) {
  if (view.opened) return undefined;
  const { diagonal } = view.arrangement;
  return diagonal.find(({ rect }) => holds(toPage(view.cam, view.rect, rect), x, y))?.component;
}
