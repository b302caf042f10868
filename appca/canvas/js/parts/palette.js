/** The palette: what it offers for a query, and how it is shown. */

import { having } from '../scene/layouts.js';
import { capital, componentName, countOf, grouped, rowsWith, setName } from '../scene/names.js';
import { cssOf } from '../theme.js';
import { classCounts } from './bar.js';
import { button, element, icon, paint, quiet } from './dom.js';

/** Names of the groups, in their order. @type {Record<HitKind, string>} */
export const GROUPS = {
  panel: 'Panels',
  component: 'Components',
  class: 'Classes',
  selection: 'Selections',
  row: 'Rows',
  column: 'Columns',
  action: 'Actions',
};

/** "2,5", "{5 2}" or "2 and 5" as numbers of components, ascending. @param {string} query @returns {number[] | null} */
export function setOf(query) {
  const parts = query
    .replace(/[{}]/g, '')
    .split(/\s*(?:,|;|\s|and|\+)\s*/)
    .filter(Boolean);
  return parts.length > 1 && parts.every((part) => /^\d+$/.test(part))
    ? parts.map(Number).sort((a, b) => a - b)
    : null;
}

/** Rows that use each component. @param {Stage} stage */
function usersOf({ scene, meta }) {
  const users = new Uint32Array(meta.components.length);
  for (const component of scene.components) if (component < users.length) users[component] += 1;
  return users;
}

/** Panels of a set of components, in the layout that is shown where it has them. @param {Stage} stage @param {number[]} wanted @returns {Promise<Hit[]>} */
async function panels({ meta, scene, views }, wanted) {
  const shown = views[0]?.layout.name;
  const layouts = Object.keys(meta.layouts).sort((a, b) => +(b === shown) - +(a === shown));
  const parts = wanted
    .map((number) => meta.components.findIndex((part) => part.number === number))
    .sort((a, b) => a - b);
  const hit = (
    /** @type {{components: number[], count: number}} */ panel,
    /** @type {Target} */ target,
  ) =>
    /** @type {Hit} */ ({
      kind: 'panel',
      label: `Panel ${setName(meta, panel.components)}`,
      note: countOf(meta, panel.count),
      target,
    });
  for (const layout of layouts) {
    const all = meta.layouts[layout].panels;
    const panel = all.findIndex(({ components }) => `${components}` === `${parts}`);
    if (panel >= 0) return [hit(all[panel], { layout, panel })];
  }
  for (const layout of layouts.filter((name) => meta.layouts[name].other && !parts.includes(-1))) {
    const among = having(await scene.gathered(layout), parts);
    const exact = among.filter(({ components }) => components.length === parts.length);
    if (among.length)
      return (exact.length ? exact : among).map((panel) =>
        hit(panel, { layout, sought: panel.components }),
      );
  }
  return [];
}

/** @param {Stage} stage @param {string} query @returns {Promise<Hit[]>} */
async function rowsOf(stage, query) {
  const { meta, rows, scene, colouring } = stage;
  const word = capital(meta.words?.row ?? 'row');
  const name = (/** @type {number} */ row) => `${word} ${grouped(row)}`;
  const says = (/** @type {number} */ row) =>
    (colouring?.kind === 'category' && colouring.names[rows.codes[row]]) || '';
  /** @param {number} row @param {string} label @returns {Hit} */
  const hit = (row, label) => ({ kind: 'row', label, note: says(row), row, target: { row } });
  const called =
    ['#', 'row ', `${word.toLowerCase()} `].find((name) => query.startsWith(name)) ?? '';
  const number = /^\d[\d,]*$/.exec(query.slice(called.length))?.[0].replaceAll(',', '');
  const hits =
    number && Number(number) < rows.count ? [hit(Number(number), name(Number(number)))] : [];
  const values = query.startsWith('#') ? [] : await rowsWith(scene, query, colouring?.title);
  for (const { title, value, row } of values)
    if (!hits.some((other) => other.row === row))
      hits.push(hit(row, `${name(row)}, ${title} ${value}`));
  return hits;
}

