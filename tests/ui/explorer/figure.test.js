import assert from 'node:assert/strict';
import test from 'node:test';

import { codesOf, colourOf, paintedMarker } from '../../../appca/ui/explorer/colours.js';
import {
  buildLayout,
  buildTraces,
  domainChanges,
  MOST_SVG_POINTS,
  svgPlaces,
} from '../../../appca/ui/explorer/figure.js';
import { arrange } from '../../../appca/ui/explorer/grid.js';
import { acceptsSelection } from '../../../appca/ui/explorer/message.js';
import { noteOf } from '../../../appca/ui/explorer/refresh.js';
import { channelsOf, legible, luminance, pointTable } from '../../../appca/ui/explorer/theme.js';

const theme = {
  text: '#1c2733',
  soft: '#444',
  faint: '#888',
  background: '#ffffff',
  zero: '#999',
  font: 'x',
  fill: '#eee',
};
const dark = { ...theme, text: '#e6ebf1', background: '#11161d' };
const look = { size: 3, ground: '#ffffff', webgl: true };
const colour = { codes: Uint8Array.from([0, 1, 2, 1]), table: ['#a00000', '#00a000', '#ccc'], shapes: null };

function panelOf(rows, extra = {}) {
  const values = Float32Array.from(rows);
  const marker = { size: 3, opacity: 0.5, line: { width: 0 }, ...extra.marker };
  const trace = { type: 'scattergl', x: values, y: values, customdata: rows, marker };
  return { rows: Int32Array.from(rows), own: false, symbols: false, hollow: null, ...extra, trace };
}

test('codes follow the rows of the panel, in their order', () => {
  assert.deepEqual(codesOf(colour.codes, [3, 0, 2]), Uint8Array.from([1, 0, 2]));
});

test('each point is painted in the colour of its row', () => {
  const panel = panelOf([2, 1]);
  const marker = paintedMarker(panel, colour, look);
  assert.deepEqual(marker.color, ['#ccc', '#00a000']);
  assert.equal(colourOf(panel, 1, colour), '#00a000');
});

test('a panel with own colours keeps them in every colouring', () => {
  const own = { color: Uint16Array.from([1, 0]), colorscale: [[0, '#111'], [1, '#222']] };
  const panel = panelOf([2, 1], { own: true, marker: own });
  const marker = paintedMarker(panel, colour, look);
  assert.deepEqual(marker.color, ['#222', '#111']);
  assert.equal(marker.colorscale, undefined);
  assert.equal(colourOf(panel, 0, colour), '#222');
});

test('doubtful rows are rings: the ground inside, their own colour as the line', () => {
  const panel = panelOf([0, 1, 2], { hollow: Uint8Array.from([0, 1, 0]) });
  const marker = paintedMarker(panel, colour, look);
  assert.deepEqual(marker.color, ['#a00000', '#ffffff', '#ccc']);
  assert.equal(marker.line.color[1], '#00a000');
  assert.deepEqual(Array.from(marker.line.width, (width) => width > 0), [false, true, false]);
  assert.ok(marker.size[1] > marker.size[0]);
});

test('classes beyond the tenth have shapes, unless the panel has symbols of its own', () => {
  const shaped = { ...colour, shapes: ['circle', 'diamond', 'circle'] };
  assert.deepEqual([...paintedMarker(panelOf([0, 1]), shaped, look).symbol], [0, 2]);
  const own = panelOf([0, 1], { symbols: true, marker: { symbol: Uint8Array.from([5, 5]) } });
  assert.deepEqual([...paintedMarker(own, shaped, look).symbol], [5, 5]);
});

test('the selection is given to every panel by its own places', () => {
  const panels = [panelOf([3, 1, 0]), panelOf([1, 2]), panelOf([0])];
  const traces = buildTraces(panels, colour, Uint8Array.from([0, 1, 0, 1]), look);
  assert.deepEqual(traces.map((trace) => trace.selectedpoints), [[0, 1], [0], []]);
  assert.equal(buildTraces(panels, colour, null, look)[0].selectedpoints, undefined);
});

