import { toBase64 } from './bytes.js';
import { fillCard, hideCard, placeCard } from './card.js';
import { rowsOfCell } from './labels.js';
import { rowsOfClass } from './legend.js';
import { refreshAll, schedule } from './render.js';
import { combineRows, countRows, isExactly, joinOf, packMask, sameRows } from './rows.js';
import { hasSheet, placeOnSheet } from './sheets.js';
import { homeRanges, relayoutOf } from './views.js';
import { followCursor } from './walk.js';

/**
 * What a person can do, by pointer, keyboard or button.
 */

const ASK_DELAY = 120; // ms to gather missing sheets before asking
const MOST_NEW = 8; // sheets at a time
const MOST_ASKED = 16; // with those that are still to come; messages.py reads no more
const HINT_TIME = 2500; // ms

export function actionsOf(explorer) {
  return {
    setMode: (mode) => setMode(explorer, mode),
    setThumbnail: (size) => setThumbnail(explorer, size),
    clear: () => select(explorer, [], 'replace'),
    escape: () => giveUpOrClear(explorer),
    select: (rows, how) => select(explorer, rows, how),
    pickCell: (panel, which, event) => pickSet(explorer, rowsOfCell(panel, which), event),
    pickClass: (code, event) =>
      pickSet(explorer, rowsOfClass(explorer.colour.codes, code), event),
    help: () => explorer.dom.help.showModal(),
    home: () => setRanges(explorer, homeRanges(explorer)),
    resetPanel: (number) => setRanges(explorer, homeRanges(explorer, number)),
    setRanges: (ranges) => setRanges(explorer, ranges),
    activate: (number) => activate(explorer, number),
    hover: (hit, left, top) => hover(explorer, hit, left, top),
    completeCard: () => completeCard(explorer),
    leave: () => leave(explorer),
    hint: (text) => showHint(explorer, text),
    redraw: () => schedule(explorer),
    followCursor: () => followCursor(explorer, explorer.actions),
    wantSheet: (sheet) => wantSheet(explorer, sheet),
  };
}

function setMode(explorer, mode) {
  explorer.mode = mode;
  explorer.dom.stage.dataset.mode = mode;
  refreshAll(explorer);
}

function setThumbnail(explorer, size) {
  explorer.thumbnail = size;
  refreshAll(explorer);
}

function setRanges(explorer, ranges) {
  if (explorer.renders) window.Plotly.relayout(explorer.dom.plot, relayoutOf(ranges));
}

function activate(explorer, number) {
  explorer.activePanel = number;
  explorer.dom.labels.children[number]?.focus({ preventScroll: true });
}

/** Give up the lasso that is being drawn; without one, clear the selection. */
function giveUpOrClear(explorer) {
  if (explorer.path) {
    explorer.path = null;
    schedule(explorer);
  } else select(explorer, [], 'replace');
}

/** Select a class or a sign cell; a second time lets it go. */
function pickSet(explorer, rows, event) {
  const again = isExactly(explorer.selection, explorer.selectedCount, rows);
  select(explorer, again ? [] : rows, again ? 'replace' : joinOf(event));
}

function select(explorer, rows, how) {
  const next = combineRows(explorer.selection, rows, explorer.message.rows, how);
  if (sameRows(next, explorer.selection)) return;
  explorer.selection = next;
  explorer.selectedCount = countRows(next);
  explorer.stamp.number += 1;
  explorer.send('selection', {
    mount: explorer.stamp.mount,
    number: explorer.stamp.number,
    bits: next && toBase64(packMask(next)),
  });
  refreshAll(explorer);
}

function hover(explorer, hit, left, top) {
  const { hovered, dom, grid } = explorer;
  const same = hovered && hovered.number === hit.number && hovered.place === hit.place;
  explorer.hovered = hit;
  if (!same || dom.card.dataset.image === 'waiting') {
    if (!fillCard(explorer, hit)) wantSheet(explorer, sheetOf(explorer, hit));
    schedule(explorer);
  }
  placeCard(dom.card, left, top, grid);
}

/** Show the image on the card once its sheet has come. */
function completeCard(explorer) {
  const { hovered, dom } = explorer;
  if (hovered && dom.card.dataset.image === 'waiting') fillCard(explorer, hovered);
}

function sheetOf({ order, panels }, { number, place }) {
  return placeOnSheet(order, order.priority[panels[number].rows[place]]).sheet;
}

function leave(explorer) {
  if (!explorer.hovered) return;
  explorer.hovered = null;
  hideCard(explorer.dom.card);
  schedule(explorer);
}

/** Say something beside the toolbar for a moment. */
function showHint(explorer, text) {
  explorer.hint = text;
  clearTimeout(explorer.hintTimer);
  explorer.hintTimer = setTimeout(() => {
    explorer.hint = '';
    refreshAll(explorer);
  }, HINT_TIME);
  refreshAll(explorer);
}

/** Gather the sheets that are missing and ask Python for them together. */
function wantSheet(explorer, sheet) {
  if (explorer.asked.has(sheet)) return;
  explorer.missing.add(sheet);
  clearTimeout(explorer.askTimer);
  explorer.askTimer = setTimeout(() => askForSheets(explorer), ASK_DELAY);
}

/**
 * Ask for the first of the missing sheets, and again for those that have not come: a request takes
 * the place of the one before, which Python may not have read yet.
 */
function askForSheets(explorer) {
  const { order, asked, missing, store } = explorer;
  const isToCome = (sheet) => order && sheet < order.sheets && !hasSheet(store, order, sheet);
  const again = [...asked].filter(isToCome);
  const first = [...missing].filter(isToCome).sort((a, b) => a - b);
  const next = first.slice(0, Math.min(MOST_NEW, MOST_ASKED - again.length));
  missing.clear(); // what is still on screen is missed again at the next drawing
  if (!next.length) return;
  explorer.asked = new Set([...again, ...next]);
  explorer.send('need', [...explorer.asked]);
}
