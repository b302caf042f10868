import assert from 'node:assert/strict';
import test from 'node:test';

import { bestPerCell, snappedStep, withoutOverlap } from '../../../appca/ui/explorer/declutter.js';
import { cellPixels } from '../../../appca/ui/explorer/labels.js';
import { inkPixels, placeOnSheet } from '../../../appca/ui/explorer/sheets.js';
import { imageBox } from '../../../appca/ui/explorer/sprite.js';

const order = { tile: [28, 20], columns: 32, perSheet: 1024 };

test('every priority has its own place, and neighbours do not overlap', () => {
  assert.deepEqual(placeOnSheet(order, 0), { sheet: 0, left: 0, top: 0, width: 20, height: 28 });
  const place = placeOnSheet(order, 1024 + 33);
  assert.deepEqual(place, { sheet: 1, left: 20, top: 28, width: 20, height: 28 });
  const places = new Set();
  for (let p = 0; p < 3000; p += 1) {
    const { sheet, left, top } = placeOnSheet(order, p);
    places.add(`${sheet} ${left} ${top}`);
  }
  assert.equal(places.size, 3000);
});

test('grey becomes opacity', () => {
  const data = Uint8ClampedArray.from([200, 200, 200, 255, 0, 0, 0, 255]);
  inkPixels(data);
  assert.deepEqual([...data], [255, 255, 255, 200, 255, 255, 255, 0]);
});

test('an oblong image keeps its proportions in the middle of its plate', () => {
  const box = imageBox({ left: 10, top: 10, size: 30 }, { width: 10, height: 20 }, 5);
  assert.deepEqual(box, { left: 20, top: 15, width: 10, height: 20 });
});

test('mean images: grey, colour and ink', () => {
  const grey = { shape: [1, 2], image: Uint8Array.from([10, 200]) };
  assert.deepEqual([...cellPixels(grey, null)], [10, 10, 10, 255, 200, 200, 200, 255]);
  assert.deepEqual([...cellPixels(grey, '#010203')], [1, 2, 3, 10, 1, 2, 3, 200]);
  const colour = { shape: [1, 1, 3], image: Uint8Array.from([1, 2, 3]) };
  assert.deepEqual([...cellPixels(colour, null)], [1, 2, 3, 255]);
});

/** A cloud of points on a spiral, its ranks mixed up. */
function cloud(count) {
  const x = Float32Array.from({ length: count }, (_, i) => Math.cos(i * 2.4) * Math.sqrt(i / count));
  const y = Float32Array.from({ length: count }, (_, i) => Math.sin(i * 2.4) * Math.sqrt(i / count));
  return { x, y, rank: (i) => (i * 7919) % count, shown: () => true };
}

function chosen(points, frame, size) {
  const places = bestPerCell(points, frame, size).sort((a, b) => points.rank(a) - points.rank(b));
  const scaleX = frame.width / (frame.x[1] - frame.x[0]);
  const scaleY = frame.height / (frame.y[1] - frame.y[0]);
  const candidates = places.map((place) => ({
    place,
    left: (points.x[place] - frame.x[0]) * scaleX,
    top: (frame.y[1] - points.y[place]) * scaleY,
  }));
  return withoutOverlap(candidates, size);
}

const whole = { width: 300, height: 280, x: [-1.1, 1.1], y: [-1.1, 1.1] };

test('no two images overlap, and all lie in the panel', () => {
  for (const size of [12, 22, 40, 64]) {
    const plates = chosen(cloud(5000), whole, size);
    assert.ok(plates.length > 5);
    plates.forEach((plate, i) => {
      for (const other of plates.slice(i + 1)) {
        const apart = Math.max(Math.abs(plate.left - other.left), Math.abs(plate.top - other.top));
        assert.ok(apart >= size);
      }
    });
  }
});

test('the most important point of all always has its image', () => {
  const points = cloud(5000);
  const first = [...points.x.keys()].find((i) => points.rank(i) === 0);
  assert.ok(chosen(points, whole, 40).some((plate) => plate.place === first));
});

test('the grid of cells does not move with a pan: what stays in view is chosen again', () => {
  const points = cloud(5000);
  const panned = { ...whole, x: [-1.07, 1.13] };
  const before = new Set(bestPerCell(points, whole, 22));
  const after = bestPerCell(points, panned, 22);
  const kept = after.filter((place) => before.has(place)).length;
  assert.ok(kept > 0.95 * after.length);
});

test('zooming in shows more of the same neighbourhood', () => {
  const points = cloud(20000);
  const near = { ...whole, x: [-0.2, 0.2], y: [-0.2, 0.2] };
  const inside = (plate) => Math.abs(points.x[plate.place]) < 0.2 && Math.abs(points.y[plate.place]) < 0.2;
  const far = chosen(points, whole, 22).filter(inside).length;
  assert.ok(chosen(points, near, 22).length > 5 * far);
});

test('points that are not shown get no image', () => {
  const points = { ...cloud(1000), shown: (i) => i % 2 === 0 };
  assert.ok(bestPerCell(points, whole, 22).every((place) => place % 2 === 0));
});

test('a point on the upper rim has a cell', () => {
  const points = { x: Float32Array.of(2), y: Float32Array.of(2), rank: () => 0, shown: () => true };
  const frame = { width: 100, height: 100, x: [0, 2], y: [0, 2] };
  assert.deepEqual(bestPerCell(points, frame, 25), [0]);
});

test('steps are powers of the square root of two, never below what is wanted', () => {
  for (let wanted = 0.01; wanted < 50; wanted *= 1.3) {
    const step = snappedStep(wanted);
    assert.ok(step >= wanted * (1 - 1e-12) && step < wanted * Math.SQRT2 * (1 + 1e-12));
    assert.ok(Math.abs(2 * Math.log2(step) - Math.round(2 * Math.log2(step))) < 1e-9);
  }
});
