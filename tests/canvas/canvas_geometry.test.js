import assert from 'node:assert/strict';
import test from 'node:test';

import { arrange, neighbours, opening, openRects } from '../../appca/canvas/js/layout/view.js';
import {
  between,
  density,
  fitting,
  toWorld,
  zoomed,
} from '../../appca/canvas/js/layout/geometry.js';
import { neighbour, pick } from '../../appca/canvas/js/input/gestures.js';
import { frameAt, origins, said } from '../../appca/canvas/js/motion.js';
import { HIDDEN } from '../../appca/canvas/js/scene/rows.js';

const view = { x: 10, y: 20, w: 800, h: 600 };
const near = (a, b, by = 1e-9) => assert.ok(Math.abs(a - b) <= by, `${a} is not ${b}`);

/** All sets of so many of the components from `first` to K. */
const sets = (K, size, first = 0) =>
  size === 0
    ? [[]]
    : Array.from({ length: Math.max(K - first, 0) }, (_, i) => first + i).flatMap((a) =>
        sets(K, size - 1, a + 1).map((rest) => [a, ...rest]),
      );

/** A triangle of K components as a layout. */
function triangle(K) {
  const panels = sets(K, 2).map(([a, b], index) => ({
    ...{ index, components: [a, b], axes: [b, a], cell: [b, a], count: 1 + index, size: 1 },
  }));
  return { kind: 'triangle', panels };
}

test('zoom keeps what is under the hand, to one part in 1e9 at 4,000-fold', () => {
  let cam = fitting({ x: 0, y: 0, w: 10, h: 10 }, view);
  const before = toWorld(cam, view, 333.3, 444.4);
  for (let i = 0; i < 200; i += 1) cam = zoomed(cam, view, 333.3, 444.4, 1.05, 1, 1e9);
  const after = toWorld(cam, view, 333.3, 444.4);
  near(after[0], before[0], 1e-9);
  near(after[1], before[1], 1e-9);
});

test('the nearest point under the hand is picked, with y upwards, unless it is hidden', () => {
  const layout = { name: 'map', revision: 0, rows: [4, 5, 6], xy: [1, 1, 9, 9, 1, 9] };
  const panel = { start: 0, count: 3, extent: [0, 10, 0, 10] };
  const card = { x: 0, y: 0, w: 100, h: 100 };
  const spot = { card, plot: card, view: { rect: card }, strength: 1, range: [0, 10, 0, 10] };
  const rows = { flags: new Uint8Array(7) };
  const stage = { placed: [{ ...spot, panel, part: { layout } }], rows, images: [] };
  const found = (x, y) => pick(stage, x, y)?.row;
  assert.deepEqual(
    [found(12, 88), found(88, 12), found(12, 12), found(50, 50)],
    [4, 5, 6, undefined],
  );
  rows.flags.fill(HIDDEN);
  assert.equal(found(12, 88), undefined);
});

test('a flight begins and ends exactly at its cameras', () => {
  const ends = [1, 7].map((x) => ({ x, y: x + 1, k: 50 * x }));
  ends.forEach((end, t) => {
    for (const key of ['x', 'y', 'k']) near(between(...ends, t)[key], end[key], 1e-9);
  });
});

test('panels, pictures, map and words of a triangle do not overlap at any size of the view', () => {
  for (const size of ['1424 884', '1044 804', '884 884', '760 900', '1900 700']) {
    const [w, h] = size.split(' ').map(Number);
    const { parts, diagonal, free, world } = arrange(
      triangle(10),
      { kind: 'map', panels: [{}] },
      10,
      { x: 0, y: 0, w, h },
    );
    const px = Math.min(h / world.h, w / world.w);
    assert.ok(free.y > 0.1 || free.h * px > 200, `${w}x${h}: no room for title and legend`);
    const rects = [
      ...parts.flatMap((part) => part.rects),
      ...diagonal.map(({ rect }) => rect),
      ...(free.w > 0 ? [free] : []),
    ];
    const apart = (a, b) => a.x >= b.x + b.w - 1e-9 || a.y >= b.y + b.h - 1e-9;
    rects.forEach((a, i) =>
      rects.slice(i + 1).forEach((b) => {
        assert.ok(apart(a, b) || apart(b, a), `${w}x${h}: ${JSON.stringify([a, b])}`);
      }),
    );
  }
});

