/** Below an opened panel: what its neighbours turn, and the player of the turn. */

import { componentName } from '../scene/names.js';
import { STRIP } from '../layout/open.js';
import { font, widthOf, write } from '../text/write.js';
import { button, element, icon, range } from './dom.js';

/** @param {import('../stage.js').Stage} stage @param {import('../input/actions.js').Actions} actions */
export function buildTourbar(stage, actions) {
  const words = element('b', '');
  const slider = range('Turn', 1, 0, 0.005);
  let target = -1;
  const view = () => stage.views[0];
  const run = () => {
    if (!actions.pauseTour() && view().opened && target >= 0) actions.tour(view(), target);
  };
  const word = 'Play the turn (T)';
  const play = button('appca-play', { title: word, 'aria-label': word }, run, icon('play'));
  const box = element(
    'div',
    'appca-tour',
    {},
    element('div', '', {}, words),
    element('div', '', {}, play, slider),
  );
  box.hidden = true;
  stage.root.append(box);
  slider.addEventListener('input', () => {
    if (target >= 0) actions.tour(view(), target, Number(slider.value));
  });
  slider.addEventListener('change', () => {
    if (Number(slider.value) >= 1) actions.arrive(view(), target);
  });
  actions.changed.push(() => {
    const opened = view()?.opened;
    const first = opened?.groups[0]?.panels[0];
    box.hidden = !opened || first === undefined || opened.rects.size < 2 || stage.width < 560;
    if (!opened || box.hidden) {
      target = -1;
      return;
    }
    if (!opened.rects.has(target) || target === opened.panel) target = first ?? -1;
  });
  stage.overlays.push(() => {
    const { opened, rect, layout, shift } = view();
    if (!opened || opened.rects.size < 2) return;
    const { context, theme, meta } = stage;
    context.globalAlpha = shift;
    for (const { turns, stays, x } of opened.groups) {
      const text = `Turn ${componentName(meta, turns)} into …`;
      const style = font(12.5, 600);
      write(context, text, x, rect.y + rect.h - STRIP + 9, { style, colour: theme.text });
      write(
        context,
        `${meta.components[stays].number} stays`,
        x + widthOf(context, text, style) + 6,
        rect.y + rect.h - STRIP + 9,
        { style: font(12.5), colour: theme.soft },
      );
    }
    context.globalAlpha = 1;
    if (stage.tour) target = stage.tour.b.index;
    const at = stage.tour?.t ?? 0;
    if (document.activeElement !== slider || stage.tweens.running.has('tour'))
      slider.value = String(at);
    const name = layout.panels[target]?.name ?? '';
    if (words.textContent !== `Turn to ${name}`) words.textContent = `Turn to ${name}`;
  });
  return { run };
}
