import assert from 'node:assert/strict';
import test from 'node:test';

import { fire, made } from './fake_page.js';
import { listenToKeys } from '../../../appca/ui/explorer/keys.js';
import { buildToolbar } from '../../../appca/ui/explorer/toolbar.js';

/** A panel and a toolbar that listen to keys; what is done is noted. */
function listening() {
  const done = [];
  const note = (_, name) => (...given) => done.push([name, ...given.filter((one) => one?.type !== 'click')]);
  const actions = new Proxy({}, { get: note });
  const toolbar = buildToolbar(actions);
  const panel = made('div', 'appca-panel');
  const root = made('div', '', toolbar.root, panel);
  const frame = { left: 0, top: 0, width: 9, height: 9, x: [0, 1], y: [0, 1] };
  const shown = { rows: Int32Array.of(5), x: Float32Array.of(0.5), y: Float32Array.of(0.5), frame };
  listenToKeys({ dom: { root }, toolbar, panels: [shown], activePanel: 0 }, actions);
  const press = (key, held = {}) => fire(root, 'keydown', { key, target: panel, ...held });
  return { done, press, toolbar };
}

test('letters change the mode with Shift and Caps Lock too', () => {
  const { done, press } = listening();
  for (const key of ['m', 'L', 'B', 'M']) assert.ok(press(key).defaultPrevented);
  assert.deepEqual(done.map(([, mode]) => mode), ['pan', 'lasso', 'box', 'pan']);
});

test('keys with Alt, Ctrl or Meta are left to the browser', () => {
  const { done, press } = listening();
  for (const held of [{ altKey: true }, { ctrlKey: true }, { metaKey: true }]) {
    for (const key of ['ArrowLeft', 'ArrowRight', 'b', 'B', '0', '+', 'Enter']) {
      assert.ok(!press(key, held).defaultPrevented);
    }
  }
  assert.deepEqual(done, []);
});

test('Alt + A takes what is in view away, Shift + A adds it, and Alt + Escape gives up', () => {
  const { done, press } = listening();
  assert.ok(press('a', { altKey: true }).defaultPrevented);
  press('A', { shiftKey: true });
  press('a');
  press('Escape', { altKey: true });
  const expected = ['subtract', 'add', 'replace'].map((how) => ['select', [5], how]);
  assert.deepEqual(done, [...expected, ['escape']]);
});

test('a button that names a key in brackets does what the key does', () => {
  const { done, press, toolbar } = listening();
  const named = Object.values(toolbar.buttons).flatMap((button) => {
    const key = button.getAttribute('title').match(/\(([^()]+)\)$/)?.[1];
    return key ? [[button, key]] : [];
  });
  assert.equal(named.length, 5);
  for (const [button, key] of named) {
    fire(button, 'click');
    press(key);
    const [[byClick, ...given], [byKey, ...givenToo]] = done.splice(0);
    assert.equal(byKey, byClick === 'clear' ? 'escape' : byClick); // Escape gives up a lasso first
    assert.deepEqual(given, givenToo);
  }
});
