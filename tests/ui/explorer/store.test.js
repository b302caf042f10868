import assert from 'node:assert/strict';
import test from 'node:test';

import { dropParcel, holdParcel } from '../../../appca/ui/explorer/store.js';

function storeOf(listener) {
  return { parcels: new Map(), listeners: new Set([listener]), announcing: false };
}

test('what arrives in one go is announced once, with all of it there', async () => {
  const seen = [];
  const store = storeOf(() => seen.push([...store.parcels.keys()]));
  holdParcel(store, 'old', new Uint8Array(1));
  await null;
  holdParcel(store, 'new', new Uint8Array(2));
  dropParcel(store, 'old');
  holdParcel(store, 'other', new Uint8Array(3));
  assert.equal(seen.length, 1);
  await null;
  assert.deepEqual(seen, [['old'], ['new', 'other']]);
});

test('a parcel with two holders stays until both have let it go', () => {
  const store = storeOf(() => {});
  holdParcel(store, 'ids', new Uint8Array(1));
  holdParcel(store, 'ids', new Uint8Array(1));
  dropParcel(store, 'ids');
  assert.ok(store.parcels.has('ids'));
  dropParcel(store, 'ids');
  assert.ok(!store.parcels.has('ids'));
});
