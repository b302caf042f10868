import assert from 'node:assert/strict';
import test from 'node:test';

import {
  axisKey,
  holds,
  shifted,
  toData,
  toPixels,
  zoomed,
} from '../../../appca/ui/explorer/axes.js';
import { arrange, columnsFor, domainsOf, GRID } from '../../../appca/ui/explorer/grid.js';
import { rangesAfterKey } from '../../../appca/ui/explorer/keys.js';
import { isInside, placesInside, rectangle } from '../../../appca/ui/explorer/lasso.js';
import { nearestPlace, plateAt } from '../../../appca/ui/explorer/pick.js';

const frame = { left: 40, top: 10, width: 200, height: 100, x: [-2, 2], y: [0, 10] };

/** Inside by the winding number: another route than the code's even-odd rule. */
function windsAround(polygon, x, y) {
  let turns = 0;
  polygon.forEach(([x0, y0], i) => {
    const [x1, y1] = polygon[(i + 1) % polygon.length];
    let angle = Math.atan2(y1 - y, x1 - x) - Math.atan2(y0 - y, x0 - x);
    if (angle > Math.PI) angle -= 2 * Math.PI;
    if (angle < -Math.PI) angle += 2 * Math.PI;
    turns += angle;
  });
  return Math.abs(turns) > Math.PI;
}

/** Pseudo-random numbers in 0..1 that are the same in every run. */
function numbers(seed, count) {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  });
}

test('inside a star-shaped lasso agrees with the winding number, 40 lassos of 200 points', () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const radii = numbers(seed, 17);
    const polygon = radii.map((radius, i) => [
      (0.2 + radius) * Math.cos((i / 17) * 2 * Math.PI),
      (0.2 + radius) * Math.sin((i / 17) * 2 * Math.PI),
    ]);
    const draws = numbers(seed + 100, 400).map((value) => 3 * value - 1.5);
    const xs = Float32Array.from(draws.slice(0, 200));
    const ys = Float32Array.from(draws.slice(200));
    const expected = [...xs.keys()].filter((i) => windsAround(polygon, xs[i], ys[i]));
    assert.deepEqual(placesInside(polygon, xs, ys), expected);
  }
});

test('a lasso that crosses itself leaves its twice enclosed part out, as it is drawn', () => {
  const twice = [
    [0, 0],
    [4, 0],
    [4, 4],
    [1, 1],
    [3, 1],
    [0, 4],
  ];
  assert.ok(!isInside(twice, 2, 1.5));
});

test('a rectangle takes what lies between its corners, in any direction', () => {
  const xs = Float32Array.from([0, 1, 2, 3]);
  const ys = Float32Array.from([0, 1, 2, 3]);
  assert.deepEqual(placesInside(rectangle([2.5, 2.5], [0.5, 0.5]), xs, ys), [1, 2]);
});

test('points without a place are in no lasso', () => {
  const everything = rectangle([-1e9, -1e9], [1e9, 1e9]);
  assert.deepEqual(placesInside(everything, Float32Array.of(NaN, 1), Float32Array.of(0, 1)), [1]);
});

test('pixels and data turn into each other, y upwards', () => {
  assert.deepEqual(toPixels(frame, -2, 10), [40, 10]);
  assert.deepEqual(toPixels(frame, 2, 0), [240, 110]);
  const [x, y] = toData(frame, ...toPixels(frame, 0.7, 3.1));
  assert.ok(Math.abs(x - 0.7) < 1e-12 && Math.abs(y - 3.1) < 1e-12);
});

test('a panel holds its rim but nothing beyond', () => {
  assert.ok(holds(frame, 40, 110));
  assert.ok(!holds(frame, 39, 50));
  assert.ok(!holds(frame, 100, 111));
});

test('zoom keeps the middle, a shift keeps the width', () => {
  assert.deepEqual(zoomed([0, 10], 0.5), [2.5, 7.5]);
  assert.deepEqual(shifted([0, 10], 0.1), [1, 11]);
});

test('keys move only their panel', () => {
  assert.deepEqual(rangesAfterKey({ x: [0, 100], y: [0, 50] }, 2, 'ArrowUp'), {
    xaxis3: [0, 100],
    yaxis3: [6, 56],
  });
  assert.deepEqual(Object.keys(rangesAfterKey(frame, 0, '+')), ['xaxis', 'yaxis']);
  assert.equal(rangesAfterKey(frame, 0, 'q'), null);
});

test('plus then minus comes back', () => {
  const near = rangesAfterKey(frame, 0, '+');
  const back = rangesAfterKey({ x: near.xaxis, y: near.yaxis }, 0, '-');
  back.xaxis.forEach((value, i) => assert.ok(Math.abs(value - frame.x[i]) < 1e-12));
});

test('axes are named as Plotly names them', () => {
  assert.deepEqual([0, 1, 11].map((n) => axisKey('y', n)), ['yaxis', 'yaxis2', 'yaxis12']);
});

test('the picked point is the nearest on screen, not in data units', () => {
  const xs = Float32Array.from([0, 0.05]); // 0.05 is 2.5 pixels
  const ys = Float32Array.from([5.6, 5]); // 0.6 is 6 pixels
  assert.equal(nearestPlace(xs, ys, frame, 140, 60, () => true), 1);
  assert.equal(nearestPlace(xs, ys, frame, 140, 60, (place) => place === 0), 0);
  assert.equal(nearestPlace(xs, ys, frame, 180, 60, () => true), -1);
});

test('an image is hit by its whole square, the topmost first', () => {
  const plates = [
    { place: 5, left: 100, top: 50, size: 20 },
    { place: 6, left: 110, top: 50, size: 20 },
  ];
  assert.equal(plateAt(plates, 109, 59).place, 5);
  assert.equal(plateAt(plates, 119, 41).place, 6);
  assert.equal(plateAt(plates, 121, 41), undefined);
});

test('columns go down with the width and never exceed what is wanted', () => {
  assert.equal(columnsFor(1000, 6, 3), 3);
  assert.equal(columnsFor(1000, 6, 2), 2);
  assert.equal(columnsFor(600, 6, 3), 2);
  assert.equal(columnsFor(320, 6, 3), 1);
  assert.equal(columnsFor(2000, 2, 3), 2);
  assert.equal(columnsFor(10, 6, 3), 1);
});

test('panels neither overlap nor leave the figure, 1 to 12 panels, 300 to 1900 pixels', () => {
  for (let count = 1; count <= 12; count += 1) {
    for (let width = 300; width <= 1900; width += 100) {
      const grid = arrange(width, count, 3, null);
      assert.equal(grid.boxes.length, count);
      grid.boxes.forEach((box, i) => {
        assert.ok(box.left >= GRID.left && box.left + box.width <= width + 1e-9);
        assert.ok(box.top >= GRID.top && box.top + box.height + GRID.bottom <= grid.height + 1e-9);
        for (const other of grid.boxes.slice(i + 1)) {
          const beside = other.left >= box.left + box.width || box.left >= other.left + other.width;
          const below = other.top >= box.top + box.height + GRID.bottom;
          assert.ok(beside || below);
        }
      });
    }
  }
});

test('domains give the boxes back', () => {
  const grid = arrange(1000, 5, 3, 250);
  for (const box of grid.boxes) {
    const { x, y } = domainsOf(box, grid);
    assert.ok(Math.abs(x[0] * grid.width - box.left) < 1e-9);
    assert.ok(Math.abs((1 - y[1]) * grid.height - box.top) < 1e-9);
    assert.ok(Math.abs((y[1] - y[0]) * grid.height - 250) < 1e-9);
  }
});
