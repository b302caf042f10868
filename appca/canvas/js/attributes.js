/** The attributes of the root, kept current: what is drawn, and whether the picture stands still. */

/** @typedef {import('./stage.js').Stage} Stage @typedef {import('./scene/layouts.js').Layout} Layout */

/** @type {WeakMap<Layout, number>} different rows of a layout */
const counted = new WeakMap();

/** @param {Stage} stage */
export function tell(stage) {
  const {
    root,
    stats,
    rows,
    views: [view],
  } = stage;
  const { layout, opened } = view;
  root.classList.remove('appca-blank');
  Object.assign(root.dataset, {
    points: layout.panels.reduce((sum, { count }) => sum + count, 0),
    rows: different(layout, rows.count),
    panels: layout.panels.length,
    thumbnails: stats.images,
    selected: rows.selected,
    held: stage.held,
    renders: stats.renders,
    frameMs: stats.ms.toFixed(2),
    theme: stage.dark ? 'dark' : 'light',
    view:
      stage.views.map((shownView) => shownView.layout.name).join('+') +
      (opened ? ` ${layout.panels[opened.panel].name}` : ''),
    drawn: stats.whole ? 'all' : 'sample',
    settled: stage.still && !stage.layer.building ? 'yes' : '',
  });
}

/** @param {Layout} layout @param {number} all */
function different(layout, all) {
  const cached = counted.get(layout);
  if (cached !== undefined) return cached;
  const seen = new Uint8Array(all);
  let count = 0;
  for (const { start, count: many } of layout.panels)
    for (const row of layout.rows.subarray(start, start + many)) {
      count += 1 - seen[row];
      seen[row] = 1;
    }
  counted.set(layout, count);
  return count;
}
