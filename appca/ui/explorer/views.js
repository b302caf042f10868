import { axisKey } from './axes.js';

/**
 * Zoom: kept as long as the revision is the same, over recolouring, reruns and page changes.
 */

/** Ranges to draw with, by axis key; empty for those of Python. */
export function keptRanges(explorer) {
  const { key, revision } = explorer.message.view;
  const kept = explorer.store.views.get(key);
  return kept && kept.revision === revision ? kept.ranges : {};
}

export function rememberRanges(explorer) {
  const { key, revision } = explorer.message.view;
  const ranges = rangesOf(explorer.dom.plot._fullLayout, explorer.panels.length);
  explorer.store.views.set(key, { revision, ranges });
}

/** Ranges now on screen, by axis key. */
export function rangesOf(fullLayout, count) {
  const ranges = {};
  for (let number = 0; number < count; number += 1) {
    for (const letter of ['x', 'y']) {
      const key = axisKey(letter, number);
      if (fullLayout[key]) ranges[key] = fullLayout[key].range.map(Number);
    }
  }
  return ranges;
}

/** Ranges of the start: of one panel, or of all. */
export function homeRanges({ panels, axes }, only = null) {
  const ranges = {};
  panels.forEach((panel, number) => {
    if (only !== null && number !== only) return;
    ranges[panel.xKey] = axes[panel.xKey].range.slice();
    ranges[panel.yKey] = axes[panel.yKey].range.slice();
  });
  return ranges;
}

/** Ranges as changes for Plotly.relayout. */
export function relayoutOf(ranges) {
  const changes = {};
  for (const [key, range] of Object.entries(ranges)) changes[`${key}.range`] = range;
  return changes;
}
