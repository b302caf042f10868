import assert from 'node:assert/strict';
import test from 'node:test';

import {
  describePanel,
  describePoint,
  leadingClasses,
} from '../../../appca/ui/explorer/describe.js';

const classes = {
  kind: 'category',
  name: 'digit',
  names: ['0', '7', '9'],
  codes: Uint8Array.of(1, 1, 2, 0, 1, 3, 1, 2),
};

test('a panel in words names rows, axes and the classes that lead', () => {
  const panel = { title: '{1,3}', subtitle: '8 rows · 100%', rows: Int32Array.of(0, 1, 2, 3, 4, 6, 7) };
  assert.equal(
    describePanel(panel, { x: 'component 1', y: 'component 3' }, classes),
    'Panel {1,3}, 8 rows · 100%; across component 1, up component 3; ' +
      'most are digit 7 (57%), then 9 (29%) and 0 (14%).',
  );
});

test('rows without a class are counted in the whole but not named', () => {
  assert.equal(leadingClasses(Int32Array.of(0, 5), classes), 'most are digit 7 (50%)');
  assert.equal(leadingClasses(Int32Array.of(5), classes), '');
});

test('a share too small to round is not called nothing', () => {
  const codes = new Uint8Array(1000);
  codes[0] = 1;
  const rows = Int32Array.from(codes.keys());
  const said = leadingClasses(rows, { ...classes, codes });
  assert.equal(said, 'most are digit 0 (100%), then 7 (under 1%)');
});

test('of a colouring by a number its name is said, and nothing of none', () => {
  const rows = Int32Array.of(0);
  assert.equal(leadingClasses(rows, { kind: 'number', name: 'Residual' }), 'coloured by Residual');
  assert.equal(leadingClasses(rows, { kind: 'none', name: '' }), '');
});

test('a panel without names of axes says nothing of them', () => {
  const panel = { title: 'map', subtitle: 'all', rows: Int32Array.of(0) };
  const said = describePanel(panel, { x: '', y: '' }, { kind: 'none', name: '' });
  assert.equal(said, 'Panel map, all.');
});

test('a point in words is its id, whether it is selected, and its card', () => {
  const lines = [
    ['digit', '7'],
    ['residual', '0.02'],
  ];
  assert.equal(describePoint('row 12', lines, true), 'row 12, selected: digit 7, residual 0.02.');
  assert.equal(describePoint('row 12', lines, false), 'row 12: digit 7, residual 0.02.');
});
