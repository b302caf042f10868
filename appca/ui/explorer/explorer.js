import { toBase64 } from './bytes.js';
import { fillCard, hideCard, placeCard } from './card.js';
import { element } from './dom.js';
import { buildLayout, buildTraces, rangesOf, relayoutOf, withDomains } from './figure.js';
import { listenToPointer } from './gestures.js';
import { arrange } from './grid.js';
import { listenToKeys } from './keys.js';
import {
  drawCellImages,
  fillLabels,
  placeLabels,
  pressCells,
  rowsOfCell,
} from './labels.js';
import { fillLegend, pressChips, rowsOfClass } from './legend.js';
import { acceptsSelection, readGeometry, readHover, readMessage, readOrder } from './message.js';
import { drawOverlay } from './overlay.js';
import { combineRows, countRows, isExactly, joinOf, packMask, sameRows, selectedPlaces } from './rows.js';
import { sharedStore } from './store.js';
import { readTheme, themeKey } from './theme.js';
import { buildToolbar, refreshToolbar } from './toolbar.js';

/**
 * The explorer: one state object an instance, and what happens to it.
 */

const ASK_DELAY = 120; // ms to gather missing sheets before asking
const MOST_ASKED = 8; // sheets at a time
const PLOTLY_OPTIONS = {
  displayModeBar: false,
  displaylogo: false,
  showSendToCloud: false,
  scrollZoom: true,
  doubleClick: false,
  responsive: false,
};

const explorers = new WeakMap();

/** What Streamlit calls at every rerun and theme change. */
export default function mountExplorer({ data, parentElement, setStateValue, key }) {
  let explorer = explorers.get(parentElement);
  if (!explorer) {
    explorer = createExplorer(parentElement, key ?? 'explorer');
    explorers.set(parentElement, explorer);
  }
  explorer.send = setStateValue;
  receive(explorer, readMessage(data));
  return () => {
    destroyExplorer(explorer);
    explorers.delete(parentElement);
  };
}

function createExplorer(parent, key) {
  const explorer = {
    key,
    store: sharedStore(),
    webgl: hasWebgl(),
    message: null,
    geometryName: null, // of the parcel that is on screen
    panels: [],
    axes: {},
    order: null,
    hover: null,
    colour: null,
    theme: null,
    grid: null,
    selection: null,
    selectedCount: 0,
    stamp: { mount: crypto.randomUUID(), number: 0 },
    mode: 'pan',
    thumbnail: 0,
    givenThumbnail: null, // the last size Python asked for
    hovered: null,
    press: null,
    path: null,
    activePanel: 0,
    wheelPanel: -1,
    revision: null,
    drawnAs: null, // what the figure on screen was made from
    rendering: false,
    renders: 0,
    asked: new Set(),
    missing: new Set(),
    askTimer: 0,
    pendingFrame: 0,
    gone: false,
  };
  buildPage(explorer, parent);
  return explorer;
}

function buildPage(explorer, parent) {
  const root = element('div', 'appca-explorer');
  const head = element('div', 'appca-head');
  const legend = element('div', 'appca-legend', null, { role: 'group', 'aria-label': 'Colours' });
  const stage = element('div', 'appca-stage');
  const plot = element('div', 'appca-plot');
  const canvas = element('canvas', 'appca-canvas', null, { 'aria-hidden': 'true' });
  const labels = element('div', 'appca-labels');
  const card = element('div', 'appca-card', null, { role: 'tooltip' });
  card.hidden = true;
  explorer.dom = { root, head, legend, stage, plot, canvas, labels, card };
  const actions = actionsOf(explorer);
  explorer.toolbar = buildToolbar(actions);
  head.append(legend, explorer.toolbar.root);
  stage.append(plot, canvas, labels, card);
  root.append(head, stage);
  parent.append(root);
  listenToPointer(explorer, actions);
  listenToKeys(explorer, actions);
  labels.addEventListener('focusin', (event) => {
    explorer.activePanel = Number(event.target.closest('.appca-panel').dataset.panel);
  });
  explorer.onArrival = () => advance(explorer);
  explorer.store.listeners.add(explorer.onArrival);
  explorer.observer = new ResizeObserver(() => resize(explorer));
  explorer.observer.observe(root);
}

