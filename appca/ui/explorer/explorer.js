import { actionsOf } from './actions.js';
import { element } from './dom.js';
import { listenToPointer } from './gestures.js';
import { buildHelp } from './help.js';
import { listenToKeys } from './keys.js';
import { readMessage, acceptsSelection } from './message.js';
import { advance, resize } from './render.js';
import { countRows, sameRows } from './rows.js';
import { sharedStore } from './store.js';
import { buildToolbar } from './toolbar.js';

/**
 * The explorer: one state object an instance. This module makes, feeds and ends it.
 */

const explorers = new WeakMap();

/** What Streamlit calls at every rerun and theme change. */
export default function mountExplorer({ data, parentElement, setStateValue }) {
  let explorer = explorers.get(parentElement);
  if (!explorer) {
    explorer = createExplorer();
    buildPage(explorer, parentElement);
    explorers.set(parentElement, explorer);
  }
  explorer.send = setStateValue;
  receive(explorer, readMessage(data));
  return () => {
    destroyExplorer(explorer);
    explorers.delete(parentElement);
  };
}

function createExplorer() {
  return {
    store: sharedStore(),
    webgl: hasWebgl(),
    send: null, // Streamlit's setStateValue
    // what Python sent
    message: null,
    geometryName: null,
    panels: [],
    axes: {},
    fill: '',
    order: null,
    hover: null,
    // what is on screen
    dom: null,
    toolbar: null,
    actions: null,
    theme: null,
    colour: null,
    grid: null,
    drawnAs: null, // what the figure was made from
    drawnSelection: null,
    rendering: false,
    renders: 0,
    points: 0,
    pendingFrame: 0,
    greyTimer: 0,
    gone: false,
    // what the person did
    selection: null,
    selectedCount: 0,
    stamp: { mount: crypto.randomUUID(), number: 0 },
    mode: 'pan',
    thumbnail: 0,
    givenThumbnail: null, // the last size Python asked for
    hovered: null, // {number, place} of panel and point
    cursor: null, // the same of the point that the keyboard is at
    press: null,
    path: null, // of the lasso, pixels
    activePanel: 0,
    wheelPanel: -1,
    hint: '',
    hintTimer: 0,
    // numbers of sprite sheets
    asked: new Set(), // in the last request to Python, which remembers those before
    missing: new Set(), // to be asked for next
    askTimer: 0,
  };
}

function buildPage(explorer, parent) {
  const root = element('div', 'appca-explorer');
  const head = element('div', 'appca-head');
  const legend = element('div', 'appca-legend', null, { role: 'group', 'aria-label': 'Colours' });
  const stage = element('div', 'appca-stage', null, { 'data-mode': 'pan' });
  const plot = element('div', 'appca-plot', null, { 'aria-hidden': 'true' }); // panels have words
  const canvas = element('canvas', 'appca-canvas', null, { 'aria-hidden': 'true' });
  const labels = element('div', 'appca-labels');
  const card = element('div', 'appca-card', null, { role: 'tooltip' });
  card.hidden = true;
  const voice = element('div', 'appca-voice', '', { role: 'status', 'aria-live': 'polite' });
  const help = buildHelp();
  explorer.dom = { root, head, legend, stage, plot, canvas, labels, card, voice, help };
  explorer.actions = actionsOf(explorer);
  explorer.toolbar = buildToolbar(explorer.actions);
  head.append(legend, explorer.toolbar.root);
  stage.append(plot, canvas, labels, card);
  root.append(head, stage, voice, help);
  parent.append(root);
  listen(explorer);
}

function listen(explorer) {
  const { root, labels } = explorer.dom;
  listenToPointer(explorer, explorer.actions);
  listenToKeys(explorer, explorer.actions);
  labels.addEventListener('focusin', (event) => {
    explorer.activePanel = Number(event.target.closest('.appca-panel').dataset.panel);
  });
  explorer.onArrival = () => advance(explorer);
  labels.addEventListener('focusout', () => explorer.actions.leave());
  explorer.store.listeners.add(explorer.onArrival);
  explorer.observer = new ResizeObserver(() => resize(explorer));
  explorer.observer.observe(root);
}

function receive(explorer, message) {
  explorer.message = message;
  if (message.view.thumbnail_px !== explorer.givenThumbnail) {
    explorer.givenThumbnail = message.view.thumbnail_px;
    explorer.thumbnail = message.view.thumbnail_px;
  }
  const isNews = !sameRows(explorer.selection, message.selection);
  const isForeign = explorer.selection !== null && explorer.selection.length !== message.rows;
  if (isNews && (isForeign || acceptsSelection(explorer.stamp, message.seen))) {
    explorer.selection = message.selection;
    explorer.selectedCount = countRows(message.selection);
  }
  advance(explorer);
}

function destroyExplorer(explorer) {
  explorer.gone = true;
  explorer.observer.disconnect();
  explorer.store.listeners.delete(explorer.onArrival);
  clearTimeout(explorer.askTimer);
  clearTimeout(explorer.greyTimer);
  clearTimeout(explorer.hintTimer);
  cancelAnimationFrame(explorer.pendingFrame);
  if (window.Plotly) window.Plotly.purge(explorer.dom.plot);
  explorer.dom.root.remove();
}

function hasWebgl() {
  const context = document.createElement('canvas').getContext('webgl');
  context?.getExtension('WEBGL_lose_context')?.loseContext(); // browsers grant only a few
  return context !== null;
}
