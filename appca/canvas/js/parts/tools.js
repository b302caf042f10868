/** Tools in the corner, the menu of what is rarely changed, the player of a turn. */

import { STRIP } from '../layout/view.js';
import { fullest } from '../scene/layouts.js';
import { capital, componentName, grouped } from '../scene/names.js';
import { colouredBy, colouringBy } from '../scene/scene.js';
import { font, widthOf, write, button, element, icon, iconButton, range } from './dom.js';
import { cssOf } from '../theme.js';
import { classCounts } from './bar.js';

/** Save the picture as PNG: both canvases, and the words that stand beside them. @param {Stage} stage */
export function savePicture(stage) {
  const made = element('canvas', '');
  [made.width, made.height] = [stage.canvas.width, stage.canvas.height];
  const context = /** @type {CanvasRenderingContext2D} */ (made.getContext('2d'));
  stage.draw(); // what WebGL has drawn lasts until the end of this task
  context.drawImage(stage.canvas, 0, 0);
  context.drawImage(stage.over, 0, 0);
  context.scale(stage.dpr, stage.dpr);
  context.textBaseline = 'middle';
  const root = stage.root.getBoundingClientRect();
  for (const part of stage.root.querySelectorAll(
    '.appca-bar :is(b, .appca-under, .appca-keytitle, .appca-count, .appca-dot)',
  )) {
    const box = part.getBoundingClientRect();
    const look = getComputedStyle(part);
    if (!box.width || part.closest('[hidden]')) continue;
    const [x, y] = [box.left - root.left, box.top - root.top];
    if (part.classList.contains('appca-dot')) {
      context.fillStyle = look.backgroundColor;
      context.beginPath();
      context.arc(x + box.width / 2, y + box.height / 2, box.width / 2, 0, 7);
      context.fill();
    } else {
      context.font = `${look.fontWeight} ${look.fontSize} ${look.fontFamily}`;
      context.fillStyle = look.color;
      context.fillText(part.textContent ?? '', x, y + box.height / 2, box.width);
    }
  }
  const download = `${stage.views.map(({ layout }) => layout.name).join('-')}.png`;
  element('a', '', { href: made.toDataURL(), download }).click();
}

/** What a filter says, in short; nothing where it keeps all. @param {Stage} stage @param {Filter} filter */
export function saidOf({ meta, colouring }, { components, classes, least, certainty }) {
  const names = (classes ?? []).map((code) => colouring?.names[code] ?? '');
  return [
    components?.length ? `with ${components.map((k) => meta.components[k].number).join(', ')}` : '',
    names.length ? (names.length > 3 ? `${names.length} classes` : names.join(', ')) : '',
    least ? `≥ ${grouped(least)} rows` : '',
    certainty ? `certain ≥ ${Math.round(100 * certainty)}%` : '',
  ]
    .filter(Boolean)
    .join(' · ');
}

