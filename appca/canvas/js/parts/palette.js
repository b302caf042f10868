/** The command palette: results for a query, and their display. */

import { box } from '../layout/geometry.js';
import { having } from '../scene/layouts.js';
import { capital, componentName, countOf, rowNumber, rowsWith, setName } from '../scene/names.js';
import { cssOf } from '../theme.js';
import { classCounts, dotOf } from './bar.js';
import { button, element, icon, paint, quiet } from './dom.js';

/** Groups in display order: name, action of Enter, icon. @type {Record<HitKind, [string, string, 'search' | 'play' | 'bookmark' | 'tune']>} */
const GROUPS = {
  panel: ['Panels', 'Open it', 'search'],
  component: ['Components', 'Show its row and column', 'search'],
  class: ['Classes', 'Select them', 'search'],
  selection: ['Selections', 'Select them', 'bookmark'],
  row: ['Rows', 'Go there', 'search'],
  column: ['Columns', 'Colour by it', 'tune'],
  action: ['Actions', 'Do it', 'play'],
};

/** Parse "2,5", "{5 2}" or "2 and 5" as component numbers, ascending. @param {string} query @returns {number[] | null} */
export function setOf(query) {
  const parts = query
    .replace(/[{}]/g, '')
    .split(/\s*(?:,|;|\s|and|\+)\s*/)
    .filter(Boolean);
  return parts.length > 1 && parts.every((part) => /^\d+$/.test(part))
    ? parts.map(Number).sort((a, b) => a - b)
    : null;
}

/** Return panels of a set of components, in the current layout if it has them. @param {Stage} stage @param {number[]} wanted @returns {Promise<Hit[]>} */
async function panels({ meta, scene, views }, wanted) {
  const shown = views[0]?.layout.name;
  const layouts = Object.keys(meta.layouts).sort((a, b) => +(b === shown) - +(a === shown));
  const parts = wanted
    .map((number) => meta.components.findIndex((part) => part.number === number))
    .sort((a, b) => a - b);
  /** @param {{components: number[], count: number}} panel @param {Target} target @returns {Hit} */
  const hit = ({ components, count }, target) => {
    const label = `Panel ${setName(meta, components)}`;
    return { kind: 'panel', label, note: countOf(meta, count), target };
  };
  for (const layout of layouts) {
    const all = meta.layouts[layout].panels;
    const panel = all.findIndex(({ components }) => `${components}` === `${parts}`);
    if (panel >= 0) return [hit(all[panel], { layout, panel })];
  }
  for (const layout of layouts) {
    if (!meta.layouts[layout].other || parts.includes(-1)) continue;
    const among = having(await scene.gathered(layout), parts);
    const exact = among.filter(({ components }) => components.length === parts.length);
    const found = exact.length ? exact : among;
    if (found.length) return found.map((one) => hit(one, { layout, sought: one.components }));
  }
  return [];
}

/** @param {Stage} stage @param {string} query @returns {Promise<Hit[]>} */
async function rowsOf({ meta, rows, scene, colouring }, query) {
  const word = capital(meta.words?.row ?? 'row');
  const names = colouring?.kind === 'category' ? colouring.names : [];
  /** @param {number} row @param {string} [said] @returns {Hit} */
  const hit = (row, said = '') => {
    const label = `${word} ${rowNumber(meta, row)}${said}`;
    return { kind: 'row', label, note: names[rows.codes[row]] || '', row, target: { row } };
  };
  const called =
    ['#', 'row ', `${word.toLowerCase()} `].find((name) => query.startsWith(name)) ?? '';
  const number = /^\d[\d,]*$/.exec(query.slice(called.length))?.[0].replaceAll(',', '');
  const row = number ? Number(number) - (meta.words?.first ?? 0) : -1;
  const values = called === '#' ? [] : await rowsWith(scene, query, colouring?.title);
  const isId = values.some(({ title, value }) => title === 'Id' && value === query); // not a place
  const hits = row >= 0 && row < rows.count && !isId ? [hit(row)] : [];
  for (const { title, value, row } of values)
    if (!hits.some((other) => other.row === row)) hits.push(hit(row, `, ${title} ${value}`));
  return hits;
}

/** Return the items that contain a text; those that begin with it come first. @template {{label: string}} T @param {T[]} all @param {string} query @returns {T[]} */
function withText(all, query) {
  const rank = (/** @type {T} */ { label }) => {
    const at = label.toLowerCase().indexOf(query);
    return at > 0 && /\w/.test(label[at - 1]) ? 2 : Math.min(at, 1); // -1 if the label does not contain it
  };
  return all.filter((item) => rank(item) >= 0).sort((a, b) => rank(a) - rank(b));
}

