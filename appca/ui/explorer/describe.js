import { readable } from './dom.js';

/**
 * Pictures in words, for those who hear the page: what a panel shows, and what a point is.
 */

const MOST_NAMED = 3; // classes named in a sentence

/**
 * A panel in words: how many rows, which classes lead, and what the axes are.
 *
 * @param {{title: string, subtitle: string, rows: Int32Array}} panel
 * @param {{x: string, y: string}} names of the axes
 * @param {{kind: string, name: string, names: string[], codes: Uint8Array}} colour
 */
export function describePanel(panel, names, colour) {
  const parts = [`Panel ${panel.title}, ${panel.subtitle}`];
  if (names.x) parts.push(`across ${names.x}${names.y ? `, up ${names.y}` : ''}`);
  const leading = leadingClasses(panel.rows, colour);
  if (leading) parts.push(leading);
  return `${parts.join('; ')}.`;
}

/** Which classes most rows are of: "most are digit 7 (45%), then 1 (20%)". */
export function leadingClasses(rows, colour) {
  if (colour.kind !== 'category' || !rows.length) {
    return colour.name ? `coloured by ${colour.name}` : '';
  }
  const counts = new Map();
  for (const row of rows) counts.set(colour.codes[row], (counts.get(colour.codes[row]) ?? 0) + 1);
  const ranked = [...counts]
    .filter(([code]) => code < colour.names.length)
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, MOST_NAMED)
    .map(([code, count]) => `${colour.names[code]} (${share(count, rows.length)})`);
  if (!ranked.length) return '';
  const [first, ...others] = ranked;
  return `most are ${colour.name} ${first}${others.length ? `, then ${others.join(' and ')}` : ''}`;
}

/** A point in words: its id, the lines of its card, and whether it is selected. */
export function describePoint(id, lines, isSelected) {
  const facts = lines.map(([name, text]) => `${name} ${text}`).join(', ');
  return `${id}${isSelected ? ', selected' : ''}: ${facts}.`;
}

function share(count, total) {
  const percent = (100 * count) / total;
  return percent < 1 ? 'under 1%' : `${readable(Math.round(percent))}%`;
}

/** Name the panels for those who hear them. */
export function namePanels(root, panels, axes, colour) {
  panels.forEach((panel, number) => {
    const names = { x: axes[panel.xKey].title.text, y: axes[panel.yKey].title.text };
    root.children[number].setAttribute('aria-label', describePanel(panel, names, colour));
  });
}
