/** Title and legend: in the free half of a triangle, else in a bar above the picture, with a back button. */

import { toPage } from '../layout/geometry.js';
import { BOTH } from '../layout/view.js';
import { capital, componentName, countOf, grouped, panelTitle, signed } from '../scene/names.js';
import { codesIn, DOUBTFUL, HIDDEN } from '../scene/rows.js';
import { selectedIn } from '../text/headers.js';
import { font, widthOf, write, button, element, icon, iconButton, range } from './dom.js';
import { cssOf } from '../theme.js';

/** @param {HTMLElement} place shows the name; a field for the new name replaces it @param {string} name @param {number} longest maximum number of letters @param {(text: string) => void} send */
export function typeOver(place, name, longest, send) {
  let over = false;
  const close = (/** @type {boolean} */ kept) => {
    if (over) return;
    over = true;
    field.replaceWith(place);
    place.focus();
    if (kept && field.value.trim() !== name) send(field.value);
  };
  const keydown = (/** @type {KeyboardEvent} */ event) => {
    event.stopPropagation(); // letters are shortcuts of the picture
    if (event.key === 'Enter' || event.key === 'Escape') close(event.key === 'Enter');
  };
  const label = place.getAttribute('aria-label') ?? (place.title || 'name');
  const look = { 'aria-label': label, maxlength: longest, value: name };
  const field = element('input', 'appca-field', { ...look, blur: () => close(true), keydown });
  place.replaceWith(field);
  field.select();
}

const LONGEST = 60; // maximum number of letters of a class's name
const [BESIDE, GAP] = [24, 6]; // px for a class's dot, gap and padding; px before its count

/** Count the rows of each class, except rows with one of these flags. @param {Stage} stage */
export function classCounts(stage, without = HIDDEN) {
  const { codes, flags } = stage.rows;
  const counts = new Uint32Array(codesIn(codes));
  for (let row = 0; row < codes.length; row += 1)
    if (!(flags[row] & without)) counts[codes[row]] += 1;
  return counts;
}

/** Create the mark of a class, in its colour and shape. @param {Pick<Stage, 'palette' | 'colouring'>} stage @param {number} code */
export const dotOf = ({ palette, colouring }, code) =>
  element('i', 'appca-dot', {
    style: `background:${cssOf(palette, code)}`,
    'data-shape': colouring?.shapes?.[code] ?? 'circle',
  });

/** Format a limit of a scale; integers and large numbers have no decimals. @param {number} value */
const end = (value) =>
  Math.abs(value) < 1000 && value % 1
    ? signed(value, 2)
    : grouped(Math.round(value)).replace('-', '−');

/** Draw a square of two components' colours, with their pictures at their largest scores. @param {Stage} stage @param {Colouring} colouring @param {boolean} small for a bar */
function planeKey(stage, { axes = [0, 0], table }, small) {
  const [key, side, left] = small ? [34, 26, 0] : [84, 26, 53];
  const [wide, high] = small ? [key + 132, key] : [left + key + side + 8, key + 18];
  const names = axes.map((axis) => componentName(stage.meta, axis));
  const label = `Colours of components ${names.join(' and ')}`;
  const style = `width:${wide}px;height:${high}px`;
  const size = { width: wide * 2, height: high * 2, style };
  const name = `appca-plane ${small ? 'appca-small' : 'appca-large'}`;
  const canvas = element('canvas', name, { role: 'img', 'aria-label': label, ...size });
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
  context.scale(2, 2);
  const steps = Math.round(Math.sqrt(table.length));
  const step = key / steps;
  table.forEach((colour, code) => {
    context.fillStyle = colour;
    const [x, y] = [left + (code % steps) * step, key - (Math.floor(code / steps) + 1) * step];
    context.fillRect(x, y, step + 0.5, step + 0.5);
  });
  const look = { style: font(11.5), colour: stage.theme.soft };
  axes.forEach((axis, i) => {
    const [x, y] = small ? [key + 8 + 64 * i, 4] : [i ? 0 : left + key + 5, i ? 0 : key - side];
    stage.pictures.draw(axis, { x, y, w: side, h: side }, context);
    const { number } = stage.meta.components[axis];
    if (small) return write(context, `${number} ${'→↑'[i]}`, key + side + 12 + 64 * i, 11, look);
    const right = { ...look, align: /** @type {const} */ ('right') };
    const [low, above] = i ? [key - 13, 1] : [key + 4, key + 4];
    write(context, `−${number}`, i ? left - 5 : left, low, i ? right : look);
    write(context, `+${number}`, i ? left - 5 : left + key, above, right);
  });
  return canvas;
}