/** What holds a text, what begins with it first. @template {{label: string}} T @param {T[]} all @param {string} query @returns {T[]} */
function withText(all, query) {
  const places = all.map((item) => ({ item, at: item.label.toLowerCase().indexOf(query) }));
  const rank = (/** @type {{item: T, at: number}} */ { item, at }) =>
    at && /\w/.test(item.label[at - 1]) ? 2 : Math.min(at, 1);
  return places
    .filter(({ at }) => at >= 0)
    .sort((a, b) => rank(a) - rank(b))
    .map(({ item }) => item);
}

/** @param {Stage} stage @param {string} text ">" before it asks for actions alone, "#" for rows, "{" for panels @param {Act[]} acts @returns {Promise<Hit[]>} of all groups, in their order */
export async function find(stage, text, acts) {
  const { meta, colouring, options } = stage;
  const query = text.trim().toLowerCase().replace(/^>\s*/, '');
  /** @param {HitKind} kind @param {Omit<Hit, 'kind'>[]} all @returns {Hit[]} */
  const matching = (kind, all) => withText(all, query).map((hit) => ({ kind, ...hit }));
  if (text.trim().startsWith('>')) return matching('action', acts);
  const set = setOf(query) ?? (/^\{\d+\}?$/.test(query) ? [parseInt(query.slice(1), 10)] : null);
  const hits = set ? await panels(stage, set) : [];
  if (query.startsWith('{')) return hits; // no row is called so
  if (query.startsWith('#')) return rowsOf(stage, query);
  const { names = [], kind, title = 'class' } = colouring ?? {};
  const counts = kind === 'category' ? classCounts(stage, 0) : [];
  const { selections = [] } = options;
  const users = usersOf(stage);
  const components = meta.components.map(({ name }, k) => ({
    label: `${name ? '' : 'Component '}${componentName(meta, k)} ${options.came?.[k] ?? ''}`.trim(),
    note: countOf(meta, users[k]),
    component: k,
    target: { component: k },
  }));
  const classes = names
    .map((name, code) => ({
      label: /^\d/.test(name) ? capital(`${title} ${name}`) : name,
      note: countOf(meta, counts[code]),
      code,
      target: { code },
    }))
    .filter(({ code }) => counts[code]);
  const named = selections.map(([label, count]) => ({
    label,
    note: countOf(meta, count),
    run: () => stage.callbacks.onAct?.('named', label),
  }));
  const colours = (stage.callbacks.colours?.() ?? []).map(([key, label]) => ({
    label,
    note: 'colour by it',
    run: () => stage.callbacks.onAct?.('colour', key),
  }));
  return [
    ...hits,
    ...matching('component', components),
    ...matching('class', classes),
    ...matching('selection', named),
    ...(query ? await rowsOf(stage, query) : []),
    ...matching('column', colours),
    ...matching('action', acts),
  ];
}

const KEYS = {
  Everywhere: [
    ['Find anything', 'Ctrl', 'K'],
    ['All keys', '?'],
    ['Undo', 'Ctrl', 'Z'],
    ['Redo', 'Ctrl', 'Shift', 'Z'],
    ['Explore to Export', '1', '–', '7'],
  ],
  Picture: [
    ['Move, lasso, box', 'M', 'L', 'B'],
    ['Zoom', '+', '−'],
    ['All panels', '0'],
    ['Next panel', '←', '→'],
    ['Open a panel', 'Enter'],
    ['Back', 'Esc'],
  ],
  'Panel and point': [
    ['Select its rows', 'A'],
    ['Turn an axis', 'X', 'Y'],
    ['Turn to the next', 'T'],
    ['Next nearest row', '←', '→'],
    ['Go there', 'Enter'],
    ['Select all nearest', 'N'],
    ['Let go', 'Esc'],
  ],
};