function actionsOf(explorer) {
  return {
    setMode: (mode) => setMode(explorer, mode),
    setThumbnail: (size) => setThumbnail(explorer, size),
    clear: () => select(explorer, [], 'replace'),
    home: () => setRanges(explorer, homeRanges(explorer)),
    resetPanel: (number) => setRanges(explorer, homeRanges(explorer, number)),
    setRanges: (ranges) => setRanges(explorer, ranges),
    select: (rows, how) => select(explorer, rows, how),
    hover: (hit, left, top) => hover(explorer, hit, left, top),
    leave: () => leave(explorer),
    redraw: () => schedule(explorer),
    activate: (number) => {
      explorer.activePanel = number;
      explorer.dom.labels.children[number]?.focus({ preventScroll: true });
    },
  };
}

function destroyExplorer(explorer) {
  explorer.gone = true;
  explorer.observer.disconnect();
  explorer.store.listeners.delete(explorer.onArrival);
  clearTimeout(explorer.askTimer);
  cancelAnimationFrame(explorer.pendingFrame);
  if (window.Plotly) window.Plotly.purge(explorer.dom.plot);
  explorer.dom.root.remove();
}

function hasWebgl() {
  const context = document.createElement('canvas').getContext('webgl');
  context?.getExtension('WEBGL_lose_context')?.loseContext(); // browsers grant only a few
  return context !== null;
}

// ---- from Python -------------------------------------------------------------------------------

function receive(explorer, message) {
  explorer.message = message;
  if (message.view.thumbnail_px !== explorer.givenThumbnail) {
    explorer.givenThumbnail = message.view.thumbnail_px;
    explorer.thumbnail = message.view.thumbnail_px;
  }
  if (acceptsSelection(explorer.stamp, message.seen)) takeSelection(explorer, message.selection);
  advance(explorer);
}

function takeSelection(explorer, selection) {
  if (sameRows(explorer.selection, selection)) return;
  explorer.selection = selection;
  explorer.selectedCount = countRows(selection);
}

/** Go on as far as what has arrived allows. */
function advance(explorer) {
  const { message, store } = explorer;
  if (!message || explorer.gone) return;
  const geometry = store.parcels.get(message.parcels.geometry);
  if (!geometry || !window.Plotly) return;
  if (explorer.geometryName !== message.parcels.geometry) {
    Object.assign(explorer, readGeometry(geometry.bytes), {
      geometryName: message.parcels.geometry,
      hovered: null,
      activePanel: 0,
    });
    fillLabels(explorer.dom.labels, explorer.panels, (panel, which, event) =>
      pickSet(explorer, rowsOfCell(panel, which), event),
    );
  }
  readSmallParcels(explorer);
  render(explorer);
}

function readSmallParcels(explorer) {
  const { message, store } = explorer;
  const read = (name, reader) => {
    const parcel = name && store.parcels.get(name);
    if (!parcel) return null;
    parcel.decoded ??= reader(parcel.bytes);
    return parcel.decoded;
  };
  explorer.order = read(message.parcels.order, readOrder);
  explorer.hover = read(message.parcels.hover, readHover);
}

// ---- drawing -----------------------------------------------------------------------------------

