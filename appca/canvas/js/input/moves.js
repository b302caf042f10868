/** Ways to move about: open and close panels, turn, change the layout, fly. */

import { between } from '../layout/camera.js';
import { clamp } from '../layout/rect.js';
import { makeView, share } from '../layout/views.js';
import { Morph, placesOf } from '../move/morph.js';
import { Tour } from '../move/tour.js';
import { ease, sine } from '../move/tween.js';
import { grouped } from '../scene/names.js';
import { zoomView } from './gestures.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../layout/view.js').View} View */

const OPEN = 320; // ms
const MORPH = 420;
const TURN = 1400;

export class Moves {
  /** @param {Stage} stage */
  constructor(stage) {
    this.stage = stage;
    /** @type {(text: string) => void} tell what happened, for screen readers */
    this.say = () => {};
    /** @type {(() => void)[]} after the views changed */
    this.changed = [];
  }

  /** @param {View} view @param {number} panel @param {import('../layout/arrange.js').Part} [part] */
  open(view, panel, part) {
    if (part?.inset) {
      this.morph(view, part.layout.name);
      return;
    }
    if (view.layout.kind === 'map') return;
    this.shift(view, () => view.open(panel));
    const { name, count } = view.layout.panels[panel];
    this.say(`${name} opened, ${grouped(count)} rows`);
  }

  /** @param {View} view */
  close(view) {
    if (!view.opened) return;
    this.endTour();
    this.shift(view, () => {
      view.opened = null;
    });
    this.say('All panels');
  }

  /** Panels move from where they are to where the change puts them. @param {View} view @param {() => void} change */
  shift(view, change) {
    const { stage } = this;
    this.endTour();
    stage.tweens.stop('shift');
    view.hold();
    change();
    stage.tweens.start(
      'shift',
      OPEN,
      (t) => {
        view.shift = ease(t);
      },
      () => {
        view.from = null;
      },
    );
    this.after();
  }

  /** Turn from the opened panel to another; without `t` it plays to the end. @param {View} view @param {number} to @param {number} [t] */
  tour(view, to, t) {
    const { stage } = this;
    if (!view.opened || view.opened.panel === to) return;
    if (stage.tour?.view !== view || stage.tour.b.index !== to) {
      view.opened.range = view.layout.panels[view.opened.panel].extent;
      stage.tour = new Tour(stage, view, view.opened.panel, to);
    }
    const { tour } = stage;
    stage.frame = '';
    stage.tweens.stop('tour');
    const from = tour.t;
    if (t !== undefined) {
      tour.t = clamp(t, 0, 1);
      stage.moved();
    } else {
      stage.tweens.start(
        'tour',
        TURN * (1 - from),
        (share) => {
          tour.t = from + (1 - from) * sine(share);
        },
        () => this.arrive(view, to),
      );
      stage.moved();
      this.say(`${tour.a.name} turns into ${tour.b.name}`);
    }
  }

  /** The tour is over: its last frame is the other panel. @param {View} view @param {number} to */
  arrive(view, to) {
    const before = /** @type {import('../layout/view.js').Opened} */ (view.opened);
    const large = /** @type {import('../types.js').Rect} */ (before.rects.get(before.panel));
    this.shift(view, () => view.open(to));
    view.from?.delete(before.panel);
    view.from?.set(to, {
      card: large,
      range: view.layout.panels[to].extent,
      strength: 1,
      open: true,
    });
  }

  /** Stop a turn where it is; whether there was one. */
  pauseTour() {
    const { tweens } = this.stage;
    const turns = tweens.running.has('tour');
    tweens.stop('tour');
    if (turns) this.stage.settleSoon();
    return turns;
  }

  endTour() {
    this.stage.tour = null;
    this.stage.tweens.stop('tour');
  }

  after() {
    this.stage.moved();
    this.changed.forEach((tell) => tell());
  }

  /** Show another layout in a view; the points travel. @param {View} view @param {string} name */
  async morph(view, name) {
    const { stage } = this;
    if (!stage.meta.layouts[name] || view.layout.name === name) return;
    const made = await makeView(stage, name);
    if (stage.gone || !stage.views.includes(view)) return;
    this.endTour();
    this.replace(view, made);
    this.say(`${made.layout.title}: ${made.layout.panels.length} panels`);
  }

  /** Put another view in the place of one, or the same after a change; its points travel there, if anything may move. @param {View} view @param {View} made @param {() => void} [change] */
  replace(view, made, change) {
    const { stage } = this;
    const old = stage.tweens.reduced ? null : placesOf(stage, view);
    change?.();
    stage.tweens.stop('morph');
    stage.views[stage.views.indexOf(view)] = made;
    share(stage);
    stage.gpu.prune(new Set(stage.views.flatMap(({ parts }) => parts.map(({ layout }) => layout))));
    stage.morph?.free();
    const morph = old && new Morph(stage, made, old);
    stage.morph = morph;
    stage.tweens.start(
      'morph',
      MORPH,
      (t) => {
        if (morph) morph.t = ease(t);
      },
      () => {
        stage.morph = null;
        morph?.free();
      },
    );
    this.after();
  }

  /** Fly to a camera. @param {View} view @param {import('../layout/camera.js').Camera} cam */
  flyTo(view, cam) {
    const from = { ...view.cam };
    this.stage.tweens.start('fly', OPEN, (t) => {
      view.cam = between(from, cam, ease(t));
    });
    this.stage.moved();
  }

  /** All panels in view. @param {View} view */
  home(view) {
    if (view.opened) this.close(view);
    this.flyTo(view, view.home);
  }

  /** @param {View} view @param {number} factor about the middle */
  zoom(view, factor) {
    const { x, y, w, h } = view.rect;
    zoomView(this.stage, view, x + w / 2, y + h / 2, factor);
  }
}
