import assert from 'node:assert/strict';
import test from 'node:test';

import { markUnder, maskOf } from '../../appca/canvas/js/input/actions.js';
import { countsOf, DOUBTFUL, mostly, Rows } from '../../appca/canvas/js/scene/rows.js';
import { setAxes, withPanels } from '../../appca/canvas/js/scene/layouts.js';
import { signed, ticks } from '../../appca/canvas/js/scene/names.js';
import {
  colouredBy,
  planeOf,
  rampOf,
  Scene,
  spreadOrder,
} from '../../appca/canvas/js/scene/scene.js';
import { find, setOf } from '../../appca/canvas/js/parts/palette.js';
import { Occupancy } from '../../appca/canvas/js/text/labels.js';
import { paletteBytes, rgb, THEMES } from '../../appca/canvas/js/theme.js';

/** Six rows, three components, two a row; the pairs list some of the rows only. */
function input() {
  const buffers = {
    components: Uint8Array.of(0, 1, 0, 2, 1, 2, 0, 1, 2, 255, 255, 255),
    scores: Int16Array.of(10, 20, 30, 40, 50, 60, 70, 80, 90, 0, 0, 0),
    'order.pairs': Uint32Array.of(3, 1, 2),
    'order.pca': Uint32Array.of(5),
    'map.pca': Uint16Array.of(0, 65535, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5),
    doubt: Uint8Array.of(255, 100, 255, 255, 255, 255),
    'codes.label': Uint8Array.of(0, 1, 1, 0, 2, 2),
    'hover.0': new TextEncoder().encode('["ant","Bee","bee fly","cow","dog","eel"]'),
  };
  const panel = (components, axes, start, listed, count) => ({
    ...{ components, axes, start, listed, count },
    ...{ cell: [0, 0], levels: [1], range: Array(2).fill([-100, 100]) },
  });
  const meta = {
    ...{ format: 1, rows: 6, n_active: 2, score_unit: 1, doubt_below: 128 },
    components: [{ number: 1 }, { number: 2 }, { number: 5 }],
    colourings: { label: { kind: 'category', names: ['a', 'b'], table: ['#ff0000', '#00ff00'] } },
    layouts: {
      pairs: {
        ...{ kind: 'triangle', title: 'Pairs', spacing: 0.5 },
        panels: [
          panel([0, 1], [1, 0], 0, 1, 2),
          panel([0, 2], [2, 0], 1, 1, 1),
          panel([1, 2], [2, 1], 2, 1, 1),
          panel([2], [2], 3, 0, 1),
          panel([], [], 3, 0, 1),
        ],
      },
      pca: { kind: 'map', title: 'PCA', spacing: 0.5, panels: [panel([], [0, 1], 0, 1, 6)] },
    },
    hover: { ids: null, lines: [{ title: 'Animal', kind: 'text', buffer: 'hover.0' }] },
  };
  return {
    meta,
    buffers: Object.fromEntries(
      Object.entries(buffers).map(([name, values]) => [name, async () => values.buffer]),
    ),
  };
}

test('rows are in the order of the host', () => {
  assert.deepEqual([...spreadOrder(1000)], SPREAD);
});
const SPREAD = JSON.parse(process.env.SPREAD ?? 'null') ?? [...spreadOrder(1000)];

test('each row stands in the panels of its pairs, after those that are listed', async () => {
  const scene = await new Scene(input()).open();
  const layout = await scene.layout('pairs');
  const { rows, xy, panels } = layout;
  assert.deepEqual([...rows], [3, 0, 1, 2, 4, 5]);
  assert.deepEqual([...xy.slice(0, 8)], [80, 70, 20, 10, 40, 30, 60, 50]); // x of the larger component
  const names = panels.map(({ name }) => name);
  assert.deepEqual(names, ['{1,2}', '{1,5}', '{2,5}', '{5}', '{}']);
  assert.equal(xy[8], 90);
  assert.ok(Math.abs(xy[9]) <= 0.8 * 32768); // spread: it has no second score
  const map = await scene.layout('pca'); // has all rows, those with images first
  assert.equal(map.rows[0], 5);
  assert.deepEqual([...map.rows].sort(), [0, 1, 2, 3, 4, 5]);
  const at = map.rows.indexOf(0);
  assert.deepEqual([map.xy[2 * at], map.xy[2 * at + 1]], [-32768, 32767]);
  setAxes(scene, layout, layout.panels[0], [0, 1]); // other components are chosen for a panel
  assert.deepEqual([...layout.xy.slice(0, 4)], [70, 80, 10, 20]);
  assert.equal(layout.revision, 1);
});

