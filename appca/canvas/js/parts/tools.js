/** Tools in the corner, the menu of views and filters, and the bar that plays a turn. */

import { flipped } from '../input/actions.js';
import { STRIP } from '../layout/view.js';
import { fullest } from '../scene/layouts.js';
import { capital, componentName, grouped } from '../scene/names.js';
import { colouredBy, colouringBy } from '../scene/scene.js';
import { font, widthOf, write, button, element, icon, iconButton, range } from './dom.js';
import { classCounts, dotOf } from './bar.js';

/** Save the picture as PNG, with both canvases and the surrounding text. @param {Stage} stage */
export function savePicture(stage) {
  const made = element('canvas', '');
  [made.width, made.height] = [stage.canvas.width, stage.canvas.height];
  const context = /** @type {CanvasRenderingContext2D} */ (made.getContext('2d'));
  stage.draw(); // a WebGL drawing lasts until the end of this task
  context.drawImage(stage.canvas, 0, 0);
  context.drawImage(stage.over, 0, 0);
  context.scale(stage.dpr, stage.dpr);
  context.textBaseline = 'middle';
  const root = stage.root.getBoundingClientRect();
  const words = ':is(b, .appca-under, .appca-keytitle, .appca-count, .appca-dot)';
  for (const part of stage.root.querySelectorAll(`.appca-bar ${words}`)) {
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

/** Summarize a filter; empty if it keeps all rows. @param {Stage} stage @param {Filter} filter */
function saidOf({ meta, colouring }, { components = [], classes = [], least, certainty }) {
  const names = classes.map((code) => colouring?.names[code] ?? '');
  return [
    components.length ? `with ${components.map((k) => meta.components[k].number).join(', ')}` : '',
    names.length > 3 ? `${names.length} classes` : names.join(', '),
    least ? `≥ ${grouped(least)} rows` : '',
    certainty ? `certain ≥ ${Math.round(100 * certainty)}%` : '',
  ]
    .filter(Boolean)
    .join(' · ');
}

/** @param {string} title @param {...(HTMLElement | string)} children */
const group = (title, ...children) => {
  const look = { role: 'group', 'aria-label': title };
  const options = element('div', 'appca-options', {}, ...children);
  return element('div', 'appca-group', look, element('b', '', {}, title), options);
};

/** @param {string} word @param {number} value @param {number} most @param {(value: number) => string} said @param {(value: number) => void} run */
function slider(word, value, most, said, run) {
  const text = element('span', 'appca-count', {}, said(value));
  const input = range(word, most, value);
  input.addEventListener('input', () => (text.textContent = said(Number(input.value))));
  input.addEventListener('change', () => run(Number(input.value)));
  return element('label', 'appca-slider', {}, word, input, text);
}

const LEAST = Array.from({ length: 21 }, (_, step) => (step ? Math.round(2 ** (step / 1.6)) : 0)); // minimum number of rows in a panel, by slider step
const DENSE = ['fewest', 'fewest', 'fewer', 'fewer', 'usual', 'more', 'more', 'most', 'most'];

/** @param {Stage} stage @param {Actions} actions @param {{update: (options: Options) => void, save: () => void}} does */
export function buildMore(stage, actions, does) {
  const label = 'Views and filters';
  const box = element('div', 'appca-more', { role: 'dialog', 'aria-label': label, hidden: '' });
  stage.root.append(box);
  const chip = button('appca-chip', { hidden: '' }, () => actions.filter({}));
  const show = (/** @type {boolean} */ on) => {
    box.hidden = !on;
    opener.setAttribute('aria-expanded', String(on));
    if (on) fill();
  };
  const opener = iconButton('tune', label, () => show(box.hidden));
  stage.hit.addEventListener('pointerdown', () => show(false));
  const escape = (/** @type {KeyboardEvent} */ { key }) => {
    if (key !== 'Escape') return;
    show(false);
    opener.focus();
  };
  box.addEventListener('keydown', escape);
  opener.addEventListener('keydown', escape);
  const filter = (/** @type {Filter} */ change) =>
    actions.filter({ ...stage.options.filter, ...change });
  /** @param {string | Node} text @param {boolean} on @param {() => void} run */
  const toggle = (text, on, run) => {
    const act = () => {
      run();
      fill();
    };
    return button('appca-option', { 'aria-pressed': String(on) }, act, text);
  };
  const focusable = () => [.../** @type {any} */ (box.querySelectorAll('button, input'))];
  let before = ''; // the colouring to restore
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
    const many = meta.components.length;
    const named = colouring?.kind === 'category' && colouring.names.length <= 40;
    const names = colouring?.names ?? [];
    const counts = named ? classCounts(stage, 0) : []; // includes rows that the filter hides
    const by = colouredBy(meta, stage.colouringName);
    const colour = (/** @type {number[]} */ some) =>
      does.update({ colouring: colouringBy(meta, some) || before });
    /** @param {number[]} pressed @param {(component: number) => void} run */
    const numbered = (pressed, run) =>
      meta.components.map(({ number }, i) =>
        toggle(String(number), pressed.includes(i), () => run(i)),
      );
    const views = layouts.map(([name, { title }]) =>
      toggle(title, beside === name, () => does.update({ beside: name })),
    );
    views.unshift(toggle('None', !beside, () => does.update({ beside: '' })));
    const classes = [...counts.keys()].filter((code) => counts[code] && code < names.length);
    const pressed = classes.map((code) => {
      const word = element('span', '', {}, dotOf(stage, code), names[code]);
      const flip = () => filter({ classes: flipped(now.classes, code) });
      return toggle(word, Boolean(now.classes?.includes(code)), flip);
    });
    const step = LEAST.findIndex((least) => least >= (now.least ?? 0));
    const [sure, dense] = [100 * (now.certainty ?? 0), 4 * Math.log2(options.dense ?? 1)];
    const any = (/** @type {string | number} */ value) => (value ? `≥ ${value}` : 'any');
    const least = (/** @type {number} */ i) => filter({ least: LEAST[i] });
    const certain = (/** @type {number} */ i) => filter({ certainty: i / 100 });
    const limits = [
      slider('Rows of a panel', step, 20, (i) => any(LEAST[i] && grouped(LEAST[i])), least),
      slider('Membership', Math.round(sure), 99, (i) => any(i && `${i}%`), certain),
    ];
    const held = focusable().indexOf(document.activeElement);
    box.replaceChildren();
    if (layouts.length > 1 && !stage.callbacks.acts) box.append(group('Second view', ...views));
    if (many && many <= 60) {
      const flip = (/** @type {number} */ i) => filter({ components: flipped(now.components, i) });
      box.append(group('Panels with', ...numbered(now.components ?? [], flip)));
    }
    if (pressed.length) box.append(group(capital(colouring?.title ?? 'class'), ...pressed));
    if (many) box.append(element('div', 'appca-group', {}, ...limits));
    if (many && many <= 60) {
      const flip = (/** @type {number} */ i) => colour(flipped(by, i).slice(-2));
      box.append(group('Colour by one component or two', ...numbered(by, flip)));
    }
    const ghosts = () => does.update({ ghosts: !options.ghosts });
    const ghostly = toggle('Ghosts of the selection', Boolean(options.ghosts), ghosts);
    if (many) box.append(group('Show', ghostly));
    const crowd = (/** @type {number} */ i) => does.update({ dense: 2 ** ((i - 4) / 4) });
    const word = stage.sheets?.wide === 1 ? 'Images' : 'Names';
    if (stage.sheets) box.append(slider(word, Math.round(dense) + 4, 8, (i) => DENSE[i], crowd));
    const saving = button('appca-option', {}, does.save, 'Save picture');
    saving.addEventListener('click', () => show(false));
    box.append(element('div', 'appca-options', {}, saving));
    focusable()[held]?.focus({ preventScroll: true }); // the focused element was redrawn, so focus its successor
  };
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
  const view = () => stage.views.find(({ opened }) => opened) ?? stage.views[0];
  const run = () => {
    if (!actions.pauseTour() && view().opened && target >= 0) actions.tour(view(), target);
  };
  const word = 'Play the turn (T)';
  const play = button('appca-play', { title: word, 'aria-label': word }, run, icon('play'));
  const lines = [[words], [play, slider]].map((parts) => element('div', '', {}, ...parts));
  const box = element('div', 'appca-tour', { hidden: '' }, ...lines);
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
    if (box.hidden) target = -1;
    else if (!opened?.rects.has(target) || target === opened.panel) target = first ?? -1;
  });
  stage.overlays.push(() => {
    const { opened, rect, layout, shift } = view();
    if (!opened || opened.rects.size < 2) return;
    const { context, theme, meta } = stage;
    context.globalAlpha = shift;
    const y = rect.y + rect.h - STRIP + 9;
    opened.groups.forEach(({ turns, stays, x }, i) => {
      const text = `Turn ${componentName(meta, turns)} into …`;
      const style = font(12.5, 600);
      const right = x + widthOf(context, text, style) + 6;
      const rest = `${meta.components[stays].number} stays`;
      write(context, text, x, y, { style, colour: theme.text });
      const plain = { style: font(12.5), colour: theme.soft };
      const end = opened.groups[i + 1]?.x ?? Infinity;
      if (right + widthOf(context, rest, plain.style) < end) write(context, rest, right, y, plain);
    });
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

const LISTED = 120; // maximum number of panels in the list

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
  for (const button of [buttons[2], ...zooms, fit]) button.dataset.narrow = 'no'; // hidden on a phone, where they do not fit
  const find = iconButton('search', 'Find anything (Ctrl+K)', search);
  find.append(element('kbd', '', {}, 'Ctrl K'));
  const change = () =>
    jump.value ? actions.open(stage.views[0], Number(jump.value)) : actions.home(stage.views[0]);
  const jump = element('select', '', { 'aria-label': 'Go to a panel', change });
  const jumper = element('span', 'appca-tool appca-jump', {}, icon('list'), jump);
  const list = () => {
    if (!stage.root.classList.contains('appca-tight')) return;
    const [{ layout, opened }] = stage.views;
    const panels = layout.kind === 'map' ? [] : fullest(layout.panels).slice(0, LISTED);
    const options = panels.map(
      ({ name, count, index }) => new Option(`${name}  ${grouped(count)}`, `${index}`),
    );
    jump.replaceChildren(new Option('All panels', ''), ...options);
    jump.selectedIndex = -1; // so that every choice fires a change event
    if (opened) jump.value = `${opened.panel}`;
  };
  stage.settled.push(list);
  const gap = () => element('span', 'appca-gap');
  const parts = [...buttons, gap(), ...zooms, fit, gap(), find, jumper, play, more.button];
  const look = { role: 'toolbar', 'aria-label': 'Tools' };
  const bar = element('div', 'appca-tools', look, more.chip, ...parts);
  stage.root.append(bar);
  choose(stage.options.tool ?? 'pan');
  /** Update the tools when the tour begins or ends. @param {boolean} on */
  const touring = (on) => {
    play.replaceChildren(icon(on ? 'pause' : 'play'));
    play.setAttribute('aria-pressed', String(on));
    play.title = on ? 'Stop the tour' : 'Tour of the fullest panels';
    play.setAttribute('aria-label', play.title);
  };
  return { bar, choose, touring };
}
