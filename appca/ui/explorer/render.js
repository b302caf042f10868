import { hideCard } from './card.js';
import { namePanels } from './describe.js';
import { buildLayout, buildTraces, domainChanges } from './figure.js';
import { arrange } from './grid.js';
import { drawCellImages, fillLabels, measureCells, placeLabels } from './labels.js';
import { fillLegend } from './legend.js';
import { readGeometry, readHover, readIds, readOrder } from './message.js';
import { drawOverlay } from './overlay.js';
import { refresh, showSelection } from './refresh.js';
import { pointTable, readTheme, themeKey } from './theme.js';
import { keptRanges, rememberRanges } from './views.js';

/**
 * The figure: drawn when what it is made from has changed, and never twice at once.
 */

const PLOTLY_OPTIONS = {
  displayModeBar: false,
  displaylogo: false,
  showSendToCloud: false,
  scrollZoom: true,
  doubleClick: false,
  responsive: false,
};

const GREY_DELAY = 30; // ms: a frame has been drawn by then

/** Go on as far as what has arrived allows. */
export function advance(explorer) {
  const { message, store } = explorer;
  if (!message || explorer.gone) return;
  const geometry = store.parcels.get(message.parcels.geometry);
  if (!geometry || !window.Plotly) return;
  if (explorer.geometryName !== message.parcels.geometry && !explorer.rendering) {
    takeGeometry(explorer, geometry);
  }
  explorer.order = decoded(store, message.parcels.order, readOrder);
  const columns = decoded(store, message.parcels.hover, readHover);
  const ids = decoded(store, message.parcels.ids, readIds);
  explorer.hover = columns && { ids, columns, countFromZero: message.parcels.ids === null };
  render(explorer);
}

function takeGeometry(explorer, parcel) {
  const { dom, actions, activePanel } = explorer;
  const hadFocus = dom.labels.contains(document.activeElement);
  Object.assign(explorer, readGeometry(parcel.bytes), {
    geometryName: explorer.message.parcels.geometry,
    hovered: null,
    cursor: null,
    press: null, // a lasso in pixels of the picture before; its release says so, see gestures.js
    path: null,
    activePanel: 0,
  });
  hideCard(dom.card);
  fillLabels(dom.labels, explorer.panels, actions.pickCell);
  if (hadFocus) actions.activate(Math.min(activePanel, explorer.panels.length - 1));
}

/** A small parcel, read once for all who hold it; null when there is none yet. */
function decoded(store, name, reader) {
  const parcel = name && store.parcels.get(name);
  if (!parcel) return null;
  parcel.decoded ??= reader(parcel.bytes);
  return parcel.decoded;
}

async function render(explorer) {
  if (explorer.rendering || widthOf(explorer) === 0) return;
  explorer.theme = readTheme(explorer.dom.root, explorer.fill);
  const wanted = figureKey(explorer);
  if (wanted === explorer.drawnAs) {
    refreshAll(explorer);
    return;
  }
  explorer.rendering = true;
  try {
    await drawFigure(explorer);
    explorer.drawnAs = wanted;
  } finally {
    explorer.rendering = false;
  }
  if (!explorer.gone) advance(explorer); // something may have arrived meanwhile
}

async function drawFigure(explorer) {
  const { message, panels, selection, webgl } = explorer;
  const table = pointTable(message.colour.table, explorer.theme);
  explorer.colour = { ...message.colour, table };
  place(explorer, widthOf(explorer));
  const ground = explorer.theme.background;
  const options = { size: message.view.point_size, ground, webgl };
  const traces = buildTraces(panels, explorer.colour, selection, options);
  const layout = buildLayout(explorer.axes, explorer.grid, explorer.theme, keptRanges(explorer));
  layout.uirevision = message.view.revision;
  await window.Plotly.react(explorer.dom.plot, traces, layout, PLOTLY_OPTIONS);
  if (explorer.gone) return;
  if (explorer.renders === 0) listenToPlotly(explorer);
  explorer.drawnSelection = selection;
  explorer.renders += 1;
  explorer.points = traces.reduce((sum, trace) => sum + trace.x.length, 0);
  fillLegend(explorer.dom.legend, explorer.colour, explorer.actions.pickClass);
  namePanels(explorer.dom.labels, panels, explorer.axes, explorer.colour);
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

function widthOf(explorer) {
  return Math.floor(explorer.dom.root.clientWidth);
}

function place(explorer, width) {
  const { columns, height } = explorer.message.view;
  explorer.grid = arrange(width, explorer.panels.length, columns, height);
  explorer.dom.stage.style.height = `${explorer.grid.height}px`;
  placeLabels(explorer.dom.labels, explorer.grid.boxes);
  measureCells(explorer.dom.labels, explorer.panels);
}

/** Follow the width of the page. */
export function resize(explorer) {
  const width = widthOf(explorer);
  if (!explorer.renders) advance(explorer);
  else if (width > 0 && !explorer.rendering && explorer.grid.width !== width) {
    place(explorer, width);
    window.Plotly.relayout(explorer.dom.plot, domainChanges(explorer.grid));
  }
}

/** Bring everything but the figure itself up to date; the points' greying follows. */
export function refreshAll(explorer) {
  if (!explorer.renders) return;
  const { dom, panels, order, theme } = explorer;
  drawCellImages(dom.labels, panels, order?.style === 'ink', theme.text);
  refresh(explorer);
  explorer.actions.completeCard();
  schedule(explorer);
  if (explorer.drawnSelection !== explorer.selection) greyLater(explorer);
}

/** Grey points after the counts are on screen: with many points it takes a second. */
function greyLater(explorer) {
  clearTimeout(explorer.greyTimer);
  explorer.greyTimer = setTimeout(() => {
    if (explorer.gone || explorer.drawnSelection === explorer.selection) return;
    if (explorer.webgl && !explorer.rendering) showSelection(explorer);
    else {
      explorer.drawnAs = null; // SVG holds a subsample: its traces are built again
      render(explorer);
    }
  }, GREY_DELAY);
}

/** Redraw the overlay with the next frame. */
export function schedule(explorer) {
  if (explorer.pendingFrame || explorer.gone) return;
  explorer.pendingFrame = requestAnimationFrame(() => {
    explorer.pendingFrame = 0;
    if (explorer.gone || explorer.rendering || !explorer.renders) return;
    const { drawn, missing } = drawOverlay(explorer);
    explorer.dom.root.dataset.thumbnails = String(drawn);
    missing.forEach(explorer.actions.wantSheet);
    explorer.actions.followCursor();
  });
}

/** All that the figure is made from, except the selection and the width. */
function figureKey({ message, theme, webgl }) {
  const { view, parcels } = message;
  const { codes, ...look } = message.colour;
  const { revision, point_size: size, columns, height } = view;
  const shown = { revision, size, columns, height };
  return JSON.stringify([parcels.geometry, shown, look, sumOf(codes), themeKey(theme), webgl]);
}

function sumOf(codes) {
  let sum = 0;
  for (let row = 0; row < codes.length; row += 1) sum = (Math.imul(sum, 31) + codes[row]) | 0;
  return sum;
}
