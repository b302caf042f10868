/** What the picture is: title and legend in the free half of a triangle, else in a bar above, with the way back. */

import { toPage } from '../layout/camera.js';
import { capital, countOf, grouped, panelTitle } from '../scene/names.js';
import { DOUBTFUL } from '../scene/rows.js';
import { button, element, icon } from './dom.js';
import { fillLegend } from './legend.js';
import { selectedIn } from '../text/names.js';

const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six'];

/** @param {import('../types.js').Meta} meta @param {import('../types.js').Kind} kind @param {string} [layout] name */
export function sentences(meta, kind, layout) {
  const { words, n_active: active, components } = meta;
  const row = words?.row ?? 'row';
  const many = words?.rows ?? `${row}s`;
  const Many = capital(many);
  if (layout === 'slices')
    return [`All ${many} at their places`, 'Horizontal slices, the lowest first.'];
  if (kind === 'map') return [`All ${many} on one map`, `Close ${many} are alike.`];
  const mixed = active === null || active >= components.length;
  const uses = mixed
    ? `Each ${row} uses some of ${components.length} components`
    : `Each ${row} uses ${active} of ${components.length} components`;
  const paired = kind === 'triangle' || layout === 'pairs';
  const [a, b] = components.map(({ number }) => number);
  if (paired && (mixed || active > 2))
    return [uses, `Panel {${a},${b}} holds the ${many} that use both ${a} and ${b}.`];
  return [
    uses,
    `${Many} with the same ${mixed ? 'components' : active === 1 ? 'component' : (NUMBERS[active] ?? active)} share a panel.`,
  ];
}

/** What stands for the components of a panel where they are too many for a diagonal that says it. @param {import('../types.js').Meta} meta @param {number[]} components */
export function strongest(meta, components) {
  if (meta.component_pictures || meta.components.length < 256) return '';
  const said = components.slice(0, 2).map((index) => {
    const { number, columns = [] } = meta.components[index];
    const names = columns.slice(0, 3).map(([name]) => name);
    return `; ${number}: ${names.join(', ')}`;
  });
  return said.join('');
}