test('neighbours share exactly one axis, and all stand in the view', () => {
  const layout = triangle(10);
  const groups = neighbours(layout, 12);
  const own = layout.panels[12].axes;
  for (const { stays, turns, panels } of groups) {
    assert.deepEqual([stays, turns].sort(), [...own].sort());
    for (const index of panels)
      assert.equal(layout.panels[index].axes.filter((one) => own.includes(one)).join(), `${stays}`);
  }
  for (const w of [700, 900, 1060, 1440]) {
    for (const rect of openRects(neighbours(layout, 12), 12, { x: 0, y: 0, w, h: 800 }).values())
      assert.ok(rect.x >= 0 && rect.x + rect.w <= w && rect.y + rect.h <= 800);
  }
});

test('arrows reach the panel beside; a phone has two columns, the fullest panel first', () => {
  const layout = triangle(5);
  const shown = { parts: arrange(layout, null, 5, view).parts };
  const name = (index) => layout.panels[index].components.join();
  const at = layout.panels.findIndex(({ components }) => components.join() === '1,3');
  assert.equal(name(neighbour(shown, at, [1, 0])), '1,4');
  assert.equal(name(neighbour(shown, at, [-1, 0])), '1,2');
  assert.equal(name(neighbour(shown, at, [0, -1])), '0,3');
  assert.equal(name(neighbour(shown, at, [0, 1])), '2,3');
  const { rects } = arrange(triangle(4), null, 4, { x: 0, y: 0, w: 374, h: 700 }).parts[0];
  assert.deepEqual([...new Set(rects.map(({ x }) => Math.floor(x)))].sort(), [0, 1]);
  assert.ok(rects[5].y < 1 && rects[5].x < 1);
  const inTurn = arrange({ ...triangle(4), feet: true }, null, 4, { x: 0, y: 0, w: 374, h: 700 });
  assert.ok(inTurn.parts[0].rects.every(({ y }, i) => Math.floor(y) === i >> 1));
});

test('every frame of a tour is orthonormal, and the ends are the panels; it says what turns', () => {
  const meta = { components: [1, 2, 3, 4, 5].map((number) => ({ number })) };
  assert.equal(said(meta, [2, 1], [3, 1], 0.5), 'component 3 turns into 4, 2 stays');
  assert.equal(said(meta, [2, 1], [4, 3], 0.7), 'component 2 turns into 4 (turn 2 of 2)');
  const axesOf = (text) => [...text].map(Number);
  for (const turn of ['21 31', '21 23', '21 13', '21 32', '21 43', '21 12']) {
    const [from, to] = turn.split(' ').map(axesOf);
    for (let i = 0; i <= 30; i += 1) {
      const { basis, x, y } = frameAt(from, to, i / 30);
      const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);
      if (from.join() === '2,1' && to.join() === '1,2') break; // the same plane: the panel is only mirrored
      near(dot(x, x), 1, 1e-6);
      near(dot(y, y), 1, 1e-6);
      near(dot(x, y), 0, 1e-6);
      if (i === 0 || i === 30) {
        const [ex, ey] = i ? to : from;
        [0, 1, 2, 3].forEach((k) => {
          assert.deepEqual([x[k], y[k]], [Number(basis[k] === ex), Number(basis[k] === ey)]);
        });
      }
    }
  }
});

test('a point comes from the nearest of the places its row had', () => {
  const rows = Uint32Array.of(7, 3, 7, 9);
  const to = Float32Array.of(0, 0, 50, 50, 100, 0, 5, 5);
  const old = { rows: Uint32Array.of(7, 7, 3), xy: Float32Array.of(10, 0, 90, 0, 1, 1) };
  assert.deepEqual([...origins(rows, to, old, 10)], [10, 0, 1, 1, 1, 1, 90, 0, 1, 5, 5, 0]);
});

test('points shrink and fade smoothly as they come closer', () => {
  let last = density(1, 1e6);
  for (let points = 2; points < 1e7; points *= 1.3) {
    const now = density(points, 1e6);
    const [size, alpha] = [last.size - now.size, last.alpha - now.alpha];
    assert.ok(size >= 0 && alpha >= 0 && size < 0.4 && alpha < 0.1);
    last = now;
  }
  assert.ok(last.size >= 1.5 && last.alpha > 0.2);
});

test('subspaces and pairs open beside each other, where there are both, and either alone', () => {
  const one = { layouts: { subspaces: {}, pca: {} }, first: 'subspaces' };
  const two = { layouts: { ...one.layouts, pairs: {} }, first: 'pairs' };
  const names = (...asked) => Object.values(opening(...asked)).join('+');
  assert.equal(names(one), 'subspaces+');
  assert.equal(names(two), 'subspaces+pairs');
  assert.equal(names(two, { layout: 'pairs', beside: '' }), 'pairs+');
  assert.equal(names(two, { layout: 'subspaces', beside: 'pca' }), 'subspaces+pca');
  assert.equal(names(one, { layout: 'pairs', beside: 'pairs' }), 'subspaces+');
});
