/** The hover card of the point under the pointer: in the emptiest quadrant, joined by a dotted leader. */

import { pick } from '../input/gestures.js';
import { box, clamp, holds, scaleOf, within } from '../layout/geometry.js';
import { capital, componentName, rowNumber, saidOf, setName, signed } from '../scene/names.js';
import { DOUBTFUL, OUTSIDE } from '../scene/rows.js';
import { drawHeld, occupancyOf, placeOf } from '../text/labels.js';
import { element, paint, quiet, trace } from './dom.js';

/** @typedef {{x: number, y: number, spot: Placed, row: number, said: Label['lines'], cell: number}} CellFound */

const MOST = 240; // maximum number of images in a mean

/** Return the sign cell whose words are at a place. @param {Stage} stage @param {Label[]} labels @param {number} x @param {number} y @returns {CellFound | null} */
function cellAt(stage, labels, x, y) {
  for (const label of labels) {
    const spot = stage.placed.find(({ key }) => key === label.key);
    if (!spot || label.cell === undefined) continue;
    const at = placeOf(label, spot);
    const middle = { x: at.x + at.w / 2, y: at.y + 16 };
    if (holds(at, x, y, 3))
      return { ...middle, spot, row: -1, said: label.lines, cell: label.cell };
  }
  return null;
}

/** Draw the mean of a sign cell's images. @param {Stage} stage @param {CellFound} hit @param {HTMLCanvasElement} picture @param {HTMLElement} lines */
function fillMean({ sheets, scene, dark }, { spot, said, cell }, picture, lines) {
  const { rows, xy } = spot.part.layout;
  const { start, count: all } = spot.panel;
  /** @type {Float32Array | undefined} */ let sum;
  let count = 0;
  for (let i = start; sheets && i < start + all && count < MOST; i += 1) {
    if ((xy[2 * i] > 0 ? 1 : 0) + (xy[2 * i + 1] > 0 ? 2 : 0) !== cell) continue;
    const bytes = sheets.read(scene.tile[rows[i]]);
    if (!bytes) continue;
    const to = (sum ??= new Float32Array(bytes.length));
    bytes.forEach((value, k) => (to[k] += value));
    count += 1;
  }
  picture.hidden = !sum;
  if (sum && sheets) {
    const mean = Uint8ClampedArray.from(sum, (value) => value / count);
    paint(picture, mean, sheets.meta, dark);
  }
  const text = element('p', '', {}, said[1]?.text ?? '');
  const note = quiet(count ? `mean of ${count}` : '');
  lines.replaceChildren(element('b', '', {}, said[0].text), text, note);
}

/** Return descriptions of a row's measures. @type {Record<string, string>} */
const TERMS = {
  Residual: 'error when rebuilt',
  Membership: 'probability of its panel',
  Likelihood: 'log-likelihood in nats',
};
const REST = 80; // ms
const [WIDE, HIGH] = [252, 140];

/** @param {Stage} stage @param {Actions} actions @param {() => Label[]} labels */
export function buildCard(stage, actions, labels) {
  const picture = element('canvas', 'appca-picture');
  const lines = element('div', 'appca-lines');
  const card = element('div', 'appca-card', { hidden: '' }, picture, lines);
  stage.root.append(card);
  /** @type {Found | CellFound | null} */ let shown = null;
  /** @type {Rect | null} */ let place = null;
  let timer = 0;
  const hide = () => {
    if (shown) stage.schedule();
    shown = null;
    card.hidden = true;
  };
  const show = (/** @type {number} */ x, /** @type {number} */ y) => {
    const hit = stage.moving ? null : (pick(stage, x, y) ?? cellAt(stage, labels(), x, y));
    if (!hit) return hide();
    shown = hit;
    if ('said' in hit) fillMean(stage, hit, picture, lines);
    else fill(stage, hit.row, picture, lines);
    place = emptiest(stage, hit, labels());
    card.style.transform = `translate(${Math.round(place.x)}px, ${Math.round(place.y)}px)`;
    card.hidden = false;
    stage.schedule();
    const { scene } = stage;
    const take = (/** @type {typeof scene.near} */ near) => {
      scene.near = near;
      stage.schedule();
    };
    if (scene.has('near')) scene.array('near', 'u4').then(take);
    if (!('said' in hit)) describe(stage, hit.row, lines, () => shown?.row === hit.row);
  };
  actions.rest = (at) => {
    clearTimeout(timer);
    if (shown && (!at || Math.hypot(at[0] - shown.x, at[1] - shown.y) > 10)) hide();
    if (at && !shown) timer = setTimeout(() => show(...at), REST);
  };
  stage.overlays.push(({ context, theme, scene: { near, rows } }) => {
    if (!shown || !place || card.hidden) return;
    const { x, y, row } = shown;
    const px = clamp(x, place.x, place.x + WIDE);
    const py = clamp(y, place.y, place.y + card.offsetHeight);
    trace(context, { colour: theme.primary, width: 1.4, dash: [2, 3] }, () => {
      context.moveTo(x, y);
      context.lineTo(px, py);
    });
    if ('said' in shown) return;
    drawSpread(stage, shown);
    const each = near.length / rows;
    if (each && row !== stage.held)
      drawHeld(stage, { held: row, near: near.subarray(row * each, (row + 1) * each) });
    trace(context, { colour: theme.primary, width: 1.4 }, () => context.arc(x, y, 5.5, 0, 7));
  });
}

