import assert from 'node:assert/strict';
import test from 'node:test';

import { readable } from '../../../appca/ui/explorer/dom.js';

test('numbers are written with commas between thousands, a true minus and three or four digits', () => {
  const written = [
    [1681, '1,681'],
    [-1681, '−1,681'],
    [-1234.57, '−1,235'],
    [1234567.8, '1,234,568'],
    [999.96, '1,000'],
    [-999.96, '−1,000'],
    [-123.45, '−123.5'],
    [12.345, '12.3'],
    [-0.012345, '−0.0123'],
    [-1.2345e-9, '−1.23e−9'],
    [0, '0'],
    [-0, '0'],
    [7, '7'],
    [NaN, '–'],
    [Infinity, '–'],
  ];
  for (const [value, text] of written) assert.equal(readable(value), text, String(value));
});