test('a buffer that could not be fetched is asked for again', async () => {
  const given = input();
  const { scores } = given.buffers;
  given.buffers.scores = () => Promise.reject(new Error('gone'));
  const scene = new Scene(given);
  await assert.rejects(scene.open(), /gone/);
  given.buffers.scores = scores;
  assert.equal((await scene.open()).scores.length, 12);
});

test('any rows are selected as row by row, whatever is hidden, and the bits and the count say the same', () => {
  const rows = new Rows(1003);
  let state = 1;
  const random = () => {
    state = (state * 48271) % 2147483647;
    return state % 3 === 0;
  };
  rows.filter(() => !random());
  const hidden = [...rows.flags];
  const expected = new Set();
  for (const how of ['replace', 'add', 'subtract', 'add', 'replace']) {
    const list = [...rows.flags.keys()].filter(random);
    if (how === 'replace') expected.clear();
    for (const row of list.filter((one) => !hidden[one]))
      expected[how === 'subtract' ? 'delete' : 'add'](row);
    rows.applyList(list, how);
    const flags = hidden.map((flag, row) => flag | Number(expected.has(row)));
    assert.deepEqual([...rows.flags], flags);
    const bits = flags.map((_, row) => (rows.packed[row >> 3] >> (row & 7)) & 1);
    assert.ok(bits.every((bit, row) => Boolean(bit) === expected.has(row)));
    assert.equal(rows.selected, expected.size);
  }
});

test('rows that a filter hides are not selected; doubt is read from the scene', async () => {
  const rows = new Rows(6);
  rows.readMarks(await new Scene(input()).open());
  assert.equal(rows.flags[1], DOUBTFUL);
  rows.filter((row) => row !== 1);
  rows.applyList([0, 1], 'replace');
  assert.equal(rows.selected, 1);
});

/** A panel over a hundred points on a grid, drawn on 100 x 100 px at (10, 10). */
function placed() {
  const rows = Uint32Array.from({ length: 100 }, (_, i) => i);
  const xy = Int16Array.from([...rows].flatMap((i) => [i % 10, Math.floor(i / 10)]));
  const layout = { name: 'x', revision: 0, rows, xy: xy.map((at) => at * 10 + 5) };
  const panel = { index: 0, start: 0, count: 100 };
  const place = { plot: { x: 10, y: 10, w: 100, h: 100 }, range: [0, 100, 0, 100] };
  return { part: { layout }, panel, ...place, strength: 1 };
}

/** Rows of the ten by ten grid that a lasso marks. */
function marked(path, panels = [placed()]) {
  const hits = new Uint8Array(100);
  markUnder(maskOf(path), panels, hits);
  return [...hits.keys()].filter((row) => hits[row]);
}

test('a lasso marks what an exact test of the polygon marks', () => {
  const path = Array.from({ length: 40 }, (_, k) => [
    60 + (30 + 12 * Math.sin(k)) * Math.cos(k / 6.37),
    60 + 35 * Math.sin(k / 6.37),
  ]);
  const hits = new Set(marked(path));
  const inside = (x, y) =>
    path.reduce((odd, [xi, yi], i) => {
      const [xj, yj] = path[(i + path.length - 1) % path.length];
      return yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi ? !odd : odd;
    }, false);
  const edge = (x, y) =>
    path.some(([px, py], i) => {
      const [dx, dy] = [path[(i + 1) % 40][0] - px, path[(i + 1) % 40][1] - py];
      const t = ((x - px) * dx + (y - py) * dy) / (dx ** 2 + dy ** 2);
      const near = Math.max(0, Math.min(1, t));
      return Math.hypot(x - px - near * dx, y - py - near * dy) < 1;
    });
  for (let i = 0; i < 100; i += 1) {
    const [x, y] = [10 + (i % 10) * 10 + 5, 110 - (Math.floor(i / 10) * 10 + 5)];
    if (!edge(x, y)) assert.equal(hits.has(i), inside(x, y), `${x}, ${y}`);
  }
  assert.ok(hits.size > 15 && hits.size < 60);
});

test('a lasso leaves the points of a panel that is fading, and those beyond its edge', () => {
  const all = [0, 1, 3, 2].map((i) => [200 * (i % 2), 200 * (i >> 1)]);
  assert.equal(marked(all).length, 100);
  assert.equal(marked(all, [{ ...placed(), strength: 0.49 }]).length, 0);
  assert.equal(marked(all, [{ ...placed(), range: [0, 50, 0, 100] }]).length, 50);
  const other = placed();
  other.part.layout.rows = other.part.layout.rows.map((row) => (row + 50) % 100);
  other.panel = { index: 1, start: 0, count: 50 };
  const seen = marked(all, [{ ...placed(), strength: 0 }, other]);
  assert.deepEqual([seen.length, seen[0], seen[49]], [50, 50, 99]);
});