/** Fill an element with the legend of the current colouring. @param {Stage} stage @param {HTMLElement} into @param {(label: string, before: string, now: string) => void} rename a class */
function fillLegend(stage, into, rename) {
  const { colouring, palette } = stage;
  into.replaceChildren();
  into.style.cssText = '';
  if (!colouring) return;
  if (colouring.kind === 'quantity') {
    const stops = Array.from({ length: 9 }, (_, i) => cssOf(palette, Math.round((i * 253) / 8)));
    const [low, high] = (colouring.limits ?? [0, 1]).map((value, i) => {
      const text = (colouring.clipped?.[i] ? '≤≥'[i] + ' ' : '') + end(value);
      return element('span', 'appca-count', {}, text);
    });
    const style = `background:linear-gradient(to right, ${stops})`;
    return into.append(low, element('span', 'appca-ramp', { style }), high);
  }
  if (colouring.kind === 'plane')
    return into.append(planeKey(stage, colouring, false), planeKey(stage, colouring, true));
  const counts = classCounts(stage);
  let pinned = -1;
  const alone = (/** @type {number} */ code) => {
    stage.only = code;
    stage.frame = '';
    stage.settleSoon();
  };
  const codes = [...colouring.names.keys()].filter((code) => counts[code]);
  const label = stage.options.selections && /^label:(.*)$/s.exec(stage.colouringName)?.[1];
  for (const code of codes) {
    const name = colouring.names[code];
    const [enter, leave] = [() => alone(code), () => alone(pinned)];
    const click = () => {
      pinned = pinned === code ? -1 : code;
      for (const button of into.querySelectorAll('button'))
        button.setAttribute('aria-pressed', String(pinned >= 0 && button === item));
      alone(pinned);
    };
    const type = () => typeOver(item, name, LONGEST, (text) => rename(label ?? '', name, text));
    const renames = label !== undefined && {
      title: `Show ${name} alone. Double-click or F2 renames it, Del leaves it out.`,
      dblclick: type,
      keydown: (/** @type {KeyboardEvent} */ { key }) => key === 'F2' && type(),
    };
    const look = { type: 'button', 'aria-pressed': false, title: `Show ${name} alone`, ...renames };
    const hand = { pointerenter: enter, focus: enter, pointerleave: leave, blur: leave, click };
    const count = element('span', 'appca-count', {}, grouped(counts[code]));
    const parts = [dotOf(stage, code), element('b', '', {}, name), count];
    const item = element('button', 'appca-class', { ...look, ...hand }, ...parts);
    into.append(item);
  }
  const widest = (/** @type {string[]} */ texts, /** @type {string} */ style) =>
    Math.max(0, ...texts.map((text) => widthOf(stage.context, text, style)));
  const names = codes.map((code) => colouring.names[code]);
  const numbers = codes.map((code) => grouped(counts[code]));
  const name = widest(names, font(13.5, 600)) + BESIDE;
  const count = widest(numbers, font(12.5)) + GAP;
  into.style.setProperty('--name', `${Math.ceil(name)}px`);
  into.style.setProperty('--class', `${Math.ceil(name + count)}px`);
}

const LEVELS = 254; // number of levels of a ramp; the code after the last means missing
const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six'];

