/** What is shown, as a few words that a host can keep and give back: layouts, cameras, the opened panel, the tour. */

import { update } from './update.js';

/** @typedef {import('./stage.js').Stage} Stage @typedef {{x: number, y: number, k: number}} Place in shares of the world, times "all panels" */
/** @typedef {{layouts: string[], cameras: Place[], opened: string | null, tour: {to: string, t: number} | null}} State */

/** @param {Stage} stage @returns {State} */
export function stateOf({ views, tour }) {
  const [{ layout, opened }] = views;
  return {
    layouts: views.map((view) => view.layout.name),
    cameras: views.map(({ cam, home, arrangement: { world } }) => ({
      x: (cam.x - world.x) / world.w,
      y: (cam.y - world.y) / world.h,
      k: cam.k / home.k,
    })),
    opened: opened ? layout.panels[opened.panel].name : null,
    tour: tour && { to: tour.b.name, t: tour.t },
  };
}

/** The place of a panel among those of a layout, -1 where it has none of that name. @param {import('./scene/layouts.js').Layout} layout @param {string} name */
export const panelCalled = ({ panels }, name) => panels.findIndex((panel) => panel.name === name);

/** Show a state again. @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {State} state */
export async function restore(stage, actions, { layouts, cameras, opened, tour }) {
  await actions.morph(stage.views[0], layouts[0]);
  await update(stage, actions, { options: { beside: layouts[1] ?? '' } });
  stage.views.forEach((view, i) => {
    const {
      arrangement: { world },
      home,
    } = view;
    const at = cameras[i];
    if (at)
      view.cam = { x: world.x + at.x * world.w, y: world.y + at.y * world.h, k: at.k * home.k };
  });
  const [view] = stage.views;
  const panel = opened === null ? -1 : panelCalled(view.layout, opened);
  if (panel >= 0) actions.open(view, panel);
  else if (view.opened) actions.close(view);
  const to = tour ? panelCalled(view.layout, tour.to) : -1;
  if (tour && panel >= 0 && to >= 0) actions.tour(view, to, tour.t);
  stage.settleSoon();
}
