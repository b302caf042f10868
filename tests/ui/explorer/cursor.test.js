import assert from 'node:assert/strict';
import test from 'node:test';

import {
  middlePlace,
  nearestInDirection,
  neighbourInOrder,
  placesInView,
} from '../../../appca/ui/explorer/cursor.js';

const frame = { left: 40, top: 10, width: 200, height: 100, x: [-2, 2], y: [0, 10] };

/** Pseudo-random numbers in 0..1 that are the same in every run. */
function numbers(seed, count) {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  });
}

/** Points of which about a quarter lie out of view. */
function cloud(seed, count = 60) {
  const draws = numbers(seed, 2 * count);
  return {
    frame,
    x: Float32Array.from(draws.slice(0, count), (value) => 4.6 * value - 2.3),
    y: Float32Array.from(draws.slice(count), (value) => 11.5 * value - 0.75),
  };
}

const isInView = ({ x, y }, i) => Math.abs(x[i]) <= 2 && Math.abs(y[i] - 5) <= 5;

test('places in view are those within the ranges of the axes', () => {
  const panel = cloud(1);
  const expected = [...panel.x.keys()].filter((i) => isInView(panel, i));
  assert.ok(expected.length > 30 && expected.length < 60);
  assert.deepEqual(placesInView(panel), expected);
});

test('a walk begins at the point nearest to the middle of the view, measured in pixels', () => {
  // 0.3 of the x axis are 15 pixels, 1.2 of the y axis are 12
  const panel = { frame, x: Float32Array.of(0.3, 0), y: Float32Array.of(5, 6.2) };
  assert.equal(middlePlace(panel), 1);
  assert.equal(middlePlace({ frame, x: new Float32Array(), y: new Float32Array() }), -1);
});

test('an arrow goes to a point within 45 degrees of its direction, 40 clouds of 60 points', () => {
  // degrees on the screen, counted from the right and downwards
  const angles = { ArrowRight: 0, ArrowDown: 90, ArrowLeft: 180, ArrowUp: 270 };
  let steps = 0;
  for (let seed = 1; seed <= 40; seed += 1) {
    const panel = cloud(seed);
    const left = (i) => panel.x[i] * 50;
    const top = (i) => -panel.y[i] * 10;
    for (const [key, angle] of Object.entries(angles)) {
      const from = placesInView(panel)[seed % 7];
      const to = nearestInDirection(panel, from, key);
      const turned = (i) => {
        const seen = (Math.atan2(top(i) - top(from), left(i) - left(from)) * 180) / Math.PI;
        return Math.abs(((seen - angle + 540) % 360) - 180);
      };
      const others = placesInView(panel).filter((i) => i !== from && turned(i) < 44.9);
      if (to < 0) assert.deepEqual(others, []);
      else {
        steps += 1;
        assert.ok(isInView(panel, to) && turned(to) <= 45.1);
        const far = (i) => Math.hypot(left(i) - left(from), top(i) - top(from));
        assert.ok(far(to) <= 3 * Math.min(...others.map(far)) + 1e-3);
      }
    }
  }
  assert.ok(steps > 100);
});

test('the point straight ahead goes before a nearer one that lies aside', () => {
  const panel = { frame, x: Float32Array.of(0, 0.8, 0.6), y: Float32Array.of(5, 5, 7) };
  assert.equal(nearestInDirection(panel, 0, 'ArrowRight'), 1);
});

test('there and back along a line, and no further than its end', () => {
  const panel = { frame, x: Float32Array.of(-1, 0, 1, 1.9), y: Float32Array.of(5, 5, 5, 5) };
  assert.equal(nearestInDirection(panel, 1, 'ArrowRight'), 2);
  assert.equal(nearestInDirection(panel, 2, 'ArrowLeft'), 1);
  assert.equal(nearestInDirection(panel, 3, 'ArrowRight'), -1);
  assert.equal(nearestInDirection(panel, 3, 'ArrowUp'), -1);
});

test('next and previous reach every point in view once, also points on one spot', () => {
  const panel = cloud(5);
  panel.x[10] = panel.x[11];
  panel.y[10] = panel.y[11];
  const inView = placesInView(panel);
  for (const step of [1, -1]) {
    const seen = [];
    let place = inView[0];
    for (let i = 0; i < inView.length; i += 1) {
      place = neighbourInOrder(panel, place, step);
      seen.push(place);
    }
    assert.equal(place, inView[0]);
    assert.deepEqual([...seen].sort((a, b) => a - b), inView);
  }
});

test('next goes to the right and starts at an end when the cursor is out of view', () => {
  const panel = { frame, x: Float32Array.of(1, -1, 0, 9), y: Float32Array.of(5, 5, 5, 5) };
  assert.equal(neighbourInOrder(panel, 1, 1), 2);
  assert.equal(neighbourInOrder(panel, 3, 1), 1);
  assert.equal(neighbourInOrder(panel, 3, -1), 0);
  const empty = { frame, x: Float32Array.of(9), y: Float32Array.of(5) };
  assert.equal(neighbourInOrder(empty, 0, 1), -1);
});
