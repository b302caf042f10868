import assert from 'node:assert/strict';
import test from 'node:test';

import {
  combineRows,
  countRows,
  isExactly,
  joinOf,
  packMask,
  sameRows,
  selectedPlaces,
  unpackMask,
} from '../../../appca/ui/explorer/rows.js';

const mask = (...flags) => Uint8Array.from(flags);

test('the first row is the lowest bit of the first byte', () => {
  assert.deepEqual(packMask(mask(1, 0, 0, 0, 0, 0, 0, 0, 1, 1)), new Uint8Array([1, 3]));
});

test('packing and unpacking give the same rows for every length up to 40', () => {
  for (let count = 1; count <= 40; count += 1) {
    const flags = Uint8Array.from({ length: count }, (_, i) => Number((i * i + count) % 3 === 0));
    assert.deepEqual(unpackMask(packMask(flags), count), flags);
  }
});

test('replace forgets, add keeps, subtract takes, toggle turns', () => {
  const before = mask(1, 1, 0, 0);
  assert.deepEqual(combineRows(before, [3], 4, 'replace'), mask(0, 0, 0, 1));
  assert.deepEqual(combineRows(before, [3], 4, 'add'), mask(1, 1, 0, 1));
  assert.deepEqual(combineRows(before, [0, 3], 4, 'subtract'), mask(0, 1, 0, 0));
  assert.deepEqual(combineRows(before, [0, 3], 4, 'toggle'), mask(0, 1, 0, 1));
  assert.deepEqual(before, mask(1, 1, 0, 0));
});

test('nothing left is no selection', () => {
  assert.equal(combineRows(mask(1, 0), [0], 2, 'subtract'), null);
  assert.equal(combineRows(null, [], 2, 'replace'), null);
  assert.deepEqual(combineRows(null, [1], 2, 'add'), mask(0, 1));
});

test('counting and comparing', () => {
  assert.equal(countRows(null), 0);
  assert.equal(countRows(mask(1, 0, 1)), 2);
  assert.ok(sameRows(null, null));
  assert.ok(!sameRows(null, mask(0)));
  assert.ok(!sameRows(mask(1, 0), mask(1, 1)));
  assert.ok(sameRows(mask(1, 0), mask(1, 0)));
});

test('a panel in another order of rows finds its own places', () => {
  assert.deepEqual(selectedPlaces(Int32Array.from([4, 0, 2]), mask(1, 0, 0, 1, 1)), [0, 1]);
});

test('a set is pressed only when it is the whole selection', () => {
  assert.ok(isExactly(mask(0, 1, 1), 2, [2, 1]));
  assert.ok(!isExactly(mask(1, 1, 1), 3, [2, 1]));
  assert.ok(!isExactly(mask(1, 1, 0), 2, [2, 1]));
  assert.ok(!isExactly(null, 0, [2, 1]));
});

test('keys held decide how a gesture joins', () => {
  assert.equal(joinOf({}), 'replace');
  assert.equal(joinOf({ shiftKey: true }), 'add');
  assert.equal(joinOf({ ctrlKey: true }), 'add');
  assert.equal(joinOf({ altKey: true, shiftKey: true }), 'subtract');
});