/** @param {Meta} meta @param {View[]} views */
function sentences(meta, [view, beside]) {
  const { kind, name: layout } = view.layout;
  const second = beside?.layout.name;
  const { words, n_active: active, components } = meta;
  const row = words?.row ?? 'row';
  const many = words?.rows ?? `${row}s`;
  if (layout === 'slices')
    return [`All ${many} at their places`, 'Horizontal slices, the lowest first.'];
  if (kind === 'map') return [`All ${many} on one map`, `Close ${many} are alike.`];
  const mixed = active === null || active >= components.length;
  const part = active === null ? 'some of' : mixed ? 'all' : `${active} of`;
  const uses = `Each ${row} uses ${part} ${components.length} components`.replace('all 2', 'both');
  const [a, b] = components.map(({ number }) => number);
  const paired = `Panel {${a},${b}} holds the ${many} that use both ${a} and ${b}.`;
  if ((kind === 'triangle' || layout === 'pairs') && (mixed || active > 2)) return [uses, paired];
  const same = mixed ? 'components' : active === 1 ? 'component' : (NUMBERS[active] ?? active);
  const shared = `${capital(many)} with the same ${same} share a panel.`;
  return [uses, second === 'pairs' ? `${shared} Among the pairs, ${paired.toLowerCase()}` : shared];
}

/** Name the strongest components of a panel if a diagonal cannot show them. @param {Meta} meta @param {number[]} components */
function strongest(meta, components) {
  if (meta.component_pictures || meta.components.length < 256) return '';
  const said = components.slice(0, 2).map((index) => {
    const { number, columns = [] } = meta.components[index];
    const names = columns.slice(0, 3).map(([name, w]) => (w < 0 ? '−' : '') + name);
    return `; ${number}: ${names.join(', ')}`;
  });
  return said.join('');
}