/** @param {...string} keys */
const caps = (...keys) =>
  element('span', 'appca-keys', {}, ...keys.map((key) => element('kbd', '', {}, key)));

/** Close a dialog, and let the next key be the picture's: the focus would stay inside for a moment. @param {Stage} stage @param {HTMLDialogElement} made */
function shut(stage, made) {
  made.close();
  stage.hit.focus({ preventScroll: true });
}

/** A dialog that Escape, its button and a click beside it close. @param {Stage} stage @param {string} name @param {string} label @param {Node[]} title @param {...Node} children */
function dialog(stage, name, label, title, ...children) {
  const close = button('', { 'aria-label': 'Close' }, () => shut(stage, made), caps('Esc'));
  const head = element('header', '', {}, ...title, close);
  const look = { 'aria-label': label };
  const made = element('dialog', `appca-dialog ${name}`, look, head, ...children);
  made.addEventListener('click', ({ target }) => target === made && shut(stage, made));
  made.addEventListener('wheel', (event) => event.stopPropagation());
  made.addEventListener('keydown', (event) => {
    event.stopPropagation(); // no keys of the page
    if (event.key === 'Escape') shut(stage, made);
  });
  stage.root.append(made);
  return made;
}

/** All keys on one card. @param {Stage} stage */
export function buildKeys(stage) {
  const columns = Object.entries(KEYS).map(([title, lines]) =>
    element(
      'section',
      '',
      {},
      element('h3', '', {}, title),
      ...lines.map(([word, ...keys]) => element('p', '', {}, word, caps(...keys))),
    ),
  );
  const title = element('b', '', {}, 'Keys');
  const card = dialog(stage, 'appca-keycard', 'Keys', [title], element('div', '', {}, ...columns));
  return () => card.showModal();
}

const ENDS = 5; // rows at an end of a component
/** @type {Partial<Record<HitKind, 'play' | 'bookmark' | 'tune'>>} */
const ICONS = { action: 'play', selection: 'bookmark', column: 'tune' };

/** The picture of a hit: a component, an image of a row with the colour of its class, or an icon. @param {Stage} stage @param {Hit} hit @param {number} side px */
function pictureOf(stage, { component, row, code, kind }, side) {
  const canvas = element('canvas', 'appca-hitpicture', { 'aria-hidden': 'true' });
  canvas.width = canvas.height = 2 * side;
  if (component !== undefined && stage.pictures.there) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    stage.pictures.draw(component, { x: 0, y: 0, w: 2 * side, h: 2 * side }, context);
    return canvas;
  }
  const shown = row ?? (code === undefined ? -1 : stage.rows.codes.indexOf(code));
  const { sheets, scene } = stage;
  const bytes = shown >= 0 && sheets ? sheets.read(scene.tile[shown]) : null;
  if (bytes && sheets) {
    paint(canvas, bytes, sheets.meta, stage.dark);
  } else if (sheets && shown >= 0)
    sheets.ask(new Map([[Math.floor(scene.tile[shown] / sheets.meta.per_sheet), 1]]));
  else {
    if (code === undefined)
      return element('span', 'appca-hitpicture', {}, icon(ICONS[kind] ?? 'search'));
    const dot = element('i', 'appca-dot', { style: `background:${cssOf(stage.palette, code)}` });
    return element('span', 'appca-hitpicture', {}, dot);
  }
  if (code !== undefined) canvas.style.borderColor = cssOf(stage.palette, code);
  return canvas;
}

/** What Enter does. @type {Record<HitKind, string>} */
const DOES = {
  component: 'Show its row and column',
  panel: 'Open it',
  class: 'Select them',
  selection: 'Select them',
  row: 'Go there',
  column: 'Colour by it',
  action: 'Do it',
};

