import assert from 'node:assert/strict';
import test from 'node:test';

import { made } from './fake_page.js';
import { fillLabels } from '../../../appca/ui/explorer/labels.js';

test('the button of a sign cell says which rows it selects, one or many', () => {
  const cells = [1, 2, 1234].map((count) => ({ label: '+1 −2', count, corner: [1, 1] }));
  const root = made('div');
  fillLabels(root, [{ title: '{1,2}', subtitle: '', cells }], () => {});
  const [title, ...buttons] = root.children[0].children;
  assert.equal(title.className, 'appca-title');
  assert.deepEqual(buttons.map((button) => button.getAttribute('aria-label')), [
    'Select the row with signs +1 −2',
    'Select the 2 rows with signs +1 −2',
    'Select the 1,234 rows with signs +1 −2',
  ]);
});