/** @param {Stage} stage @param {Actions} actions @param {HTMLElement} tools @param {HTMLElement} more menu beside them @param {(box: Rect) => number} near opacity of a box over data near the pointer @param {(label: string, before: string, now: string) => void} rename a class */
export function buildBar(stage, actions, tools, more, near, rename) {
  const title = element('b', 'appca-title');
  const under = element('span', 'appca-under');
  const heading = element('div', 'appca-heading', {}, title, under);
  const goBack = () => {
    stage.views.forEach((view) => actions.close(view));
    stage.hit.focus({ preventScroll: true }); // the focused button is about to be removed
  };
  const back = button('appca-back', {}, goBack, icon('back'), 'All panels');
  const name = element('b', '');
  const about = element('span', 'appca-count');
  const legend = element('div', 'appca-legend', { role: 'group', 'aria-label': 'Classes' });
  const key = element('span', 'appca-keytitle');
  const rest = button('appca-count appca-rest', {}, () => {
    all = !all;
    arrange();
  });
  const doubt = 'hollow: less than half certain';
  const dot = element('i', 'appca-dot');
  const hollow = element('span', 'appca-count appca-hollow', {}, dot, doubt);
  const gaps = element('span', 'appca-count appca-hollow');
  const parts = [back, name, about, heading, key, legend, rest, gaps, hollow];
  const bar = element('div', 'appca-bar', {}, ...parts);
  stage.root.append(bar);
  let [filled, docked] = ['', ''];
  let [w, h] = [0, 0]; // size of the tools
  let all = false; // whether all classes are listed

  /** Update the bar once the picture is complete. */
  const settle = () => {
    const { rows, colouring } = stage;
    const [view] = stage.views;
    const now = `${rows.codesChanged} ${rows.hidden} ${stage.colouringName} ${colouring?.limits} ${stage.dark}`;
    if (now !== filled) {
      filled = now;
      fillLegend(stage, legend, rename);
      hollow.hidden = !rows.flags.some((flags) => flags & DOUBTFUL);
      const code = colouring?.kind === 'category' ? colouring.names.length : LEVELS;
      const n = colouring?.kind === 'plane' ? 0 : classCounts(stage)[code];
      gaps.hidden = !n;
      const style = `border-color:transparent;background:${cssOf(stage.palette, code)}`;
      gaps.replaceChildren(element('i', 'appca-dot', { style }), `missing ${grouped(n || 0)}`);
    }
    const [first, second] = sentences(stage.meta, stage.views);
    const drawn = stage.meta.layouts[view.layout.name].drawn;
    const sample = drawn
      ? ` Drawn: a fair sample of ${grouped(drawn.rows)} of ${countOf(stage.meta, rows.count)}.`
      : '';
    [title.textContent, under.textContent] = [first, second + sample];
    key.textContent = capital(colouring?.title ?? '');
    const large = stage.views.find(({ opened }) => opened);
    const panel = large?.opened && large.layout.panels[large.opened.panel];
    back.hidden = name.hidden = about.hidden = !panel;
    heading.hidden = Boolean(panel);
    if (panel) {
      const full = Math.max(...large.layout.panels.map(({ count }) => count));
      name.textContent = panelTitle(stage.meta, panel);
      const picked = rows.selected ? selectedIn(stage, { part: large.parts[0], panel }).count : 0;
      about.textContent = `${picked ? `${grouped(picked)} of ` : ''}${countOf(stage.meta, panel.count)}, ${Math.round((100 * panel.count) / rows.count)}%${panel.count === full ? ': the fullest panel' : ''}${strongest(stage.meta, panel.components)}`;
    }
    arrange();
  };
  const arrange = () => {
    const [view] = stage.views;
    const { width } = stage;
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
        : `width:${stage.width}px`; // also across a second view
    const classes = /** @type {HTMLElement[]} */ ([...legend.querySelectorAll('.appca-class')]);
    all &&= classes.length > 0;
    bar.classList.toggle('appca-all', all);
    rest.setAttribute('aria-expanded', String(all));
    rest.textContent = all ? 'fewer' : '';
    for (const item of classes) item.hidden = false;
    if (all) return;
    for (const step of ['appca-slim', 'appca-whole'])
      // if there is no space: without counts, then in lines
      if (block && legend.scrollHeight > legend.clientHeight) bar.classList.add(step);
    for (let i = 0; i < 2; i += 1) {
      // twice, because these words also take space
      const bottom = legend.clientWidth < 40 ? 0 : legend.offsetTop + legend.clientHeight + 1;
      const room = classes.filter((item) => item.offsetTop + item.offsetHeight <= bottom).length;
      const more = classes.length - room;
      if (more) rest.textContent = room ? `and ${more} more` : `${more} classes`;
      if (i) for (const item of classes.slice(room)) item.hidden = true;
    }
  };
  /** Place the tools in the bar, or beside the last picture of the diagonal. */
  const dock = () => {
    const [view] = stage.views;
    const block = bar.classList.contains('appca-block') && !bar.hidden;
    const last = view.arrangement.diagonal.at(-1);
    const right = block && last ? stage.width - toPage(view.cam, view.rect, last.rect).x + 12 : 8;
    const now = `${block} ${right} ${stage.width}`;
    if (now !== docked) {
      docked = now; // reading a size makes the browser lay out the page
      tools.style.cssText = block ? `right:${right}px;bottom:12px` : `right:${right}px;top:3px`;
      tools.classList.toggle('appca-docked', !block);
      [w, h] = [tools.offsetWidth, tools.offsetHeight];
      more.style.cssText = block
        ? `right:${right}px;bottom:${h + 20}px`
        : `right:${Math.max(8, right)}px;top:44px`;
    }
    const place = { x: stage.width - right - w, y: stage.height - 12 - h, w, h };
    const alone = stage.root.classList.contains('appca-quiet') ? '' : 1;
    tools.style.opacity = String(block ? near(place) : alone);
  };
  stage.settled.push(settle);
  stage.hit.addEventListener('pointerdown', () => {
    if (all && !bar.classList.contains('appca-block')) rest.click(); // it covers the picture
  });
  actions.changed.push(() => {
    if (bar.classList.contains('appca-block')) bar.hidden = true;
  });
  const follow = () => {
    if (!stage.views.length) return;
    const [{ atFit, opened }] = stage.views;
    if (bar.classList.contains('appca-block'))
      bar.hidden = !atFit || Boolean(opened || stage.morph);
    dock();
  };
  return { follow };
}

const SPAN = 12; // length of a slider, until a larger number is chosen
const EVERY = 60; // ms until a busy host is asked again

/** Create a field for an integer from 1 to its `max`. @param {string} label @param {(value: number) => void} take */
function buildNumber(label, take) {
  const change = () => {
    const typed = Math.round(field.valueAsNumber) || Number(field.defaultValue) || 1;
    field.defaultValue = field.value; // the field was left after typing
    take(Math.min(Math.max(typed, 1), Number(field.max)));
  };
  const field = element('input', '', { type: 'number', min: 1, 'aria-label': label, change });
  return field;
}

