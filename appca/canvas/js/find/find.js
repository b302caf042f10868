/** What the palette offers for a query: panels, components, classes, selections, rows, columns and actions. */

import { classCounts } from '../parts/bar.js';
import { having } from '../scene/layouts.js';
import { capital, componentName, countOf, grouped, rowsWith, setName } from '../scene/names.js';

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
  const { selections = [], columns = [] } = options.offers ?? {};
  const show = (/** @type {'selection' | 'colour'} */ kind, /** @type {string} */ name) =>
    stage.callbacks.onAct?.(kind, name);
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
    run: () => show('selection', label),
  }));
  const features = columns.map(([key, label]) => ({
    label,
    note: 'colour by it',
    run: () => show('colour', key),
  }));
  return [
    ...hits,
    ...matching('component', components),
    ...matching('class', classes),
    ...matching('selection', named),
    ...(query ? await rowsOf(stage, query) : []),
    ...matching('column', features),
    ...matching('action', acts),
  ];
}
