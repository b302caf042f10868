/** Panels as a list, the fullest first: components, count and mix of classes. */

import { countsOf, ranked } from '../scene/counts.js';
import { fullest } from '../scene/layouts.js';
import { grouped, panelTitle } from '../scene/names.js';
import { clamp } from '../layout/rect.js';
import { cssOf } from '../theme.js';
import { element } from './dom.js';

const SHOWN = 120;

/** @param {import('../stage.js').Stage} stage @param {import('../input/actions.js').Actions} actions */
export function buildStrip(stage, actions) {
  const list = element('div', 'appca-list', {
    role: 'listbox',
    'aria-label': 'Panels, the fullest first',
    tabindex: '0',
  });
  const dotted = element('span', 'appca-numbers', { 'aria-hidden': 'true' }); // of the components, beside their dots
  const box = element('div', 'appca-strip', { hidden: '' }, dotted, list);
  stage.root.append(box);
  let chosen = 0;
  /** @type {number[]} */
  let order = [];

  const fill = () => {
    if (box.hidden) return;
    const [{ layout }] = stage.views;
    order = fullest(layout.panels)
      .filter(({ count }) => count)
      .map(({ index }) => index)
      .slice(0, SHOWN);
    const most = layout.panels[order[0]]?.count ?? 1;
    const { components } = stage.meta;
    dotted.replaceChildren(...components.map(({ number }) => element('i', '', {}, String(number))));
    list.replaceChildren(
      ...order.map((index, i) => {
        const panel = layout.panels[index];
        const { classes } = countsOf(layout, panel, stage.rows, panel.range);
        let at = 0;
        const mix = ranked(classes)
          .slice(0, 6)
          .map(
            ([code, count]) =>
              `${cssOf(stage.palette, code)} ${at}% ${(at += (100 * count) / panel.count)}%`,
          );
        const bar = element('i', 'appca-mix');
        bar.style.cssText = `height:${Math.max(3, (44 * panel.count) / most)}px;background:linear-gradient(to top,${mix},${stage.theme.grey} ${at}%)`;
        const dots = element(
          'span',
          'appca-dots',
          {},
          ...components.map((_, k) => element('i', panel.components.includes(k) ? 'appca-on' : '')),
        );
        const item = element(
          'div',
          'appca-item',
          {
            role: 'option',
            id: `${stage.id}-item-${i}`,
            'aria-label': `${panelTitle(stage.meta, panel)}, ${grouped(panel.count)} rows`,
            title: `${panelTitle(stage.meta, panel)} ${grouped(panel.count)}`,
          },
          element('span', 'appca-count', {}, grouped(panel.count)),
          bar,
          dots,
        );
        item.addEventListener('click', () => {
          mark(i);
          actions.open(stage.views[0], index);
        });
        item.addEventListener('pointerenter', () => {
          stage.views[0].focus = index;
          stage.views[0].focusShown = true;
          stage.schedule();
        });
        return item;
      }),
    );
    mark(Math.min(chosen, order.length - 1));
  };
  const mark = (/** @type {number} */ i) => {
    chosen = Math.max(0, i);
    [...list.children].forEach((item, k) =>
      item.setAttribute('aria-selected', String(k === chosen)),
    );
    list.setAttribute('aria-activedescendant', `${stage.id}-item-${chosen}`);
    if (!box.hidden) list.children[chosen]?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  list.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[
      event.key
    ];
    if (step) {
      event.preventDefault();
      mark(clamp(chosen + step, 0, order.length - 1));
      stage.views[0].focus = order[chosen];
      stage.views[0].focusShown = true;
      stage.schedule();
    } else if (event.key === 'Enter') {
      actions.open(stage.views[0], order[chosen]);
      event.preventDefault();
    } else if (event.key === 'Escape') {
      toggle();
      stage.hit.focus();
    }
  });
  const toggle = () => {
    box.hidden = !box.hidden;
    fill();
    if (!box.hidden) list.focus({ preventScroll: true });
  };
  actions.changed.push(fill);
  stage.settled.push(() => {
    if (!list.children.length) fill();
  });
  return { toggle };
}