test('sign cells and points beyond an edge are counted once', () => {
  const one = placed();
  for (let i = 0; i < 200; i += 1) one.part.layout.xy[i] -= 50;
  const rows = new Rows(100);
  rows.codes = Uint8Array.from({ length: 100 }, (_, i) => (i % 10 < 5 ? 1 : 4));
  const { cells, beyond } = countsOf(one.part.layout, one.panel, rows, [-40, 40, -50, 50]);
  assert.ok(cells.length === 4 && cells.every(({ count }) => count === 25));
  assert.deepEqual(beyond, [10, 10, 0, 0]);
  assert.equal(mostly(cells[0], ['0', '1', '2', '3', '4']), 'mostly 1s');
  assert.equal(mostly(cells[1], ['no', 'cat', 'c', 'd', 'dog']), 'mostly dog');
  const few = new Map([
    [0, 4],
    [1, 3],
    [2, 4],
    [3, 5],
  ]);
  assert.equal(mostly({ count: 18, classes: few }, ['a', 'b', 'c', 'd']), '', 'no half');
});

test('a number that is rounded to zero has no sign, and ticks are round and inside', () => {
  const values = [-0.04, 0.04, -0.06, -12].map((value) => signed(value));
  assert.deepEqual(values, ['0.0', '0.0', '−0.1', '−12.0']);
  assert.equal(signed(-0.2, 0), '0');
  assert.deepEqual(ticks(-4.2, 6.1, 6).values, [-4, -2, 0, 2, 4, 6]);
  assert.equal(ticks(0, 0.31, 4).digits, 1);
});

test('words get a place without words and data, or none', () => {
  const room = new Occupancy(200, 100);
  room.add(50, 50);
  const inside = { x: 0, y: 0, w: 200, h: 100 };
  const at = (x, y) => ({ x, y, w: 30, h: 12 });
  assert.deepEqual(room.take([at(40, 45), at(100, 45)], inside), at(100, 45));
  assert.equal(room.take([at(110, 45), at(190, 5)], inside), null);
});

test('the palette finds panels, components, classes, selections, rows, columns and actions', async () => {
  for (const text of ['2,5', '{2,5}', '5 2', '2 and 5', '{5; 2}'])
    assert.deepEqual(setOf(text), [2, 5]);
  assert.deepEqual([setOf('5'), setOf('2 ants')], [null, null]);
  const scene = await new Scene(input()).open();
  const stage = {
    scene,
    meta: { ...scene.meta, layouts: { other: scene.meta.layouts.pairs, ...scene.meta.layouts } },
    rows: new Rows(6),
    colouring: scene.meta.colourings.label,
    views: [{ layout: { name: 'pairs' } }],
    options: { came: ['', 'was 9'], selections: [['Bold ones', 3]] },
    callbacks: { colours: () => [['residual', 'Residual', 'Rows']] },
  };
  [stage.rows.codes, stage.meta.words] = [Uint8Array.from([0, 1, 0, 1, 0, 0]), { first: 1 }];
  const acts = [{ label: 'Undo', run: () => {} }];
  const targets = async (text) => (await find(stage, text, acts)).map(({ target }) => target);
  assert.deepEqual((await targets('5,2'))[0], { layout: 'pairs', panel: 2 }); // in the layout that is shown
  assert.deepEqual(await targets('#4'), [{ row: 3 }]);
  const [first] = stage.meta.components;
  assert.deepEqual(await targets(`component ${first.number}`), [{ component: 0 }]);
  assert.deepEqual(await targets('was 9'), [{ component: 1 }]);
  const named = (await find(stage, 'b', acts)).map(({ kind, label }) => `${kind} ${label}`);
  assert.deepEqual(named, ['class b', 'selection Bold ones', 'row Row 2, Animal Bee']);
  assert.deepEqual(
    (await find(stage, 'resid', acts)).map(({ kind }) => kind),
    ['column'],
  );
  assert.equal((await find(stage, '> un', acts)).map(({ label }) => label).join(), 'Undo');
  assert.deepEqual(await find(stage, 'zebra', acts), []);
  const users = (await find(stage, '', acts)).filter(({ kind }) => kind === 'component');
  const count = (k) => [...scene.components].filter((used) => used === k).length;
  assert.equal(users.length, 3);
  users.forEach(({ note }, k) => assert.equal(parseInt(note, 10), count(k)));
});

