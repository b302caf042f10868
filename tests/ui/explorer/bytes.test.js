import assert from 'node:assert/strict';
import test from 'node:test';

import { decodeFrame, restoreParts, toBase64 } from '../../../appca/ui/explorer/bytes.js';
import { packed } from './packing.js';

const arrays = [
  ['f4', new Float32Array([1.5, -2])],
  ['u1', new Uint8Array([7, 8, 9])],
  ['u4', new Uint32Array([4000000000])],
];

test('a frame gives back its header and its arrays', () => {
  const { header, parts } = decodeFrame(packed({ name: 'x:1' }, arrays));
  assert.equal(header.name, 'x:1');
  assert.deepEqual(parts, arrays.map(([, array]) => array));
});

test('a frame that starts at an odd place in its buffer is read all the same', () => {
  const bytes = packed({}, arrays);
  const shifted = new Uint8Array(bytes.length + 3);
  shifted.set(bytes, 3);
  const { parts } = decodeFrame(shifted.subarray(3));
  assert.deepEqual(parts[0], new Float32Array([1.5, -2]));
});

test('an unknown type of array is refused by name', () => {
  const bytes = packed({}, [['f8', new Float64Array([1])]]);
  assert.throws(() => decodeFrame(bytes), /unknown type f8/);
});

test('references are replaced by arrays at any depth and nothing else is touched', () => {
  const parts = [new Uint8Array([1]), new Uint8Array([2])];
  const spec = { a: { part: 1 }, b: [{ part: 0 }, 'part', null], c: { partner: 5 } };
  assert.deepEqual(restoreParts(spec, parts), {
    a: parts[1],
    b: [parts[0], 'part', null],
    c: { partner: 5 },
  });
});

test('base64 of more bytes than a call takes arguments', () => {
  const bytes = Uint8Array.from({ length: 200000 }, (_, i) => (i * 7) % 256);
  assert.equal(toBase64(bytes), Buffer.from(bytes).toString('base64'));
});