/** @param {Stage} stage @param {Actions} actions @param {{update: (options: Options) => void, save: () => void}} does */
export function buildMore(stage, actions, does) {
  const label = 'Views and filters';
  const box = element('div', 'appca-more', { role: 'dialog', 'aria-label': label, hidden: '' });
  stage.root.append(box);
  const chip = button('appca-chip', { hidden: '' }, () => actions.filter({}));
  const opener = iconButton('tune', label, () => {
    box.hidden = !box.hidden;
    opener.setAttribute('aria-expanded', String(!box.hidden));
    fill();
  });
  const close = () => {
    box.hidden = true;
    opener.setAttribute('aria-expanded', 'false');
  };
  stage.hit.addEventListener('pointerdown', close);
  const escape = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape') return;
    close();
    opener.focus();
  };
  box.addEventListener('keydown', escape);
  opener.addEventListener('keydown', escape);
  const filter = (/** @type {Filter} */ change) =>
    actions.filter({ ...stage.options.filter, ...change });

  /** @param {string} title @param {...(HTMLElement | string)} children */
  const group = (title, ...children) =>
    element(
      'div',
      'appca-group',
      { role: 'group', 'aria-label': title },
      element('b', '', {}, title),
      element('div', 'appca-options', {}, ...children),
    );
  /** @param {string | Node} text @param {boolean} on @param {() => void} run */
  const toggle = (text, on, run) => {
    const act = () => {
      run();
      fill();
    };
    return button('appca-option', { 'aria-pressed': String(on) }, act, text);
  };
  const act = (/** @type {string} */ word, /** @type {() => void} */ run) => {
    const closeAndRun = () => {
      close();
      run();
    };
    return button('appca-option', {}, closeAndRun, word);
  };
  /** @template T @param {T[] | undefined} list @param {T} item */
  const flipped = (list, item) =>
    list?.includes(item) ? list.filter((other) => other !== item) : [...(list ?? []), item];
  /** @param {string} word @param {number} value @param {number} most @param {(value: number) => string} said @param {(value: number) => void} run */
  const slider = (word, value, most, said, run) => {
    const text = element('span', 'appca-count', {}, said(value));
    const input = range(word, most, value);
    input.addEventListener('input', () => {
      text.textContent = said(Number(input.value));
    });
    input.addEventListener('change', () => run(Number(input.value)));
    return element('label', 'appca-slider', {}, word, input, text);
  };

  const focusable = () => [
    .../** @type {NodeListOf<HTMLElement>} */ (box.querySelectorAll('button, input')),
  ];
  const fill = () => {
    const { meta, options, colouring } = stage;
    const now = options.filter ?? {};
    const text = saidOf(stage, now);
    chip.hidden = !text;
    chip.replaceChildren(element('span', '', {}, text), ' ×');
    chip.title = `Shown: ${text}. Press to show all`;
    if (box.hidden) return;
    const layouts = Object.entries(meta.layouts);
    const beside = options.beside ?? '';
    const sized = (/** @type {number} */ step) => (step ? Math.round(2 ** (step / 1.6)) : 0);
    const step =
      Array.from({ length: 21 }, (_, i) => i).find((i) => sized(i) >= (now.least ?? 0)) ?? 0;
    const counts = colouring?.kind === 'category' ? classCounts(stage, 0) : []; // also of rows the filter hides
    const classes =
      colouring?.kind === 'category' && colouring.names.length <= 40 ? colouring.names : [];
    const by = colouredBy(meta, stage.colouringName);
    const few = meta.components.length > 0 && meta.components.length <= 60;
    const numbered = (
      /** @type {number[]} */ pressed,
      /** @type {(component: number) => void} */ run,
    ) =>
      meta.components.map(({ number }, i) =>
        toggle(String(number), pressed.includes(i), () => run(i)),
      );
    const groups = [
      layouts.length > 1 &&
        !stage.callbacks.acts &&
        group(
          'Beside',
          toggle('None', !beside, () => does.update({ beside: '' })),
          ...layouts.map(([name, { title }]) =>
            toggle(title, beside === name, () => does.update({ beside: name })),
          ),
        ),
      few &&
        group(
          'Panels with',
          ...numbered(now.components ?? [], (i) =>
            filter({ components: flipped(now.components, i) }),
          ),
        ),
      classes.length > 0 &&
        group(
          capital(colouring?.title ?? 'class'),
          ...classes.flatMap((name, code) => {
            if (!counts[code]) return [];
            const dot = element('i', 'appca-dot');
            dot.style.background = cssOf(stage.palette, code);
            return [
              toggle(element('span', '', {}, dot, name), Boolean(now.classes?.includes(code)), () =>
                filter({ classes: flipped(now.classes, code) }),
              ),
            ];
          }),
        ),
      meta.components.length > 0 &&
        element(
          'div',
          'appca-group',
          {},
          slider(
            'Rows of a panel',
            step,
            20,
            (i) => (i ? `≥ ${grouped(sized(i))}` : 'any'),
            (i) => filter({ least: sized(i) }),
          ),
          slider(
            'Certainty',
            Math.round(100 * (now.certainty ?? 0)),
            99,
            (i) => (i ? `≥ ${i}%` : 'any'),
            (i) => filter({ certainty: i / 100 }),
          ),
        ),
      few &&
        group(
          'Colour by one component or two',
          ...numbered(by, (i) =>
            does.update({ colouring: colouringBy(meta, flipped(by, i).slice(-2)) || before }),
          ),
        ),
      meta.components.length > 0 &&
        group(
          'Show',
          toggle('Ghosts of the selection', Boolean(options.ghosts), () =>
            does.update({ ghosts: !options.ghosts }),
          ),
        ),
      stage.sheets &&
        slider(
          'Images',
          Math.round(4 * Math.log2(options.dense ?? 1)) + 4,
          8,
          (i) => ['fewest', 'fewest', 'fewer', 'fewer', 'usual', 'more', 'more', 'most', 'most'][i],
          (i) => does.update({ dense: 2 ** ((i - 4) / 4) }),
        ),
      element('div', 'appca-options', {}, act('Save picture', does.save)),
    ];
    const held = focusable().indexOf(/** @type {HTMLElement} */ (document.activeElement));
    box.replaceChildren(...groups.filter((part) => part instanceof HTMLElement));
    focusable()[held]?.focus({ preventScroll: true }); // what has the focus is drawn anew as well
  };
  let before = ''; // the colouring to go back to
  actions.changed.push(fill);
  stage.settled.push(() => {
    if (!colouredBy(stage.meta, stage.colouringName).length) before = stage.colouringName;
    fill();
  });
  return { button: opener, chip, box };
}

/** @param {Stage} stage @param {Actions} actions */
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

const LISTED = 120; // panels to go to

/** @param {Stage} stage @param {Actions} actions @param {() => void} tour @param {() => void} search @param {{button: HTMLElement, chip: HTMLElement}} more */
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
  const fit = iconButton('fit', 'All panels (0)', () => actions.home(view()));
  for (const button of [buttons[2], ...zooms, fit]) button.dataset.narrow = 'no'; // has no room on a phone
  const find = iconButton('search', 'Find anything (Ctrl+K)', search);
  find.append(element('kbd', '', {}, 'Ctrl K'));
  const jump = element('select', '', { 'aria-label': 'Go to a panel' });
  const jumper = element('span', 'appca-tool appca-jump', {}, icon('list'), jump);
  jump.addEventListener('change', () => {
    if (jump.value) actions.open(stage.views[0], Number(jump.value));
    else actions.home(stage.views[0]);
  });
  const list = () => {
    if (!stage.root.classList.contains('appca-tight')) return;
    const [{ layout, opened }] = stage.views;
    const panels = layout.kind === 'map' ? [] : fullest(layout.panels).slice(0, LISTED);
    jump.replaceChildren(
      new Option('All panels', ''),
      ...panels.map(
        ({ name, count, index }) => new Option(`${name}  ${grouped(count)}`, `${index}`),
      ),
    );
    jump.selectedIndex = -1; // so that every choice is a change
    if (opened) jump.value = `${opened.panel}`;
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
    fit,
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