/** @param {Stage} stage @param {number} component */
const rowsUsing = ({ rows, scene }, component) =>
  [...rows.codes.keys()].filter((row) => scene.score(row, component));

/** Beside the list: the chosen hit at large, a component with the rows at its ends. @param {Stage} stage @param {Hit} hit */
function preview(stage, { component, ...hit }) {
  const { scene, sheets } = stage;
  const enter = element('p', '', {}, DOES[hit.kind], caps('Enter'));
  const parts = [
    pictureOf(stage, { ...hit, component }, 132),
    element('b', '', {}, hit.label),
    quiet(hit.note ?? ''),
  ];
  if (component === undefined) return [...parts, enter];
  const users = sheets ? rowsUsing(stage, component) : [];
  users.sort((a, b) => scene.score(b, component) - scene.score(a, component));
  const ends = { Highest: users.slice(0, ENDS), Lowest: users.slice(-ENDS).reverse() };
  for (const [word, few] of Object.entries(sheets ? ends : {}))
    parts.push(
      quiet(word),
      element('div', 'appca-ends', {}, ...few.map((row) => pictureOf(stage, { ...hit, row }, 38))),
    );
  return [...parts, enter, element('p', '', {}, 'Select its rows', caps('Ctrl', 'Enter'))];
}

const SHOWN = 3; // results of a group among all groups
const LISTED = 50; // of one group
const REST = 60; // ms: while a hand types on, nothing is sought
const RECENT = 6;

/** A text in which what was typed is marked. @param {string} text @param {string} query */
function marked(text, query) {
  const at = query ? text.toLowerCase().indexOf(query.toLowerCase()) : -1;
  if (at < 0) return [text];
  const end = at + query.length;
  return [text.slice(0, at), element('mark', '', {}, text.slice(at, end)), text.slice(end)];
}

