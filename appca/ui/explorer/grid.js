/**
 * Where the panels stand, by the width there is. All in pixels; Plotly's domains follow from it.
 */

export const GRID = {
  leastPanel: 236, // narrower panels are unreadable: then fewer columns
  gap: 16,
  left: 46, // tick labels and the name of the y axis
  right: 2,
  top: 30, // title
  bottom: 44, // tick labels and the name of the x axis
  lineGap: 10,
  ratio: 0.92, // height of a plotting area over its width
  leastHeight: 210,
  mostHeight: 380,
};

/** Columns that fit, at most `wanted` and never more than there are panels. */
export function columnsFor(width, count, wanted) {
  const fitting = Math.floor((width + GRID.gap) / (GRID.leastPanel + GRID.gap));
  return Math.max(1, Math.min(fitting, wanted, count));
}

/**
 * Place `count` panels.
 *
 * @param {number} width of the container
 * @param {number} count
 * @param {number} wanted most columns
 * @param {?number} height of one plotting area, when the caller insists
 * @returns {{columns: number, width: number, height: number, boxes: Object[]}} boxes are the
 *   plotting areas, {left, top, width, height}
 */
export function arrange(width, count, wanted, height) {
  const columns = columnsFor(width, count, wanted);
  const cellWidth = (width - GRID.gap * (columns - 1)) / columns;
  const plotWidth = Math.max(40, cellWidth - GRID.left - GRID.right);
  const natural = Math.round(plotWidth * GRID.ratio);
  const plotHeight =
    height ?? Math.min(GRID.mostHeight, Math.max(GRID.leastHeight, natural));
  const cellHeight = GRID.top + plotHeight + GRID.bottom + GRID.lineGap;
  const boxes = [];
  for (let number = 0; number < count; number += 1) {
    const line = Math.floor(number / columns);
    boxes.push({
      left: (number % columns) * (cellWidth + GRID.gap) + GRID.left,
      top: line * cellHeight + GRID.top,
      width: plotWidth,
      height: plotHeight,
    });
  }
  const lines = Math.max(1, Math.ceil(count / columns));
  return { columns, width, height: lines * cellHeight - GRID.lineGap, boxes };
}

/** A box as Plotly's domains: shares of the whole, y from below. */
export function domainsOf(box, size) {
  return {
    x: [box.left / size.width, (box.left + box.width) / size.width],
    y: [1 - (box.top + box.height) / size.height, 1 - box.top / size.height],
  };
}