/** @param {Stage} stage @param {string} text begins with ">" to find only actions, "#" for rows, "{" for panels @param {Act[]} acts @returns {Promise<Hit[]>} of all groups, in their order */
export async function find(stage, text, acts) {
  const { meta, colouring, options, scene, callbacks } = stage;
  const query = text.trim().toLowerCase().replace(/^>\s*/, '');
  /** @param {HitKind} kind @param {Omit<Hit, 'kind'>[]} all @returns {Hit[]} */
  const matching = (kind, all) => withText(all, query).map((hit) => ({ kind, ...hit }));
  if (text.trim().startsWith('>')) return matching('action', acts);
  const set = setOf(query) ?? (/^\{\d+\}?$/.test(query) ? [parseInt(query.slice(1), 10)] : null);
  const hits = set ? await panels(stage, set) : [];
  if (query.startsWith('{')) return hits; // ids of rows do not begin with {
  if (query.startsWith('#')) return rowsOf(stage, query);
  const { names = [], kind, title = 'class' } = colouring ?? {};
  const counts = kind === 'category' ? classCounts(stage, 0) : [];
  const { selections = [] } = options;
  const users = new Uint32Array(meta.components.length); // rows that use each component
  for (const component of scene.components) if (component < users.length) users[component] += 1;
  const components = meta.components.map(({ name }, k) => {
    const called = `${name ? '' : 'Component '}${componentName(meta, k)}`;
    const label = `${called} ${options.came?.[k] ?? ''}`.trim();
    return { label, note: countOf(meta, users[k]), component: k, target: { component: k } };
  });
  const classes = names.flatMap((name, code) => {
    const label = /^\d/.test(name) ? capital(`${title} ${name}`) : name;
    const hit = { label, note: countOf(meta, counts[code]), code, target: { code } };
    return counts[code] ? [hit] : [];
  });
  const named = selections.map(([label, count]) => {
    const run = () => callbacks.onAct?.('named', label);
    return { label, note: countOf(meta, count), run };
  });
  const colours = (callbacks.colours?.() ?? []).map(([key, label]) => {
    const run = () => callbacks.onAct?.('colour', key);
    return { label, note: 'colour by it', run };
  });
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
    ['Leave out selection or class', 'Del'],
    ['Turn an axis', 'X', 'Y'],
    ['Turn to the next', 'T'],
    ['Next nearest row', '←', '→'],
    ['Go there', 'Enter'],
    ['Select all nearest', 'N'],
    ['Remove the focus', 'Esc'],
  ],
};

/** @param {...string} keys */
const caps = (...keys) =>
  element('span', 'appca-keys', {}, ...keys.map((key) => element('kbd', '', {}, key)));

/** Close a dialog and focus the picture; otherwise the focus would remain in the dialog for a moment. @param {Stage} stage @param {HTMLDialogElement} made */
function shut(stage, made) {
  made.close();
  stage.hit.focus({ preventScroll: true });
}

/** Create a dialog that closes by Escape, its button, or a click outside. @param {Stage} stage @param {string} name @param {string} label @param {Node[]} title @param {...Node} children */
function dialog(stage, name, label, title, ...children) {
  const shuts = () => shut(stage, made);
  const close = button('', { 'aria-label': 'Close' }, shuts, caps('Esc'));
  const head = element('header', '', {}, ...title, close);
  const hears = {
    click: (/** @type {Event} */ { target }) => target === made && shuts(),
    wheel: (/** @type {Event} */ event) => event.stopPropagation(),
    keydown: (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation(); // hides keys from the page
      if (event.key === 'Escape') shuts();
    },
  };
  const look = { 'aria-label': label, ...hears };
  const made = element('dialog', `appca-dialog ${name}`, look, head, ...children);
  stage.root.append(made);
  return made;
}

/** Show all keys on one card. @param {Stage} stage */
export function buildKeys(stage) {
  const columns = Object.entries(KEYS).map(([title, lines]) => {
    const texts = lines.map(([word, ...keys]) => element('p', '', {}, word, caps(...keys)));
    return element('section', '', {}, element('h3', '', {}, title), ...texts);
  });
  const title = element('b', '', {}, 'Keys');
  const card = dialog(stage, 'appca-keycard', 'Keys', [title], element('div', '', {}, ...columns));
  return () => card.showModal();
}

const ENDS = 5; // rows at an end of a component

/** Return the picture of a hit: a component, an image of a row with the colour of its class, or an icon. @param {Stage} stage @param {Hit} hit @param {number} side px */
function pictureOf(stage, hit, side) {
  const { pictures, rows, sheets, scene, palette, dark } = stage;
  const { component, code, kind } = hit;
  const canvas = element('canvas', 'appca-hitpicture', { 'aria-hidden': 'true' });
  canvas.width = canvas.height = 2 * side;
  if (component !== undefined && pictures.sheet) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
    pictures.draw(component, box(0, 0, 2 * side, 2 * side), context);
    return canvas;
  }
  const row = hit.row ?? (code === undefined ? -1 : rows.codes.indexOf(code));
  const colour = code === undefined ? '' : cssOf(palette, code);
  if (row < 0 || sheets?.wide !== 1) {
    const mark = code === undefined ? icon(GROUPS[kind][2]) : dotOf(stage, code);
    return element('span', 'appca-hitpicture', {}, mark);
  }
  const bytes = sheets.read(scene.tile[row]);
  if (bytes) paint(canvas, bytes, sheets.meta, dark);
  else sheets.ask([scene.tile[row]]);
  if (colour) canvas.style.borderColor = colour;
  return canvas;
}