/** @param {Stage} stage @param {Actions} actions @param {(target: Target) => void} fly @param {() => Act[]} acts what can be done */
export function buildPalette(stage, actions, fly, acts) {
  const id = `${stage.id}-found`;
  const input = element('input', '', {
    type: 'text',
    placeholder: 'Find anything',
    'aria-label': 'Find a component, class, selection, row, column or action',
    role: 'combobox',
    'aria-expanded': 'true',
    'aria-controls': id,
    autocomplete: 'off',
    spellcheck: 'false',
  });
  const chips = element('nav', '', { 'aria-label': 'Groups' });
  const list = element('div', 'appca-found', { role: 'listbox', id, 'aria-label': 'Results' });
  const aside = element('aside', '');
  const keys = [
    ['↑↓', 'move'],
    ['Tab', 'next group'],
    ['>', 'actions'],
    ['#', 'a row'],
    ['{', 'a panel'],
  ];
  const foot = element('footer', '', {}, ...keys.flatMap(([key, does]) => [caps(key), does]));
  const columns = element('div', 'appca-columns', {}, list, aside);
  const title = [icon('search'), input];
  const box = dialog(stage, 'appca-palette', 'Find anything', title, chips, columns, foot);
  let [group, sought] = ['', '']; // the only group that is shown; the query that the hits answer
  let chosen = 0;
  /** @type {number[]} */ let starts = []; // places of the first hits of groups
  /** @type {Hit[]} */ let hits = [];
  /** @type {Hit[]} */ let shown = [];
  /** @type {Hit[]} */ let recent = [];
  const go = (/** @type {Hit | undefined} */ hit, rows = false) => {
    if (!hit) return;
    recent = [hit, ...recent.filter(({ label }) => label !== hit.label)].slice(0, RECENT);
    shut(stage, box);
    if (rows && hit.component !== undefined) actions.select(rowsUsing(stage, hit.component));
    else if (hit.run) hit.run();
    else if (hit.target) fly(hit.target);
  };
  const point = (/** @type {number} */ i) => {
    chosen = i;
    list.querySelectorAll('[role=option]').forEach((item, at) => {
      item.setAttribute('aria-selected', String(at === i));
      if (at === i) item.scrollIntoView({ block: 'nearest' });
    });
    input.setAttribute('aria-activedescendant', shown.length ? `${id}-${i}` : '');
    aside.replaceChildren(...(shown[i] ? preview(stage, shown[i]) : []));
  };
  const option = (/** @type {Hit} */ hit, /** @type {number} */ i) => {
    const typed = input.value.trim().replace(/^[>#]\s*/, '');
    const words = element('span', 'appca-words', {}, ...marked(hit.label, typed));
    const note = element('span', 'appca-count', {}, hit.note ?? '');
    const item = element(
      'div',
      '',
      { role: 'option', id: `${id}-${i}` },
      pictureOf(stage, hit, 34),
      words,
      note,
    );
    if (hit.key) item.append(caps(hit.key));
    item.addEventListener('click', () => go(hit));
    item.addEventListener('pointermove', () => {
      if (chosen !== i) point(i);
    });
    return item;
  };
  const chip = (/** @type {string} */ kind, /** @type {string} */ word) => {
    const count = hits.filter((hit) => !kind || hit.kind === kind).length;
    const look = { tabindex: '-1', 'aria-pressed': String(group === kind) };
    const choose = () => {
      group = kind;
      fill();
      input.focus();
    };
    return button('appca-option', look, choose, `${word} ${count}`);
  };
  const section = (/** @type {string} */ title, /** @type {Hit[]} */ some) => {
    starts.push(shown.length);
    const heading = element('h3', '', { 'aria-hidden': 'true' }, title);
    const options = some.map((hit) => option(hit, shown.push(hit) - 1));
    return element('div', '', { role: 'group', 'aria-label': title }, heading, ...options);
  };
  const fill = (at = 0) => {
    const kinds = [...new Set(hits.map(({ kind }) => kind))];
    if (!kinds.some((kind) => kind === group)) group = '';
    chips.replaceChildren(chip('', 'All'), ...kinds.map((kind) => chip(kind, GROUPS[kind])));
    [shown, starts] = [[], []];
    const some = (/** @type {string} */ kind) =>
      hits.filter((hit) => hit.kind === kind).slice(0, group ? LISTED : SHOWN);
    list.replaceChildren(
      ...(!input.value && !group && recent.length ? [section('Recent', recent)] : []),
      ...kinds
        .filter((kind) => !group || kind === group)
        .map((kind) => section(GROUPS[kind], some(kind))),
    );
    if (!hits.length) list.append(element('p', 'appca-count', {}, 'Nothing found'));
    point(at);
  };
  const seek = async () => {
    const asked = input.value;
    const answer = await find(stage, asked, acts());
    if (asked !== input.value) return;
    [hits, sought] = [answer, asked];
    fill();
  };
  input.addEventListener('input', async () => {
    const asked = input.value;
    await new Promise((done) => {
      setTimeout(done, REST);
    });
    if (asked === input.value && asked !== sought) seek();
  });
  const nextGroup = (/** @type {number} */ step) => {
    const now = starts.filter((at) => at <= chosen).length - 1;
    point(starts.at((now + step) % starts.length) ?? 0);
  };
  input.addEventListener('keydown', async (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) point((chosen + step + shown.length) % Math.max(1, shown.length));
    else if (event.key === 'Tab' || event.key === 'Enter') {
      event.preventDefault();
      if (sought !== input.value) await seek();
      if (event.key === 'Tab') nextGroup(event.shiftKey ? -1 : 1);
      else go(shown[chosen], event.ctrlKey || event.metaKey);
    }
    if (step) event.preventDefault();
  });
  stage.settled.push(() => {
    if (box.open) fill(chosen); // pictures of rows may have come
  });
  return () => {
    if (box.open) return;
    input.value = sought = group = '';
    box.showModal();
    input.focus();
    seek();
  };
}
