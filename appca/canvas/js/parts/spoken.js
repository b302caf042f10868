/** What a screen reader hears: a live region, the name of the picture, and a table of its panels. */

import { fullest } from '../scene/layouts.js';
import { grouped } from '../scene/names.js';
import { element } from './dom.js';

const LISTED = 250;
const AFTER = 200; // ms until the table follows: the picture comes first

/** @param {import('../stage.js').Stage} stage @param {import('../input/actions.js').Actions} actions */
export function buildSpoken(stage, actions) {
  const live = element('div', 'appca-live appca-hidden', { 'aria-live': 'polite' });
  const caption = element('caption', '');
  const body = element('tbody', '');
  const head = element(
    'tr',
    '',
    {},
    ...['Panel', 'Components', 'Rows', 'Share'].map((text) =>
      element('th', '', { scope: 'col' }, text),
    ),
  );
  const table = element('table', 'appca-hidden', {}, caption, element('thead', '', {}, head), body);
  stage.root.append(live, table);
  actions.say = (text) => {
    live.textContent = text;
  };
  /** @type {import('../scene/layouts.js').Layout | null} */
  let shown = null;
  let timer = 0;
  const fill = () => {
    const [{ layout }] = stage.views;
    if (stage.gone || shown === layout) return;
    shown = layout;
    const said = `${layout.title}: ${grouped(stage.rows.count)} rows in ${layout.panels.length} ${layout.panels.length === 1 ? 'panel' : 'panels'}`;
    caption.textContent = said;
    stage.hit.setAttribute(
      'aria-label',
      `${said}. Arrow keys move between panels, Enter opens one, Escape goes back, plus and minus zoom, A selects a panel's rows, slash finds anything, question mark lists all keys.`,
    );
    const listed = fullest(layout.panels).slice(0, LISTED);
    body.replaceChildren(
      ...listed.map((panel) =>
        element(
          'tr',
          '',
          {},
          ...[
            panel.name,
            panel.components
              .map((i) => stage.meta.components[i].name || stage.meta.components[i].number)
              .join(', '),
            grouped(panel.count),
            `${((100 * panel.count) / stage.rows.count).toFixed(1)}%`,
          ].map((text) => element('td', '', {}, text)),
        ),
      ),
    );
  };
  stage.settled.push(() => {
    clearTimeout(timer);
    timer = setTimeout(fill, AFTER);
  });
}
