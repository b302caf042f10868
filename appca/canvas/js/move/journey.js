/** A tour of the fullest panels: from each the turn to the fullest one not yet seen that shares a component. */

import { neighbours } from '../layout/open.js';
import { fullest } from '../scene/layouts.js';

const REST = 900; // ms on each panel

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../input/actions.js').Actions} Actions */

export class Journey {
  /** @param {Stage} stage @param {Actions} actions @param {(on: boolean) => void} told */
  constructor(stage, actions, told) {
    this.stage = stage;
    this.actions = actions;
    this.told = told;
    this.on = false;
    /** @type {Set<number>} */
    this.seen = new Set();
    this.timer = 0;
    this.at = -1; // the panel it has reached
    for (const kind of ['pointerdown', 'wheel', 'keydown'])
      stage.hit.addEventListener(kind, () => this.stop(), { passive: true });
    stage.settled.push(() => this.go());
  }

  /** Begin, or stop where it is. */
  async toggle() {
    if (this.on) {
      this.stop();
      return;
    }
    const { stage, actions } = this;
    const grid = Object.entries(stage.meta.layouts).find(([, { kind }]) => kind !== 'map');
    if (!grid) return;
    if (stage.views[0].layout.kind === 'map') await actions.morph(stage.views[0], grid[0]);
    const [view] = stage.views;
    this.on = true;
    this.told(true);
    this.seen.clear();
    this.at =
      view.opened?.panel ??
      fullest(view.layout.panels).find(({ axes }) => axes.length > 1)?.index ??
      0;
    if (view.opened) stage.settleSoon();
    else actions.open(view, this.at);
  }

  stop() {
    if (!this.on) return;
    this.on = false;
    clearTimeout(this.timer);
    this.actions.pauseTour();
    this.told(false);
  }

  /** The picture stands: go on from there. @private */
  go() {
    clearTimeout(this.timer);
    const [view] = this.stage.views;
    if (!this.on || this.stage.morph) return;
    if (view.opened?.panel !== this.at) {
      this.stop();
      return;
    }
    this.seen.add(this.at);
    const beside = neighbours(view.layout, this.at).flatMap(({ panels }) => panels);
    const panels = beside.map((index) => view.layout.panels[index]);
    const next = fullest(panels).find(({ index }) => !this.seen.has(index));
    if (!next) {
      this.stop();
      return;
    }
    this.timer = setTimeout(() => {
      this.at = next.index;
      this.actions.tour(view, next.index);
    }, REST);
  }
}
