/** What the palette offers for a query: panels, components, classes, selections, rows, columns and actions. */

import { rowsWith } from '../scene/hover.js';
import { capital, componentName, countOf, grouped, setName } from '../scene/names.js';
import { having } from '../scene/other.js';
import { classCounts } from '../parts/legend.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../input/fly.js').Target} Target */
/** @typedef {'panel' | 'component' | 'class' | 'selection' | 'row' | 'column' | 'action'} Kind */
/** @typedef {{kind: Kind, label: string, note?: string, target?: Target, component?: number, code?: number, row?: number, key?: string, run?: () => void}} Hit `run` does what Enter does where it is not to fly to `target`; `key` does it, too */
/** @typedef {{label: string, key?: string, run: () => void}} Act */

/** Names of the groups, in their order. @type {Record<Kind, string>} */
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
export function usersOf({ scene, meta }) {
  const users = new Uint32Array(meta.components.length);
  for (const component of scene.components) if (component < users.length) users[component] += 1;
  return users;
}

/** Panels of a set of components, in the layout that is shown where it has them. @param {Stage} stage @param {number[]} wanted @returns {Promise<Hit[]>} */
async function panels({ meta, scene, views }, wanted) {
  const shown = views[0]?.layout.name;
  const layouts = Object.keys(meta.layouts).sort(
    (a, b) => Number(b === shown) - Number(a === shown),
  );
  for (const layout of layouts) {
    const { panels: all } = meta.layouts[layout];
    const at = all.findIndex(
      ({ components }) =>
        components.length === wanted.length &&
        components.every((k, i) => meta.components[k].number === wanted[i]),
    );
    if (at < 0) continue;
    const { components, count } = all[at];
    const label = `Panel ${setName(meta, components)}`;
    return [{ kind: 'panel', label, note: countOf(meta, count), target: { layout, panel: at } }];
  }
  for (const layout of layouts.filter((name) => meta.layouts[name].other)) {
    const parts = wanted.map((number) => meta.components.findIndex((one) => one.number === number));
    const among = parts.includes(-1) ? [] : having(await scene.gathered(layout), parts);
    const exact = among.filter(({ components }) => components.length === parts.length);
    if (among.length)
      return (exact.length ? exact : among).map(({ components, count }) => ({
        kind: 'panel',
        label: `Panel ${setName(meta, components)}`,
        note: countOf(meta, count),
        target: { layout, sought: components },
      }));
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
  const actions = acts.map((act) => ({ kind: /** @type {const} */ ('action'), ...act }));
  if (text.trim().startsWith('>')) return withText(actions, query);
  const set = setOf(query) ?? (/^\{\d+\}?$/.test(query) ? [parseInt(query.slice(1), 10)] : null);
  const hits = set ? await panels(stage, set) : [];
  if (query.startsWith('{')) return hits; // no row is called so
  if (query.startsWith('#')) return rowsOf(stage, query);
  const users = usersOf(stage);
  /** @type {Hit[]} */
  const components = meta.components.map((_, k) => ({
    kind: 'component',
    label:
      `${meta.components[k].name ? '' : 'Component '}${componentName(meta, k)} ${options.came?.[k] ?? ''}`.trim(),
    note: countOf(meta, users[k]),
    component: k,
    target: { component: k },
  }));
  const counts = colouring?.kind === 'category' ? classCounts(stage, 0) : [];
  /** @type {Hit[]} */
  const classes = (colouring?.kind === 'category' ? colouring.names : [])
    .map((name, code) => ({
      kind: /** @type {const} */ ('class'),
      label: /^\d/.test(name) ? capital(`${colouring?.title ?? 'class'} ${name}`) : name,
      note: countOf(meta, counts[code]),
      code,
      target: { code },
    }))
    .filter(({ code }) => counts[code]);
  const { selections = [], columns = [] } = options.offers ?? {};
  /** @type {Hit[]} */
  const others = [
    ...selections.map(([label, count]) => ({
      kind: /** @type {const} */ ('selection'),
      label,
      note: countOf(meta, count),
      run: () => stage.callbacks.onAct?.('selection', label),
    })),
    ...columns.map(([key, label]) => ({
      kind: /** @type {const} */ ('column'),
      label,
      note: 'colour by it',
      run: () => stage.callbacks.onAct?.('colour', key),
    })),
  ];
  const named = withText([...components, ...classes, ...others, ...actions], query);
  const among = (/** @type {Kind} */ kind) => named.filter((hit) => hit.kind === kind);
  const rows = query ? await rowsOf(stage, query) : [];
  const groups = /** @type {Kind[]} */ (Object.keys(GROUPS));
  return [...hits, ...groups.flatMap((kind) => (kind === 'row' ? rows : among(kind)))];
}
