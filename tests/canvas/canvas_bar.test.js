import assert from 'node:assert/strict';
import test from 'node:test';

/** What the bar needs of an element. */
class Part extends EventTarget {
  append(...parts) {
    this.parts = parts;
  }
  setAttribute(name, value) {
    this[name] = value;
  }
  get valueAsNumber() {
    return Number(this.value);
  }
  /** Do what a hand does. */
  give(value, ...events) {
    this.value = String(value);
    for (const event of events) this.dispatchEvent(new Event(event));
  }
}
globalThis.document = /** @type {any} */ ({ createElement: () => new Part() });
const { buildSizes } = await import('../../appca/canvas/js/parts/bar.js');

const soon = () => new Promise((now) => setTimeout(now, 5));

function begun(sizes = { k: 4, l: 2, most_k: 40 }) {
  const sent = [];
  const bar = buildSizes(
    (size) => sent.push(size),
    () => false,
  );
  bar.show(sizes);
  const [[, slider, field], [, ofL, fieldOfL]] = bar.box.parts.map(({ parts }) => parts);
  const shown = () => [field.value, fieldOfL.value].map(Number);
  return { bar, sent, slider, field, ofL, shown };
}

test('a late answer does not take back what the hand has chosen, and its own may', async () => {
  const { bar, sent, slider, shown } = begun();
  slider.give(5, 'input');
  assert.deepEqual(shown(), [6, 2]);
  await soon();
  slider.give(6, 'input');
  bar.show({ k: 6, l: 2, most_k: 40 }, 1);
  assert.deepEqual(shown(), [7, 2], 'a move that is not sent yet stays');
  slider.give(7, 'change');
  bar.show({ k: 7, l: 2, most_k: 40 }, 1);
  await soon();
  assert.deepEqual(shown(), [8, 2]);
  const moves = sent.map(({ k, moving }) => [k, moving]);
  assert.deepEqual(moves, [
    [6, true],
    [8, false],
  ]);
  bar.show({ k: 4, l: 2, most_k: 40 }, 2);
  assert.deepEqual(shown(), [4, 2], 'the host has refused it');
});

test('a key is one message, K and L push each other, and a number may lie beyond the slider', async () => {
  const { sent, slider, field, ofL, shown } = begun();
  slider.give(0, 'input', 'change');
  await soon();
  assert.deepEqual(sent, [{ k: 1, l: 1, moving: false }]);
  slider.give(2, 'input', 'change');
  assert.deepEqual(shown(), [3, 2], 'L comes back with K');
  ofL.give(4, 'input', 'change');
  assert.deepEqual(shown(), [5, 5]);
  assert.equal(slider.max, '11');
  field.give(99, 'change');
  assert.deepEqual(shown(), [40, 5]);
  assert.deepEqual([slider.max, slider['aria-valuetext']], ['39', 'K = 40']);
  field.give('', 'change');
  assert.deepEqual(shown(), [40, 5]);
});
