/** Tools in the corner: move, lasso, box, zoom, all panels, search, tour, and what is rarely changed. */

import { fullest } from '../scene/layouts.js';
import { grouped } from '../scene/names.js';
import { element, icon, iconButton } from './dom.js';

const LISTED = 120; // panels to go to

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
  const jump = element('select', '', { 'aria-label': 'Go to a panel' });
  const jumper = element('span', 'appca-tool appca-jump', {}, icon('list'), jump);
  jump.addEventListener('change', () => actions.open(stage.views[0], Number(jump.value)));
  const list = () => {
    if (!stage.root.classList.contains('appca-tight')) return;
    const [{ layout, opened }] = stage.views;
    const panels = fullest(layout.panels).filter(({ count }) => count);
    jumper.hidden = panels.length < 2;
    jump.replaceChildren(
      new Option('Panels', '-1'),
      ...panels
        .slice(0, LISTED)
        .map(({ name, count, index }) => new Option(`${name}  ${grouped(count)}`, `${index}`)),
    );
    jump.value = String(opened?.panel ?? -1);
    jump.options[0].disabled = true;
  };
  stage.settled.push(list);
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
    jumper,
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
