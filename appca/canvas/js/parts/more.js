/** What is rarely changed: the second view, filters, colours by components, ghosts; and what can be done with the whole picture. */

import { classCounts } from './legend.js';
import { button, element, iconButton, range } from './dom.js';
import { cssOf } from '../theme.js';
import { capital, grouped } from '../scene/names.js';
import { colouredBy, colouringBy } from '../scene/recolour.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../types.js').Filter} Filter */

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

/** @param {Stage} stage @param {import('../input/actions.js').Actions} actions @param {{update: (options: import('../types.js').Options) => void, save: () => void}} does */
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