/** Create a slider and a field for a size. @param {string} name @param {string} title @param {(value: number, moving: boolean) => void} take */
function buildSize(name, title, take) {
  /** @type {number[]} */ let values = [];
  const slider = range(title, 1, 0);
  const told = (/** @type {boolean} */ moving) => take(values[Number(slider.value)], moving);
  slider.addEventListener('input', () => told(true));
  slider.addEventListener('change', () => told(false));
  const field = buildNumber(`${title}, typed`, (value) => take(value, false));
  const box = element('span', '', {}, element('span', '', {}, name), slider, field);
  /** @param {number} value @param {number} most @param {number[]} [choices] */
  const show = (value, most, choices) => {
    const span = Math.min(most, Math.max(SPAN, values.length, value));
    values = choices ?? Array.from({ length: span }, (_, i) => i + 1);
    slider.max = String(values.length - 1);
    slider.value = String(values.indexOf(value));
    slider.setAttribute('aria-valuetext', `${name} = ${value}`);
    slider.disabled = field.disabled = values.length < 2;
    const typing = field === document.activeElement && field.value !== field.defaultValue;
    field.max = String(most);
    field.defaultValue = String(value);
    if (!typing) field.value = field.defaultValue;
  };
  return { box, show };
}

/** Create controls of K and L, which keep the user's choice until the host answers the message. @param {(size: Size) => number | void} send returns the message's number @param {() => boolean} busy whether the host cannot follow a slider now */
export function buildSizes(send, busy) {
  /** @type {Sizes} */ let told = { k: 1, l: 1, most_k: 1 };
  const wanted = { k: 1, l: 1 }; // an L that a smaller K reduced is restored with K
  let [number, timer] = [0, 0];
  const limited = () => (typeof told.l === 'number' ? Math.min(wanted.l, wanted.k) : null);
  const now = () => ({ k: wanted.k, l: limited() });
  const draw = () => {
    const { k, l } = now();
    ofK.show(k, told.most_k, told.ks);
    ofL.show(l ?? 1, told.most_k, told.ls);
    ofL.box.hidden = l === null;
    learned.hidden = told.l !== 'learned';
    box.title = told.hint ?? '';
  };
  const tell = (/** @type {boolean} */ moving) => {
    timer = moving && busy() ? setTimeout(tell, EVERY, true) : 0;
    if (!timer) number = send({ ...now(), moving }) ?? 0;
  };
  const take = (/** @type {boolean} */ moving) => {
    draw();
    clearTimeout(timer);
    if (!moving) return tell(false);
    timer = setTimeout(tell, 0, true); // a key's own choice has priority
  };
  const ofK = buildSize('K', 'Components, K', (k, moving) => {
    wanted.k = k;
    take(moving);
  });
  const ofL = buildSize('L', 'Components a row uses, L', (l, moving) => {
    Object.assign(wanted, { l, k: Math.max(l, wanted.k) });
    take(moving);
  });
  const learned = element('span', '', {}, 'L learned');
  const box = element('div', 'appca-sizes', {}, ofK.box, ofL.box, learned);
  /** @param {Sizes} sizes @param {number} [seen] number of the last message that the host has handled */
  const show = (sizes, seen = number) => {
    if (timer || seen < number) return; // the user has changed it again
    told = sizes;
    wanted.k = told.k;
    if (typeof told.l === 'number' && now().l !== told.l) wanted.l = told.l;
    draw();
  };
  return { box, show };
}

const STEPS = /** @type {const} */ ({ undo: 'Undo (Ctrl+Z)', redo: 'Redo (Ctrl+Shift+Z)' });
let bars = 0;