/** @param {Stage} stage @param {number} component */
const rowsUsing = ({ rows, scene }, component) =>
  [...rows.codes.keys()].filter((row) => scene.score(row, component));

/** Show the selected hit enlarged beside the list; a component has the rows at its ends. @param {Stage} stage @param {Hit} hit */
function preview(stage, { component, ...hit }) {
  const { scene, sheets } = stage;
  const large = pictureOf(stage, { ...hit, component }, 132);
  const parts = [large, element('b', '', {}, hit.label), quiet(hit.note ?? '')];
  const enter = element('p', '', {}, GROUPS[hit.kind][1], caps('Enter'));
  if (component === undefined) return [...parts, enter];
  const users = sheets ? rowsUsing(stage, component) : [];
  users.sort((a, b) => scene.score(b, component) - scene.score(a, component));
  const ends = { Highest: users.slice(0, ENDS), Lowest: users.slice(-ENDS).reverse() };
  for (const [word, few] of Object.entries(sheets ? ends : {})) {
    const pictures = few.map((row) => pictureOf(stage, { ...hit, row }, 38));
    parts.push(quiet(word), element('div', 'appca-ends', {}, ...pictures));
  }
  return [...parts, enter, element('p', '', {}, 'Select its rows', caps('Ctrl', 'Enter'))];
}

const SHOWN = 3; // results per group if all groups are shown
const LISTED = 50; // results if a single group is shown
const REST = 60; // ms without typing before a search
const RECENT = 6;

/** Mark the query in a text. @param {string} text @param {string} query */
function marked(text, query) {
  const at = query ? text.toLowerCase().indexOf(query.toLowerCase()) : -1;
  if (at < 0) return [text];
  const end = at + query.length;
  return [text.slice(0, at), element('mark', '', {}, text.slice(at, end)), text.slice(end)];
}

/** @param {Stage} stage @param {Actions} actions @param {(target: Target) => void} fly @param {() => Act[]} acts available actions */
export function buildPalette(stage, actions, fly, acts) {
  const id = `${stage.id}-found`;
  const label = 'Find a component, class, selection, row, column or action';
  const look = { type: 'text', placeholder: 'Find anything', 'aria-label': label };
  const kind = { role: 'combobox', 'aria-expanded': true, 'aria-controls': id };
  const plain = { autocomplete: 'off', spellcheck: false };
  const input = element('input', '', { ...look, ...kind, ...plain });
  const chips = element('nav', '', { 'aria-label': 'Groups' });
  const list = element('div', 'appca-found', { role: 'listbox', id, 'aria-label': 'Results' });
  const aside = element('aside', '');
  const keys = { '↑↓': 'move', Tab: 'next group', '>': 'actions', '#': 'a row', '{': 'a panel' };
  const words = Object.entries(keys).flatMap(([key, does]) => [caps(key), does]);
  const foot = element('footer', '', {}, ...words);
  const columns = element('div', 'appca-columns', {}, list, aside);
  const title = [icon('search'), input];
  const made = dialog(stage, 'appca-palette', 'Find anything', title, chips, columns, foot);
  let [group, sought] = ['', '']; // the single group shown, if any; the query of the hits
  let chosen = 0;
  /** @type {number[]} */ let starts = []; // places of the first hits of groups
  /** @type {Hit[]} */ let hits = [];
  /** @type {Hit[]} */ let shown = [];
  /** @type {Hit[]} */ let recent = [];
  const go = (/** @type {Hit | undefined} */ hit, rows = false) => {
    if (!hit) return;
    recent = [hit, ...recent.filter(({ label }) => label !== hit.label)].slice(0, RECENT);
    shut(stage, made);
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
    const key = hit.key ? [caps(hit.key)] : [];
    const hears = { click: () => go(hit), pointermove: () => chosen === i || point(i) };
    const look = { role: 'option', id: `${id}-${i}`, ...hears };
    return element('div', '', look, pictureOf(stage, hit, 34), words, note, ...key);
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
    chips.replaceChildren(chip('', 'All'), ...kinds.map((kind) => chip(kind, GROUPS[kind][0])));
    [shown, starts] = [[], []];
    list.replaceChildren(hits.length ? '' : quiet('Nothing found'));
    if (!input.value && !group && recent.length) list.append(section('Recent', recent));
    for (const kind of kinds.filter((one) => !group || one === group)) {
      const some = hits.filter((hit) => hit.kind === kind);
      list.append(section(GROUPS[kind][0], some.slice(0, group ? LISTED : SHOWN)));
    }
    point(at);
  };
  const seek = async () => {
    const asked = input.value;
    const answer = await find(stage, asked, acts());
    if (asked !== input.value) return;
    [hits, sought] = [answer, asked];
    fill();
  };
  let typing = 0;
  input.addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(() => input.value !== sought && seek(), REST);
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
    if (made.open) fill(chosen); // pictures of rows may have arrived
  });
  return () => {
    if (made.open) return;
    input.value = sought = group = '';
    made.showModal();
    input.focus();
    seek();
  };
}