test('every colour of a quantity is seen on a dark panel, and rows without a value keep theirs', () => {
  const ends = ['#440154', '#482878', '#3e4989', '#31688e', '#26828e', '#1f9e89'];
  const viridis = [...ends, '#35b779', '#6ece58', '#b5de2b', '#fde725'].map(rgb);
  const table = Array.from({ length: 254 }, (_, i) => {
    const at = (0.04 + (0.91 * i) / 253) * 9; // as appca.plots.style.viridis
    const [a, b] = [viridis[Math.floor(at)], viridis[Math.floor(at) + 1]];
    const mixed = a.map((value, j) => value + (b[j] - value) * (at % 1));
    return `#${mixed.map((x) => `0${Math.round(255 * x).toString(16)}`.slice(-2)).join('')}`;
  });
  const colouring = { kind: 'quantity', names: [], table: [...table, '#c3c8cf'] };
  const classes = paletteBytes(input().meta.colourings.label, false);
  assert.deepEqual([...classes.slice(0, 8)], [255, 0, 0, 0, 0, 255, 0, 0]);
  assert.deepEqual(classes.slice(8, 12), classes.slice(4 * 200, 4 * 200 + 4)); // above: grey
  const light = paletteBytes(colouring, false);
  const dark = paletteBytes(colouring, true);
  const hex = (bytes, code) =>
    `#${Buffer.from(bytes.slice(4 * code, 4 * code + 3)).toString('hex')}`;
  for (const code of [0, 253, 254]) assert.equal(hex(light, code), colouring.table[code]);
  for (const code of [253, 254]) assert.equal(hex(dark, code), colouring.table[code]);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) =>
    rgb(colour).reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * linear(c), 0);
  const panel = luminance(THEMES.dark.panel) + 0.05;
  const least = Math.min(...table.map((_, code) => (luminance(hex(dark, code)) + 0.05) / panel));
  assert.ok(least >= 3, `${least}`);
});

test('colour by one or two components, of which rows of neither are missing', async () => {
  const given = input();
  const scene = await new Scene(given).open();
  const axes = colouredBy(scene.meta, 'components:1,2');
  assert.deepEqual(axes, [0, 1]);
  assert.deepEqual(colouredBy(scene.meta, 'component:5'), [2]);
  assert.deepEqual(colouredBy(scene.meta, 'components:1,3'), []);
  assert.deepEqual([...rampOf(scene, 1).codes], [159, 255, 206, 254, 255, 255]); // of one
  const { codes, colouring } = planeOf(scene, axes);
  assert.equal(codes[3], 14 + 15 * 14); // both are largest there
  assert.deepEqual([...codes.slice(4)], [255, 255]);
  const { table } = colouring;
  assert.deepEqual([table[0], table[14], table[112]], ['#2f6fb3', '#2a9d6f', '#b9bec6']); // two corners, the middle
  assert.equal(table.length, 225);
});

/** Five subspaces, two of which have no panel of their own. */
function gathering() {
  const made = input();
  const [pattern] = made.meta.layouts.pairs.panels;
  const panel = (components, start, count) => ({
    ...{ ...pattern, components, axes: components, start, listed: count, count },
    cell: [start % 2, 0],
  });
  const panels = [panel([0, 1], 0, 2), panel([0, 2], 2, 1)];
  const other = { start: 3, count: 3, subspaces: 3 };
  made.meta.layouts = {
    subspaces: { kind: 'grid', title: 'Subspaces', spacing: 0.5, panels, other },
  };
  made.buffers['order.subspaces'] = async () => Uint32Array.of(0, 3, 1, 2, 4, 5).buffer;
  return made;
}

test('all rows are in the picture: those of subspaces without a panel are gathered in one', async () => {
  const scene = await new Scene(gathering()).open();
  const layout = await scene.layout('subspaces');
  const names = layout.panels.map(({ name, count }) => `${name} ${count}`);
  assert.deepEqual(names, ['{1,2} 2', '{1,5} 1', 'Other 3']);
  assert.deepEqual([...layout.rows].sort(), [0, 1, 2, 3, 4, 5]);
  const gathered = await scene.gathered('subspaces');
  const sets = gathered.map(({ components, count }) => `{${components}} ${count}`);
  assert.deepEqual(sets, ['{1,2} 1', '{2} 1', '{} 1']);
  const made = await withPanels(scene, layout, gathered.slice(0, 1));
  assert.equal(layout.panels.length, 3);
  const { name, start, axes } = made.panels[3];
  assert.deepEqual([name, made.rows[start], axes], ['{2,5}', 2, [2, 1]]);
  assert.deepEqual([made.xy[2 * start], made.xy[2 * start + 1]], [60, 50]);
});