/** Draw where the row may be in its panel: an ellipse of two standard deviations. @param {Stage} stage @param {Found} hit */
function drawSpread({ context, theme, meta }, { x, y, spot }) {
  const { kx, ky } = scaleOf(spot);
  const deviations = spot.panel.axes.map((k) => meta.components[k]?.spread ?? 0);
  const [a, b] = deviations.map((spread) => (2 * spread) / meta.score_unit);
  if (!a || !b) return;
  const look = { colour: theme.primary, width: 1.4, fill: `${theme.primary}22` };
  trace(context, look, () => context.ellipse(x, y, a * kx, b * ky, 0, 0, 7));
}

/** Fill in the image, the class, and the row's equation. @param {Stage} stage @param {number} row @param {HTMLCanvasElement} picture @param {HTMLElement} lines */
function fill(stage, row, picture, lines) {
  const { scene, meta, rows, colouring, sheets } = stage;
  const word = meta.words?.row ?? 'row';
  const name = colouring?.kind === 'category' ? colouring.names[rows.codes[row]] : undefined;
  const said = name === undefined ? '' : `${colouring?.title ?? ''} ${name}`;
  const own = scene.components.subarray(row * scene.active, (row + 1) * scene.active);
  const used = [...own].filter((k) => k < meta.components.length);
  const largest = [...used]
    .sort((a, b) => Math.abs(scene.score(row, b)) - Math.abs(scene.score(row, a)))
    .slice(0, 3)
    .sort((a, b) => a - b); // the same order as in the row's details
  const terms = largest.flatMap((k) => [
    ` + ${signed(scene.score(row, k) * meta.score_unit)} × `.replace('+ −', '− '),
    element('span', 'appca-term', {}, componentName(meta, k)),
  ]);
  const certain = `not certain (${Math.round((100 * scene.doubt[row]) / 255)}%)`;
  const centre = meta.centred === false ? '' : 'centre';
  const more = used.length > 3 ? ` and ${used.length - 3} more` : '';
  const alone = centre ? 'the centre alone' : 'no component';
  const sum = used.length ? [centre, ...terms, more] : [alone];
  const marks = [
    ...(more ? [`in ${setName(meta, used)}`] : []),
    ...(rows.flags[row] & DOUBTFUL ? [certain] : []),
    ...(rows.flags[row] & OUTSIDE ? ['marked'] : []),
  ];
  lines.replaceChildren(
    element('b', '', {}, `${capital(word)} ${rowNumber(meta, row)}`),
    element('span', 'appca-count', {}, ` ${said}`),
    ...(meta.components.length ? [element('p', '', {}, ...sum)] : []),
    quiet(marks.join(' · ')),
  );
  const bytes = sheets?.read(scene.tile[row]);
  picture.hidden = !bytes;
  if (bytes && sheets) paint(picture, bytes, sheets.meta, stage.dark);
}

/** Fill in the row's id and lines once they are loaded. @param {Stage} stage @param {number} row @param {HTMLElement} lines @param {() => boolean} still */
async function describe(stage, row, lines, still) {
  const { id, lines: said } = await saidOf(stage, row);
  if (!still()) return;
  if (id && lines.firstChild) lines.firstChild.textContent = id;
  const others = said.filter(({ title }) => title !== stage.colouring?.title).slice(0, 3);
  const share = (/** @type {string} */ value) => `${Math.round(100 * Number(value))}%`;
  const told = others.map(({ title, value }) =>
    `${TERMS[title] ?? title} ${title === 'Membership' ? share(value) : value}`.trim(),
  );
  lines.append(quiet(told.join(' · ')));
}

/** Return the place around a point that covers the least points and text. @param {Stage} stage @param {{x: number, y: number, spot: Placed}} found @param {Label[]} labels @returns {Rect} */
function emptiest(stage, { x, y, spot }, labels) {
  const room = occupancyOf(stage);
  const bounds = spot.open ? spot.plot : spot.view.rect;
  for (const label of labels) if (label.key === spot.key) room.cover(placeOf(label, spot, 30));
  let best = box(clamp(x + 24, 6, stage.width - WIDE - 6), Math.max(6, y - HIGH - 24), WIDE, HIGH);
  let least = Infinity;
  for (const far of [56, 100, 160, 240, 340])
    for (const left of [x + far, x - far - WIDE])
      for (const top of [y - far * 0.6 - HIGH, y + far * 0.6, y - HIGH / 2]) {
        const at = box(left, top, WIDE, HIGH);
        const cost = within(at, bounds, 6) ? room.under(at) + far / 30 : Infinity;
        if (cost < least) [best, least] = [at, cost];
      }
  return best;
}