/** The controls of a picture: K and L, colour, undo and redo, view. The user's choice stays until the host answers its message. @param {(kind: 'size' | 'colour' | 'view' | 'beside' | 'undo' | 'redo', value: any) => number | void} send returns the message's number @param {() => boolean} [busy] */
export function buildControls(send, busy = () => false) {
  let [number, listed] = [0, ''];
  const tell = (/** @type {Parameters<typeof send>[0]} */ kind, /** @type {any} */ value) =>
    (number = send(kind, value) ?? 0);
  const sizes = buildSizes((size) => tell('size', size), busy);
  const choose = () => tell('colour', colour.value);
  const colour = element('select', '', { 'aria-label': 'Colour', change: choose });
  const column = buildNumber('Column, typed', (typed) => tell('colour', `feature:${typed - 1}`));
  const steps = /** @type {(keyof typeof STEPS)[]} */ (Object.keys(STEPS)).map((name) =>
    iconButton(name, STEPS[name], () => tell(name, '')),
  );
  const views = element('span', 'appca-views', { role: 'radiogroup', 'aria-label': 'View' });
  const name = `view-${(bars += 1)}`;
  const split = button('appca-split', {}, () => tell('beside', ''), 'Split');
  const count = element('output', 'appca-count');
  const coloured = element('label', 'appca-colour', {}, element('span', '', {}, 'Colour'), colour);
  const parts = [sizes.box, coloured, column, ...steps, views, split, count];
  const box = element('div', 'appca-controls', {}, ...parts);
  /** @param {Controls} controls */
  const list = ({ colours, views: layouts }) => {
    const now = JSON.stringify([colours, layouts]);
    if (now === listed) return; // keeps open menus open
    listed = now;
    const groups = [...new Set(colours.map(([, , group]) => group))].map((label) => {
      const some = colours.filter(([, , group]) => group === label);
      const options = some.map(([key, text]) => new Option(text, key));
      return element('optgroup', '', { label }, ...options);
    });
    colour.replaceChildren(...groups);
    const radios = layouts.map(([value, title]) => {
      const look = { type: 'radio', name, value, change: () => tell('view', value) };
      return element('label', '', {}, element('input', '', look), title);
    });
    views.replaceChildren(...radios);
  };
  /** @param {Controls} controls @param {number} [seen] number of the last message that the host has handled */
  const show = (controls, seen = number) => {
    sizes.box.hidden = !controls.sizes;
    if (controls.sizes) sizes.show(controls.sizes, seen);
    if (seen < number) return;
    list(controls);
    coloured.hidden = !controls.colours.length;
    const { colour: key } = controls;
    if (![...colour.options].some(({ value }) => value === key))
      colour.append(new Option(capital(key.replace(':', ' ').replace(',', ' and ')), key)); // a colouring by two components
    colour.value = key;
    column.hidden = !controls.columns || !controls.colour.startsWith('feature:');
    column.max = String(controls.columns);
    if (!column.hidden)
      column.value = column.defaultValue = String(Number(controls.colour.slice(8)) + 1);
    for (const radio of views.querySelectorAll('input'))
      radio.checked = radio.value === controls.view;
    split.hidden = controls.beside === undefined;
    split.setAttribute('aria-pressed', String(Boolean(controls.beside)));
    steps.forEach((step, i) => {
      step.hidden = !controls.steps;
      step.disabled = !controls.steps?.[i];
    });
  };
  /** Return undo and redo as actions for the palette, if they are possible. @returns {Act[]} */
  const acts = () =>
    steps
      .filter(({ hidden, disabled }) => !hidden && !disabled)
      .map((step) => ({ label: step.title.split(' ')[0], run: () => step.click() }));
  return { box, show, acts, count };
}

/** Create the controls of a picture without a host page, which follow it. @param {() => Handle} handle @param {(size: Size) => void} [resize] @param {() => Sizes | undefined} [sizes] */
export function buildHead(handle, resize = () => {}, sizes = () => undefined) {
  const controls = buildControls((kind, value) => {
    if (kind === 'size') return resize(value);
    if (kind === 'view') return void handle().show(value);
    handle().update({ options: { colouring: value } });
  });
  const follow = () => {
    const { meta, colouringName, views, rows } = handle().stage;
    const layouts = Object.entries(meta.layouts).map(([key, { title }]) => [key, title]);
    if (meta.layouts.pairs) layouts.unshift([BOTH, 'Both']);
    const titles = Object.entries(meta.colourings).map(([key, { title }]) => [key, title || key]);
    const colours = titles.map((one) => [...one, 'Rows']);
    meta.components.forEach(({ number }, k) =>
      colours.push([`component:${number}`, componentName(meta, k), 'Components']),
    );
    const view = views.length > 1 ? BOTH : views[0].layout.name;
    controls.show({ sizes: sizes(), colours, colour: colouringName, views: layouts, view });
    controls.count.textContent = rows.selected ? `${grouped(rows.selected)} selected` : '';
  };
  return { box: controls.box, follow };
}
