import assert from 'node:assert/strict';
import test from 'node:test';

import { actionsOf } from '../../../appca/ui/explorer/actions.js';

const MOST_READ = 16; // MOST_SHEETS_ASKED of messages.py

/** An explorer of 40 sheets; `want` misses some and waits until they have been gathered. */
function asking(t) {
  let due = null;
  t.mock.method(globalThis, 'setTimeout', (action) => {
    due = action;
  });
  const explorer = {
    order: { set: 'a', style: 'ink', sheets: 40 },
    store: { parcels: new Map(), sheets: new Map() },
    asked: new Set(),
    missing: new Set(),
  };
  const sent = [];
  explorer.send = (name, numbers) => sent.push([name, ...numbers]);
  const actions = actionsOf(explorer);
  const want = (...numbers) => {
    numbers.forEach(actions.wantSheet);
    due?.();
    due = null;
  };
  const come = (number) => explorer.store.parcels.set(`sheet:${explorer.order.set}:${number}`, {});
  return { explorer, sent, want, come };
}

test('a second request asks for what the first has not brought yet, and for no more', (t) => {
  const { sent, want, come } = asking(t);
  want(3, 2);
  want(7);
  come(2);
  want(2, 9, 40);
  assert.deepEqual(sent, [['need', 2, 3], ['need', 2, 3, 7], ['need', 3, 7, 9]]);
  want(3, 9);
  come(11);
  want(11);
  assert.equal(sent.length, 3);
});

test('all sheets come when Python reads only the last request and brings one a time', (t) => {
  const { explorer, sent, want, come } = asking(t);
  const came = new Set();
  for (let run = 0; run < 40; run += 1) {
    want(...Array.from({ length: 40 }, (_, i) => 39 - i).filter((number) => !came.has(number)));
    const [, ...last] = sent[sent.length - 1];
    assert.ok(last.length <= MOST_READ);
    assert.deepEqual(new Set(last), explorer.asked);
    const next = last.find((number) => !came.has(number));
    came.add(next);
    come(next);
  }
  assert.deepEqual([...came].sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i));
});

test('the sheets of other data are asked for anew, and none of data without images', (t) => {
  const { explorer, sent, want, come } = asking(t);
  want(2);
  come(2);
  explorer.order = { ...explorer.order, set: 'b', sheets: 3 };
  want(1);
  want(2, 3);
  explorer.order = null;
  want(0);
  assert.deepEqual(sent, [['need', 2], ['need', 2, 1]]);
});
