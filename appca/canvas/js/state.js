/** What is shown, as a few words that a host can keep and give back: layouts, cameras, the opened panel, the tour. */

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

/** Show a state again. @param {Stage} stage @param {import('./input/actions.js').Actions} actions @param {(layout: string) => Promise<void>} beside @param {State} state */
export async function restore(stage, actions, beside, { layouts, cameras, opened, tour }) {
  await actions.morph(stage.views[0], layouts[0]);
  await beside(layouts[1] ?? '');
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
  const index = (/** @type {string} */ name) =>
    view.layout.panels.findIndex((panel) => panel.name === name);
  if (opened && index(opened) >= 0) actions.open(view, index(opened));
  else if (view.opened) actions.close(view);
  if (opened && tour && index(tour.to) >= 0) actions.tour(view, index(tour.to), tour.t);
  stage.settleSoon();
}