/** @param {import('../stage.js').Stage} stage @param {import('../input/actions.js').Actions} actions @param {HTMLElement} tools @param {HTMLElement} more what opens beside them @param {(box: import('../types.js').Rect) => number} near strength of what stands over data near the hand @param {(label: string, before: string, now: string) => void} rename a class */
export function buildBar(stage, actions, tools, more, near, rename) {
  const title = element('b', 'appca-title');
  const under = element('span', 'appca-under');
  const heading = element('div', 'appca-heading', {}, title, under);
  const goBack = () => {
    actions.close(stage.views[0]);
    stage.hit.focus({ preventScroll: true }); // this button goes
  };
  const back = button('appca-back', {}, goBack, icon('back'), 'All panels');
  const name = element('b', '');
  const about = element('span', 'appca-count');
  const legend = element('div', 'appca-legend', { role: 'group', 'aria-label': 'Classes' });
  const key = element('span', 'appca-keytitle');
  const rest = element('span', 'appca-count appca-rest');
  const dot = element('i', 'appca-dot');
  const hollow = element(
    'span',
    'appca-count appca-hollow',
    {},
    dot,
    'hollow: less than half certain',
  );
  const bar = element(
    'div',
    'appca-bar',
    {},
    ...[back, name, about, heading, key, legend, rest, hollow],
  );
  stage.root.append(bar);
  let [filled, docked] = ['', ''];
  let [w, h] = [0, 0]; // of the tools

  /** Once the picture stands. */
  const settle = () => {
    const {
      views: [view],
      rows,
      colouring,
    } = stage;
    const now = `${rows.codesChanged} ${rows.hidden} ${stage.colouringName} ${colouring?.limits} ${stage.dark}`;
    if (now !== filled) {
      filled = now;
      fillLegend(stage, legend, rename);
      hollow.hidden = !rows.flags.some((flags) => flags & DOUBTFUL);
    }
    const [first, second] = sentences(stage.meta, view.layout.kind, view.layout.name);
    const drawn = stage.meta.layouts[view.layout.name].drawn;
    const sample = drawn
      ? ` Drawn: a fair sample of ${grouped(drawn.rows)} of ${countOf(stage.meta, rows.count)}.`
      : '';
    [title.textContent, under.textContent, key.textContent] = [
      first,
      second + sample,
      capital(colouring?.title ?? ''),
    ];
    const panel = view.opened && view.layout.panels[view.opened.panel];
    back.hidden = name.hidden = about.hidden = !panel;
    heading.hidden = Boolean(panel);
    if (panel) {
      const full = Math.max(...view.layout.panels.map(({ count }) => count));
      name.textContent = panelTitle(stage.meta, panel);
      const picked = rows.selected ? selectedIn(stage, { part: view.parts[0], panel }).count : 0;
      about.textContent = `${picked ? `${grouped(picked)} of ` : ''}${countOf(stage.meta, panel.count)}, ${Math.round((100 * panel.count) / rows.count)}%${panel.count === full ? ': the fullest panel' : ''}${strongest(stage.meta, panel.components)}`;
    }
    arrange();
  };
  const arrange = () => {
    const {
      views: [view],
      width,
    } = stage;
    const { free } = view.arrangement;
    const box = free && !view.opened ? toPage(view.home, view.rect, free) : null;
    const block = Boolean(box && view.corner);
    bar.classList.toggle('appca-block', block);
    bar.classList.toggle('appca-narrow', Boolean(box && box.h < 200));
    bar.classList.toggle('appca-lined', !block && !view.opened && view.inLines);
    bar.classList.remove('appca-slim', 'appca-whole');
    bar.hidden = view.compact
      ? !view.opened
      : block
        ? !view.atFit || Boolean(stage.morph)
        : view.layout.kind === 'triangle' && !view.opened && width > 560 && !view.atFit;
    bar.style.cssText =
      block && box
        ? `left:${box.x}px;top:${box.y + 4}px;width:${box.w}px;max-height:${box.h}px`
        : `width:${stage.width}px`; // also over a second view
    for (const step of ['appca-slim', 'appca-whole'])
      // without counts, then in lines
      if (block && legend.scrollHeight > legend.clientHeight) bar.classList.add(step);
    rest.textContent = '';
    for (let i = 0; i < 2; i += 1) {
      // twice, for these words take room as well
      const shown = [...legend.children].filter(
        (/** @type {any} */ item) =>
          item.offsetTop + item.offsetHeight / 2 < legend.offsetTop + legend.clientHeight,
      );
      const more = Number(legend.dataset.classes) - shown.length;
      if (more > 0) rest.textContent = `and ${more} more`;
    }
  };
  /** Tools stand in the bar, or beside the last picture of the diagonal. */
  const dock = () => {
    const {
      views: [view],
    } = stage;
    const block = bar.classList.contains('appca-block') && !bar.hidden;
    const last = view.arrangement.diagonal.at(-1);
    const right = block && last ? stage.width - toPage(view.cam, view.rect, last.rect).x + 12 : 8;
    const now = `${block} ${right} ${stage.width}`;
    if (now !== docked) {
      // a size that is asked for makes the browser lay out the page
      docked = now;
      tools.style.cssText = block ? `right:${right}px;bottom:12px` : `right:${right}px;top:3px`;
      tools.classList.toggle('appca-docked', !block);
      [w, h] = [tools.offsetWidth, tools.offsetHeight];
      more.style.cssText = block
        ? `right:${right}px;bottom:${h + 20}px`
        : `right:${Math.max(8, right)}px;top:44px`;
    }
    tools.style.opacity = String(
      block
        ? near({ x: stage.width - right - w, y: stage.height - 12 - h, w, h })
        : stage.root.classList.contains('appca-quiet')
          ? ''
          : 1,
    );
  };
  stage.settled.push(settle);
  actions.changed.push(() => {
    if (bar.classList.contains('appca-block')) bar.hidden = true;
  });
  const follow = () => {
    if (!stage.views.length) return;
    if (bar.classList.contains('appca-block'))
      bar.hidden = !stage.views[0].atFit || Boolean(stage.views[0].opened) || Boolean(stage.morph);
    dock();
  };
  return { follow };
}
