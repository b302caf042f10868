import assert from 'node:assert/strict';
import test from 'node:test';

import { fire, made } from './fake_page.js';
import { packed } from './packing.js';
import { actionsOf } from '../../../appca/ui/explorer/actions.js';
import { idOf } from '../../../appca/ui/explorer/card.js';
import { listenToPointer } from '../../../appca/ui/explorer/gestures.js';
import { advance } from '../../../appca/ui/explorer/render.js';

/** A picture with panels of three points each; all the same points. */
function geometryOf(count) {
  const trace = { customdata: { part: 0 }, x: { part: 1 }, y: { part: 1 } };
  const panel = { title: 'a', subtitle: '', cells: [], names: [] };
  const header = { traces: Array(count).fill(trace), panels: Array(count).fill(panel), axes: {} };
  return packed({ ...header, fill: '' }, [
    ['i4', new Int32Array([0, 1, 2])],
    ['f4', new Float32Array([-1, 0, 1])],
  ]);
}

const FRAME = { left: 0, top: 0, width: 100, height: 100, x: [-2, 2], y: [-2, 2] };

/** An explorer that shows a picture; Python's messages and parcels are put in by hand. */
function explorerOn(count, mode = 'lasso') {
  const labels = made('div');
  const card = made('div');
  const stage = made('div', '', labels, card);
  const explorer = {
    dom: { root: made('div', '', stage), stage, labels, card },
    store: { parcels: new Map(), listeners: new Set() },
    stamp: { mount: 'm', number: 0 },
    ...{ selection: null, selectedCount: 0, hovered: null, press: null, path: null, mode },
    ...{ hint: '', activePanel: 0, renders: 0, sent: [] },
  };
  explorer.send = (name, value) => explorer.sent.push([name, value]);
  explorer.actions = actionsOf(explorer);
  listenToPointer(explorer, explorer.actions);
  arrive(explorer, 'first', count);
  explorer.panels.forEach((panel, number) => {
    panel.frame = { ...FRAME, left: 200 * number }; // as the drawing finds it out
  });
  return explorer;
}

function arrive(explorer, name, count, parcels = {}) {
  explorer.store.parcels.set(name, { bytes: geometryOf(count) });
  explorer.message = { rows: 3, parcels: { geometry: name, ...parcels } };
  advance(explorer);
}

/** Begin to draw around all points of the first panel. */
function drag({ dom }) {
  const corners = [[5, 5], [95, 5], [95, 95], [5, 95], [6, 50]];
  corners.forEach(([clientX, clientY], i) => {
    const fields = { clientX, clientY, button: 0, buttons: 1, pointerId: 1 };
    fire(dom.stage, i ? 'pointermove' : 'pointerdown', fields);
  });
}

const release = () => fire(window, 'pointerup', { clientX: 6, clientY: 50 });

test('a lasso selects what is inside when nothing arrives meanwhile', () => {
  const explorer = explorerOn(1);
  drag(explorer);
  release();
  assert.deepEqual([...explorer.selection], [1, 1, 1]);
});

test('a lasso over which another picture arrives selects nothing and that is said', () => {
  for (const count of [2, 1]) {
    const explorer = explorerOn(2);
    drag(explorer);
    arrive(explorer, 'second', count);
    assert.equal(explorer.path, null);
    explorer.panels[0].frame = FRAME; // drawn before the release
    release();
    clearTimeout(explorer.hintTimer);
    assert.match(explorer.hint, /picture has changed/);
    assert.deepEqual(explorer.sent, []);
    drag(explorer);
    release();
    assert.deepEqual([...explorer.selection], [1, 1, 1]);
  }
});

test('a panel that is moved while another picture arrives is let go without a word', () => {
  const explorer = explorerOn(1, 'pan');
  drag(explorer);
  arrive(explorer, 'second', 1);
  release();
  assert.equal(explorer.hint, '');
  assert.deepEqual(explorer.sent, []);
});

test('the card of a row goes with the picture the row was hovered in', () => {
  const explorer = explorerOn(1);
  explorer.hovered = { number: 0, place: 1 };
  explorer.dom.card.hidden = false;
  explorer.dom.card.dataset.row = '1';
  arrive(explorer, 'second', 1);
  assert.ok(explorer.dom.card.hidden);
  assert.equal(explorer.dom.card.dataset.row, undefined);
});

test('the keyboard stays at its panel in another picture, at the last one of fewer', () => {
  for (const [count, expected] of [[3, 2], [2, 1]]) {
    const explorer = explorerOn(3);
    explorer.actions.activate(2);
    arrive(explorer, 'second', count);
    assert.equal(document.activeElement, explorer.dom.labels.children[expected]);
    assert.equal(explorer.activePanel, expected);
  }
});

test('another picture does not take the focus from elsewhere on the page', () => {
  const explorer = explorerOn(2);
  const field = made('input');
  field.focus();
  arrive(explorer, 'second', 2);
  assert.equal(document.activeElement, field);
});

test('a row is called by its id; without one by its number, counted from 1 as on Point', () => {
  const explorer = explorerOn(1);
  assert.equal(idOf(explorer.hover, 1233), 'row 1,234');
  explorer.store.parcels.set('columns', { bytes: packed({ columns: [] }, []) });
  arrive(explorer, 'first', 1, { hover: 'columns', ids: 'names' });
  assert.equal(idOf(explorer.hover, 1233), 'row 1,234');
  const names = Uint8Array.from(Buffer.from('["a","b"]'));
  explorer.store.parcels.set('names', { bytes: packed({}, [['u1', names]]) });
  advance(explorer);
  assert.equal(idOf(explorer.hover, 1), 'b');
  arrive(explorer, 'first', 1, { hover: 'columns', ids: null }); // they are 0, 1, 2 ...
  assert.equal(idOf(explorer.hover, 1233), 'id 1233');
});
