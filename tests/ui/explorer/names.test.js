import assert from 'node:assert/strict';
import test from 'node:test';

import { placeNames } from '../../../appca/ui/explorer/names.js';

const frame = { left: 10, top: 20, width: 100, height: 100, x: [0, 1], y: [0, 1] };
const wide = (text) => 10 * text.length;

test('a name stands a line above its point', () => {
  const placed = placeNames([{ text: 'a', x: 0.5, y: 0.25 }], frame, wide);
  assert.deepEqual(placed, [{ text: 'a', left: 60, top: 80 }]);
});

test('a name in the way of another moves by whole lines, and far ones stay', () => {
  const names = [
    { text: 'one', x: 0.5, y: 0.5 },
    { text: 'two', x: 0.5, y: 0.5 },
    { text: 'six', x: 0.5, y: 0.5 },
    { text: 'far', x: 0.05, y: 0.5 },
  ];
  const placed = placeNames(names, frame, wide);
  assert.deepEqual(placed.map((name) => name.top), [55, 85, 40, 55]);
  assert.deepEqual(placed.map((name) => name.left), [60, 60, 60, 15]);
});

test('names out of sight are left out, and none is lost in a crowd', () => {
  assert.deepEqual(placeNames([{ text: 'a', x: 1.2, y: 0.5 }], frame, wide), []);
  const crowd = Array.from({ length: 12 }, () => ({ text: 'x', x: 0.5, y: 0.5 }));
  assert.equal(placeNames(crowd, frame, wide).length, 12);
});
