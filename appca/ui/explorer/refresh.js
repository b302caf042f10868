import { countSelected, pressCells, rowsOfCell } from './labels.js';
import { pressChips, rowsOfClass } from './legend.js';
import { isExactly, selectedPlaces } from './rows.js';
import { refreshToolbar } from './toolbar.js';

/**
 * Words, pressed buttons and counters around the figure.
 */

export function refresh(explorer) {
  const { dom, order, selection, selectedCount } = explorer;
  pressCells(
    dom.labels,
    explorer.panels,
    (panel, which) =>
      selection !== null && isExactly(selection, selectedCount, rowsOfCell(panel, which)),
  );
  countSelected(dom.labels, explorer.panels, selection);
  pressChips(
    dom.legend,
    (code) =>
      selection !== null &&
      isExactly(selection, selectedCount, rowsOfClass(explorer.colour.codes, code)),
  );
  refreshToolbar(explorer.toolbar, {
    mode: explorer.mode,
    thumbnail: explorer.thumbnail,
    hasImages: order !== null,
    hasSelection: selection !== null,
    note: noteOf(explorer),
  });
  dom.root.dataset.renders = String(explorer.renders);
  dom.root.dataset.points = String(explorer.points);
  dom.root.dataset.selected = String(selectedCount);
}

/** What the line above the panels says. */
export function noteOf({ hint, selection, selectedCount, webgl, panels, points }) {
  const words = hint ? [hint] : [];
  if (selection) words.push(`${counted(selectedCount)} selected`); // short: a second line would move all
  const total = panels.reduce((sum, panel) => sum + panel.rows.length, 0);
  if (!webgl && points < total) {
    const shown = `${counted(points)} of ${counted(total)} points drawn`;
    words.push(`no WebGL: ${shown}, selections act on all`);
  }
  return words.join(' · ');
}

function counted(number) {
  return number.toLocaleString('en-US');
}

/** Grey out what is not selected, in all panels. */
export function showSelection(explorer) {
  const { selection, panels, dom } = explorer;
  explorer.drawnSelection = selection;
  const places = panels.map((panel) => selection && selectedPlaces(panel.rows, selection));
  window.Plotly.restyle(dom.plot, { selectedpoints: places });
}