/** Draw the figure if it changed; never two drawings at once. */
async function render(explorer) {
  if (explorer.rendering) return;
  const width = Math.floor(explorer.dom.root.clientWidth);
  if (width === 0) return;
  const { message } = explorer;
  explorer.theme = readTheme(explorer.dom.root, explorer.fill);
  const wanted = figureKey(explorer);
  if (wanted === explorer.drawnAs) {
    refresh(explorer);
    return;
  }
  explorer.rendering = true;
  explorer.colour = message.colour;
  const ranges = keptRanges(explorer);
  place(explorer, width);
  const traces = buildTraces(explorer.panels, explorer.colour, explorer.selection, {
    pointSize: message.view.point_size,
    webgl: explorer.webgl,
  });
  const layout = buildLayout(explorer.axes, explorer.grid, explorer.theme, ranges);
  layout.uirevision = message.view.revision;
  await window.Plotly.react(explorer.dom.plot, traces, layout, PLOTLY_OPTIONS);
  explorer.rendering = false;
  if (explorer.gone) return;
  if (explorer.renders === 0) listenToPlotly(explorer);
  explorer.drawnAs = wanted;
  explorer.drawnSelection = explorer.selection;
  explorer.renders += 1;
  explorer.points = traces.reduce((sum, trace) => sum + trace.x.length, 0);
  fillLegend(explorer.dom.legend, explorer.colour, (code, event) =>
    pickSet(explorer, rowsOfClass(explorer.colour.codes, code), event),
  );
  if (figureKey(explorer) === wanted) refresh(explorer);
  else render(explorer);
}

/** All that the figure is made from, except the selection and the width. */
function figureKey({ message, theme, webgl }) {
  const { colour, view, parcels } = message;
  const { codes } = colour;
  let sum = 0;
  for (let row = 0; row < codes.length; row += 1) sum = (Math.imul(sum, 31) + codes[row]) | 0;
  const { codes: _, ...look } = colour;
  return JSON.stringify([parcels.geometry, view, look, sum, themeKey(theme), webgl]);
}

/** Zoom stays while the revision does, over recolouring and page changes. */
function keptRanges(explorer) {
  const { revision } = explorer.message.view;
  const kept = explorer.store.views.get(explorer.key);
  return kept && kept.revision === revision ? kept.ranges : {};
}

function rememberRanges(explorer) {
  const { revision } = explorer.message.view;
  const ranges = rangesOf(explorer.dom.plot._fullLayout, explorer.panels.length);
  explorer.store.views.set(explorer.key, { revision, ranges });
}

function place(explorer, width) {
  const { columns, height } = explorer.message.view;
  explorer.grid = arrange(width, explorer.panels.length, columns, height);
  explorer.dom.stage.style.height = `${explorer.grid.height}px`;
  placeLabels(explorer.dom.labels, explorer.grid.boxes);
}

function listenToPlotly(explorer) {
  const { plot } = explorer.dom;
  plot.on('plotly_relayouting', () => schedule(explorer));
  plot.on('plotly_afterplot', () => schedule(explorer));
  plot.on('plotly_relayout', () => {
    rememberRanges(explorer);
    schedule(explorer);
  });
}

