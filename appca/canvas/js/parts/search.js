/** Find a row, a class, a value or a panel, and go there. */

import { rowsWith } from '../scene/hover.js';
import { countOf, setName } from '../scene/names.js';
import { having } from '../scene/other.js';
import { element } from './dom.js';

/** @typedef {import('../stage.js').Stage} Stage @typedef {import('../input/actions.js').Actions} Actions */
/** @typedef {{kind: 'panel' | 'row' | 'class' | 'value', label: string, target: import('../input/fly.js').Target}} Hit */

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

/** @param {Stage} stage @param {string} text @returns {Promise<Hit[]>} the likeliest first */
export async function find(stage, text) {
  const query = text.trim().toLowerCase();
  if (!query) return [];
  const { scene, meta, rows } = stage;
  /** @type {Hit[]} */
  const hits = [];
  const wanted = setOf(query) ?? (/^\{\d+\}$/.test(query) ? [Number(query.slice(1, -1))] : null);
  const shown = stage.views[0]?.layout.name;
  const layouts = wanted
    ? Object.keys(meta.layouts).sort((a, b) => Number(b === shown) - Number(a === shown))
    : [];
  for (const layout of layouts) {
    const at = meta.layouts[layout].panels.findIndex(
      ({ components }) =>
        components.length === wanted?.length &&
        components.every((k, i) => meta.components[k].number === wanted[i]),
    );
    if (at >= 0 && !hits.length)
      hits.push({
        kind: 'panel',
        label: `Panel ${setName(meta, meta.layouts[layout].panels[at].components)}`,
        target: { layout, panel: at },
      });
  }
  for (const layout of layouts) {
    if (!wanted || hits.length || !meta.layouts[layout].other) continue;
    const parts = wanted.map((number) =>
      meta.components.findIndex((component) => component.number === number),
    );
    const among = parts.includes(-1) ? [] : having(await scene.gathered(layout), parts);
    const exact = among.filter(({ components }) => components.length === parts.length);
    for (const { components, count } of (exact.length ? exact : among).slice(0, 5))
      hits.push({
        kind: 'panel',
        label: `Panel ${setName(meta, components)}, ${countOf(meta, count)}`,
        target: { layout, sought: components },
      });
  }
  if (query.startsWith('{')) return hits; // no row is called so
  if (/^(row |#)?\d+$/.test(query)) {
    const row = Number(query.replace(/\D/g, ''));
    if (row < rows.count)
      hits.push({ kind: 'row', label: `${meta.words?.row ?? 'Row'} ${row}`, target: { row } });
  }
  const { colouring } = stage;
  if (colouring?.kind === 'category') {
    colouring.names.forEach((name, code) => {
      if (name.toLowerCase().includes(query) && hits.length < 6)
        hits.push({
          kind: 'class',
          label: `${colouring.title ?? 'Class'} ${name}`,
          target: { code },
        });
    });
  }
  for (const { title, value, row } of await rowsWith(scene, query))
    hits.push({ kind: 'value', label: `${title} ${value}`, target: { row } });
  return hits.slice(0, 8);
}

/** @param {Stage} stage @param {(target: import('../input/fly.js').Target) => void} fly */
export function buildSearch(stage, fly) {
  const input = element('input', '', {
    type: 'search',
    placeholder: 'Find a row, class or {2,5}',
    'aria-label': 'Find a row, class, value or panel',
    role: 'combobox',
    'aria-expanded': 'false',
    'aria-controls': `${stage.id}-found`,
  });
  const list = element('div', 'appca-found', { role: 'listbox', id: `${stage.id}-found` });
  const box = element('div', 'appca-search', {}, input, list);
  box.hidden = true;
  stage.root.append(box);
  /** @type {Hit[]} */
  let hits = [];
  let chosen = 0;
  const close = () => {
    box.hidden = true;
    stage.hit.focus();
  };
  const go = (/** @type {number} */ i) => {
    if (hits[i]) {
      fly(hits[i].target);
      close();
    }
  };
  const fill = () => {
    list.replaceChildren(
      ...hits.map(({ label }, i) => {
        const item = element(
          'div',
          '',
          { role: 'option', id: `${stage.id}-hit-${i}`, 'aria-selected': String(i === chosen) },
          label,
        );
        item.addEventListener('pointerdown', () => go(i));
        return item;
      }),
    );
    input.setAttribute('aria-expanded', String(hits.length > 0));
    input.setAttribute('aria-activedescendant', hits.length ? `${stage.id}-hit-${chosen}` : '');
    if (input.value && !hits.length)
      list.append(element('div', 'appca-count', {}, 'Nothing found'));
  };
  input.addEventListener('input', async () => {
    const asked = input.value;
    await new Promise((done) => {
      setTimeout(done, 60);
    }); // while a hand types on, nothing is sought
    if (asked !== input.value) return;
    const answer = await find(stage, asked);
    if (asked !== input.value) return;
    hits = answer;
    chosen = 0;
    fill();
  });
  input.addEventListener('keydown', async (event) => {
    if (event.key === 'Escape') close();
    else if (event.key === 'Enter') {
      hits = await find(stage, input.value);
      go(Math.min(chosen, hits.length - 1));
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      chosen =
        (chosen + (event.key === 'ArrowDown' ? 1 : -1) + hits.length) % Math.max(1, hits.length);
      fill();
      event.preventDefault();
    }
  });
  input.addEventListener('blur', () =>
    setTimeout(() => {
      box.hidden = true;
    }, 150),
  );
  return {
    open: () => {
      box.hidden = false;
      input.value = '';
      hits = [];
      fill();
      input.focus();
    },
  };
}
