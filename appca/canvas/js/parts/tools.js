/** Tools in the corner: move, lasso, box, zoom, all panels, search, tour, and what is rarely changed. */

import { element, icon, iconButton } from './dom.js';

/** @param {import('../stage.js').Stage} stage @param {import('../input/actions.js').Actions} actions @param {() => void} tour @param {() => void} search @param {{button: HTMLElement, chip: HTMLElement}} more */
export function buildTools(stage, actions, tour, search, more) {
  const view = () => stage.views[stage.views.length > 1 && stage.active ? 1 : 0];
  const modes = /** @type {const} */ (['pan', 'lasso', 'box']);
  const words = { pan: 'Move (M)', lasso: 'Lasso (L)', box: 'Box (B)' };
  const buttons = modes.map((mode) => iconButton(mode, words[mode], () => choose(mode)));
  /** @param {'pan' | 'lasso' | 'box'} mode */
  const choose = (mode) => {
    stage.options.tool = mode;
    stage.hit.style.cursor = mode === 'pan' ? 'grab' : 'crosshair';
    buttons.forEach((button, i) => button.setAttribute('aria-pressed', String(modes[i] === mode)));
  };
  const play = iconButton('play', 'Tour of the fullest panels', tour);
  const zooms = [
    iconButton('minus', 'Zoom out (−)', () => actions.zoom(view(), 1 / 1.5)),
    iconButton('plus', 'Zoom in (+)', () => actions.zoom(view(), 1.5)),
  ];
  for (const button of [buttons[2], ...zooms]) button.dataset.narrow = 'no'; // has no room on a phone
  const find = iconButton('search', 'Find anything (Ctrl+K)', search);
  find.append(element('kbd', '', {}, 'Ctrl K'));
  const bar = element(
    'div',
    'appca-tools',
    { role: 'toolbar', 'aria-label': 'Tools' },
    more.chip,
    ...buttons,
    element('span', 'appca-gap'),
    ...zooms,
    iconButton('fit', 'All panels (0)', () => actions.home(view())),
    element('span', 'appca-gap'),
    find,
    play,
    more.button,
  );
  stage.root.append(bar);
  choose(stage.options.tool ?? 'pan');
  /** The tour began or ended. @param {boolean} on */
  const touring = (on) => {
    play.replaceChildren(icon(on ? 'pause' : 'play'));
    play.setAttribute('aria-pressed', String(on));
    play.title = on ? 'Stop the tour' : 'Tour of the fullest panels';
    play.setAttribute('aria-label', play.title);
  };
  return { bar, choose, touring };
}