test('without WebGL a fixed part of the points is drawn, the same rows in every panel', () => {
  const rows = Int32Array.from({ length: 20000 }, (_, i) => i);
  const big = { codes: new Uint8Array(20000), table: ['#111', '#222'], shapes: null };
  const panels = [panelOf(rows), panelOf(rows.slice().reverse())];
  const selection = Uint8Array.from(rows, (row) => Number(row % 3 === 0));
  const traces = buildTraces(panels, big, selection, { ...look, webgl: false });
  const drawn = traces.map((trace) => Array.from(trace.x));
  assert.ok(traces.every((trace) => trace.type === 'scatter'));
  const total = drawn[0].length + drawn[1].length;
  assert.ok(total <= 1.1 * MOST_SVG_POINTS && total > 0.9 * MOST_SVG_POINTS);
  assert.deepEqual(drawn[0], drawn[1].toReversed());
  const selected = traces[0].selectedpoints.map((place) => drawn[0][place]);
  assert.deepEqual(selected, drawn[0].filter((row) => row % 3 === 0));
  assert.equal(traces[0].marker.color.length, drawn[0].length);
});

test('few points are all drawn without WebGL too', () => {
  assert.deepEqual(svgPlaces([5, 9, 2], 1), [0, 1, 2]);
});

test('zoom that was kept goes before the ranges of Python', () => {
  const axis = { range: [0, 1], tickfont: {}, title: { text: 'c', font: {} } };
  const axes = { xaxis: axis, yaxis: axis };
  const layout = buildLayout(axes, arrange(400, 1, 1, null), theme, { xaxis: [3, 4] });
  assert.deepEqual(layout.xaxis.range, [3, 4]);
  assert.deepEqual(layout.yaxis.range, [0, 1]);
  assert.equal(layout.xaxis.title.text, 'c');
});

test('a new width moves every axis and changes nothing else', () => {
  const changes = domainChanges(arrange(700, 2, 3, null));
  assert.deepEqual(Object.keys(changes).sort(), [
    'height',
    'width',
    'xaxis.domain',
    'xaxis2.domain',
    'yaxis.domain',
    'yaxis2.domain',
  ]);
});

test('a selection that Python had not seen is not undone by its message', () => {
  const local = { mount: 'm', number: 3 };
  assert.ok(acceptsSelection({ mount: 'm', number: 0 }, null));
  assert.ok(!acceptsSelection(local, null));
  assert.ok(!acceptsSelection(local, ['m', 2]));
  assert.ok(acceptsSelection(local, ['m', 3]));
  assert.ok(!acceptsSelection(local, ['other', 9]));
});

test('the note counts what is selected and says what is not drawn', () => {
  const base = {
    hint: '',
    selection: null,
    selectedCount: 0,
    webgl: true,
    panels: [{ rows: { length: 7000 } }],
    points: 7000,
  };
  assert.equal(noteOf(base), '');
  assert.equal(noteOf({ ...base, selection: [], selectedCount: 1234 }), '1,234 selected');
  assert.match(noteOf({ ...base, webgl: false, points: 5000 }), /5,000 of 7,000 points drawn/);
});

test('colours are read in every form that the theme has', () => {
  assert.deepEqual(channelsOf('#1c2733'), [28, 39, 51]);
  assert.deepEqual(channelsOf('#fff'), [255, 255, 255]);
  assert.deepEqual(channelsOf('rgba(1, 2, 3, 0.5)'), [1, 2, 3]);
});

test('pale strokes are darkened on white, dark points lifted on a dark page', () => {
  assert.equal(legible('#bd1f01', theme), '#bd1f01');
  const cyan = legible('#92dadd', theme);
  assert.ok(luminance(channelsOf(cyan)) < luminance(channelsOf('#92dadd')));
  assert.deepEqual(pointTable(['#004b69'], theme), ['#004b69']);
  const [lifted] = pointTable(['#004b69'], dark);
  assert.ok(luminance(channelsOf(lifted)) > luminance(channelsOf('#004b69')));
});