/** Bring the page around the figure up to date. */
function refresh(explorer) {
  if (explorer.drawnSelection !== explorer.selection) showSelection(explorer);
  const { dom, theme, order, selection, selectedCount } = explorer;
  drawCellImages(dom.labels, explorer.panels, order?.style === 'ink', theme.text);
  pressCells(dom.labels, explorer.panels, (panel, which) =>
    isExactly(selection, selectedCount, rowsOfCell(panel, which)),
  );
  pressChips(dom.legend, (code) =>
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
  schedule(explorer);
}

function noteOf({ selection, selectedCount, message, webgl, panels, points }) {
  const words = [];
  if (selection) {
    const [count, all] = [selectedCount, message.rows].map((n) => n.toLocaleString('en-US'));
    words.push(`${count} of ${all} selected`);
  }
  const total = panels.reduce((sum, panel) => sum + panel.rows.length, 0);
  if (!webgl && points < total) {
    const [shown, all] = [points, total].map((n) => n.toLocaleString('en-US'));
    words.push(`no WebGL: ${shown} of ${all} points drawn, selections take all`);
  }
  return words.join(' · ');
}

function showSelection(explorer) {
  explorer.drawnSelection = explorer.selection;
  const { selection, panels, dom } = explorer;
  if (!explorer.webgl) {
    explorer.drawnAs = null; // the traces hold a subsample: build them again
    render(explorer);
    return;
  }
  const places = panels.map((panel) => selection && selectedPlaces(panel.rows, selection));
  window.Plotly.restyle(dom.plot, { selectedpoints: places });
}

function schedule(explorer) {
  if (explorer.pendingFrame || explorer.gone) return;
  explorer.pendingFrame = requestAnimationFrame(() => {
    explorer.pendingFrame = 0;
    if (explorer.gone || !explorer.renders || !explorer.dom.plot._fullLayout) return;
    const { drawn, missing } = drawOverlay(explorer);
    explorer.dom.root.dataset.thumbnails = String(drawn);
    for (const sheet of missing) wantSheet(explorer, sheet);
  });
}

function resize(explorer) {
  const width = Math.floor(explorer.dom.root.clientWidth);
  if (!explorer.renders) {
    advance(explorer);
    return;
  }
  if (width === 0 || explorer.rendering || explorer.grid.width === width) return;
  place(explorer, width);
  window.Plotly.relayout(explorer.dom.plot, domainChanges(explorer));
}

function domainChanges({ dom, grid }) {
  const changes = { width: grid.width, height: grid.height };
  const moved = withDomains(dom.plot.layout, grid);
  for (const [key, value] of Object.entries(moved)) {
    if (value.domain) changes[`${key}.domain`] = value.domain;
  }
  return changes;
}

// ---- what the person does ----------------------------------------------------------------------

function setMode(explorer, mode) {
  explorer.mode = mode;
  explorer.dom.stage.dataset.mode = mode;
  refresh(explorer);
}

function setThumbnail(explorer, size) {
  explorer.thumbnail = size;
  refresh(explorer);
}

function homeRanges(explorer, only = null) {
  const ranges = {};
  explorer.panels.forEach((panel, number) => {
    if (only !== null && number !== only) return;
    ranges[panel.xKey] = explorer.axes[panel.xKey].range.slice();
    ranges[panel.yKey] = explorer.axes[panel.yKey].range.slice();
  });
  return ranges;
}

function setRanges(explorer, ranges) {
  window.Plotly.relayout(explorer.dom.plot, relayoutOf(ranges));
}

/** Select a class or a sign cell; a second time lets it go. */
function pickSet(explorer, rows, event) {
  const again = isExactly(explorer.selection, explorer.selectedCount, rows);
  select(explorer, again ? [] : rows, again ? 'replace' : joinOf(event));
}

function select(explorer, rows, how) {
  const next = combineRows(explorer.selection, rows, explorer.message.rows, how);
  if (sameRows(next, explorer.selection)) return;
  takeSelection(explorer, next);
  explorer.stamp.number += 1;
  explorer.send('selection', {
    ...explorer.stamp,
    count: explorer.selectedCount,
    bits: next && toBase64(packMask(next)),
  });
  refresh(explorer);
}

function hover(explorer, hit, left, top) {
  const { hovered, dom } = explorer;
  const same = hovered && hovered.number === hit.number && hovered.place === hit.place;
  explorer.hovered = hit;
  if (!same || dom.card.dataset.image === 'false') {
    const complete = fillCard(explorer, hit);
    if (!complete) wantSheetOf(explorer, hit);
    schedule(explorer);
  }
  placeCard(dom.card, left, top, { width: explorer.grid.width, height: explorer.grid.height });
}

function leave(explorer) {
  if (!explorer.hovered) return;
  explorer.hovered = null;
  hideCard(explorer.dom.card);
  schedule(explorer);
}

function wantSheetOf(explorer, { number, place: at }) {
  const { order, panels } = explorer;
  wantSheet(explorer, Math.floor(order.priority[panels[number].rows[at]] / order.perSheet));
}

/** Gather the sheets that are missing and ask Python for them together. */
function wantSheet(explorer, sheet) {
  if (explorer.asked.has(sheet)) return;
  explorer.missing.add(sheet);
  clearTimeout(explorer.askTimer);
  explorer.askTimer = setTimeout(() => {
    const next = [...explorer.missing].sort((a, b) => a - b).slice(0, MOST_ASKED);
    for (const number of next) {
      explorer.asked.add(number);
      explorer.missing.delete(number);
    }
    if (next.length) explorer.send('need', next);
  }, ASK_DELAY);
}
