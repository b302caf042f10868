/** Tools in the corner: move, lasso, box, zoom, all panels; they fade while the hand is over data near them. */

import { element, iconButton } from './dom.js';

/** @param {import('../stage.js').Stage} stage @param {import('../input/actions.js').Actions} actions @param {() => void} toggleStrip */
export function buildTools(stage, actions, toggleStrip) {
  const view = () => stage.views[stage.views.length > 1 && stage.active ? 1 : 0];
  const modes = /** @type {const} */ (['pan', 'lasso', 'box']);
  const words = { pan: 'Move (M)', lasso: 'Lasso (L)', box: 'Box (B)' };
  const buttons = modes.map((mode) => iconButton(mode, words[mode], () => choose(mode)));
  /** @param {'pan' | 'lasso' | 'box'} mode */
  const choose = (mode) => {
    stage.options.tool = mode;
    stage.hit.style.cursor = mode === 'pan' ? 'grab' : 'crosshair';
    buttons.forEach((one, i) => one.setAttribute('aria-pressed', String(modes[i] === mode)));
  };
  const bar = element('div', 'appca-tools', { role: 'toolbar', 'aria-label': 'Tools' }, ...buttons, element('span', 'appca-gap'),
    iconButton('minus', 'Zoom out (−)', () => actions.zoom(view(), 1 / 1.5)), iconButton('plus', 'Zoom in (+)', () => actions.zoom(view(), 1.5)),
    iconButton('fit', 'All panels (0)', () => actions.home(view())), iconButton('strip', 'List of panels (P)', toggleStrip));
  stage.root.append(bar);
  choose(stage.options.tool ?? 'pan');
  return { bar, choose };
}
