/** Views that a person keeps: in this browser, a list for each data set. */

import { stateOf } from '../state.js';

/** @typedef {{name: string, state: import('../state.js').State}} Kept @typedef {import('../stage.js').Stage} Stage */

const MOST = 20;

/** @param {Stage} stage @returns {Kept[]} */
export function keptViews({ options: { keep } }) {
  try {
    return JSON.parse(localStorage.getItem(`appca-views-${keep}`) ?? '[]');
  } catch {
    return [];
  }
}

/** @param {Stage} stage @param {Kept[]} views */
export function storeViews({ options: { keep } }, views) {
  try {
    localStorage.setItem(`appca-views-${keep}`, JSON.stringify(views.slice(0, MOST)));
  } catch {
    /* the browser keeps nothing */
  }
}

/** Keep what is shown, under a name that says what it is. @param {Stage} stage */
export function keepView(stage) {
  const {
    tour,
    views: [{ layout, opened, cam, home }],
  } = stage;
  const zoomed = cam.k > 1.05 * home.k ? ` × ${(cam.k / home.k).toFixed(1)}` : '';
  const name = tour
    ? `${tour.a.name} → ${tour.b.name}, ${Math.round(100 * tour.t)}%`
    : opened
      ? layout.panels[opened.panel].name
      : `${stage.views.map((view) => view.layout.title).join(' + ')}${zoomed}`;
  storeViews(stage, [
    { name, state: stateOf(stage) },
    ...keptViews(stage).filter((other) => other.name !== name),
  ]);
}
