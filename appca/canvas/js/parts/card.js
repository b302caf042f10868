/** The card of the point under the resting hand: in the quadrant with the fewest data, on a dotted leader. */

import { pick } from '../input/gestures.js';
import { clamp, holds, within } from '../layout/geometry.js';
import { capital, componentName, grouped, saidOf, setName, signed } from '../scene/names.js';
import { DOUBTFUL, OUTSIDE } from '../scene/rows.js';
import { drawHeld, occupancyOf } from '../text/labels.js';
import { element, paint, quiet } from './dom.js';

/** @typedef {{x: number, y: number, spot: Placed, row: number, said: Label['lines'], cell: number}} CellFound */

const MOST = 240; // images in a mean

/** The sign cell whose words are at a place. @param {Stage} stage @param {Label[]} labels @param {number} x @param {number} y @returns {CellFound | null} */
function cellAt(stage, labels, x, y) {
  for (const { key, u, v, width, lines, cell } of labels) {
    const spot = stage.placed.find((placed) => placed.key === key);
    if (!spot || cell === undefined) continue;
    const [left, top] = [spot.plot.x + u * spot.plot.w, spot.plot.y + v * spot.plot.h];
    if (holds({ x: left, y: top, w: width, h: 32 }, x, y, 3))
      return { x: left + width / 2, y: top + 16, spot, row: -1, said: lines, cell };
  }
  return null;
}

/** @param {Stage} stage @param {CellFound} hit @param {HTMLCanvasElement} picture @param {HTMLElement} lines */
function fillMean({ sheets, scene, dark }, { spot, said, cell }, picture, lines) {
  const { layout } = spot.part;
  const { panel } = spot;
  let sum = new Float32Array(0);
  let count = 0;
  for (let i = panel.start; sheets && i < panel.start + panel.count && count < MOST; i += 1) {
    if ((layout.xy[2 * i] > 0 ? 1 : 0) + (layout.xy[2 * i + 1] > 0 ? 2 : 0) !== cell) continue;
    const bytes = sheets.read(scene.tile[layout.rows[i]]);
    if (!bytes) continue;
    if (!count) sum = new Float32Array(bytes.length);
    bytes.forEach((value, k) => (sum[k] += value));
    count += 1;
  }
  picture.hidden = !count;
  if (count && sheets)
    paint(
      picture,
      Uint8ClampedArray.from(sum, (value) => value / count),
      sheets.meta,
      dark,
    );
  lines.replaceChildren(
    element('b', '', {}, said[0].text),
    element('p', '', {}, said[1]?.text ?? ''),
    quiet(count ? `mean of ${count}` : ''),
  );
}

/** What measures of a row are, in words. @type {Record<string, string>} */
const TERMS = {
  Residual: 'error when rebuilt',
  Membership: 'certainty of its panel',
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
    if (stage.scene.has('near'))
      stage.scene.array('near', 'u4').then((near) => {
        stage.scene.near = near;
        stage.schedule();
      });
    if (!('said' in hit)) describe(stage, hit.row, lines, () => shown?.row === hit.row);
  };
  actions.rest = (at) => {
    clearTimeout(timer);
    if (shown && (!at || Math.hypot(at[0] - shown.x, at[1] - shown.y) > 10)) hide();
    if (at && !shown) timer = setTimeout(() => show(...at), REST);
  };
  stage.overlays.push(({ context, theme }) => {
    if (!shown || !place || card.hidden) return;
    const px = clamp(shown.x, place.x, place.x + WIDE);
    const py = clamp(shown.y, place.y, place.y + card.offsetHeight);
    context.setLineDash([2, 3]);
    context.strokeStyle = theme.primary;
    context.lineWidth = 1.4;
    context.beginPath();
    context.moveTo(shown.x, shown.y);
    context.lineTo(px, py);
    context.stroke();
    context.setLineDash([]);
    if ('said' in shown) return;
    drawSpread(stage, shown);
    const { near, rows } = stage.scene;
    const each = near.length / rows;
    const { row } = shown;
    if (each && row !== stage.held)
      drawHeld(stage, { held: row, near: near.subarray(row * each, (row + 1) * each) });
    context.beginPath();
    context.arc(shown.x, shown.y, 5.5, 0, 7);
    context.stroke();
  });
}

/** Where the row may be in its panel: an ellipse of two standard deviations. @param {Stage} stage @param {Found} hit */
function drawSpread({ context, theme, meta }, { x, y, spot: { panel, plot, range } }) {
  const [a, b] = panel.axes.map((k) => (2 * (meta.components[k]?.spread ?? 0)) / meta.score_unit);
  if (!a || !b) return;
  context.beginPath();
  context.ellipse(
    x,
    y,
    (a * plot.w) / (range[1] - range[0]),
    (b * plot.h) / (range[3] - range[2]),
    0,
    0,
    7,
  );
  context.fillStyle = `${theme.primary}22`;
  context.fill();
  context.stroke();
}

/** Image, class and how the row is made. @param {Stage} stage @param {number} row @param {HTMLCanvasElement} picture @param {HTMLElement} lines */
function fill(stage, row, picture, lines) {
  const { scene, meta, rows, colouring, sheets } = stage;
  const word = meta.words?.row ?? 'row';
  const code = rows.codes[row];
  const said =
    colouring?.kind === 'category' && code < colouring.names.length
      ? `${colouring.title ?? ''} ${colouring.names[code]}`
      : '';
  const used = [...scene.components.subarray(row * scene.active, (row + 1) * scene.active)].filter(
    (k) => k < meta.components.length,
  );
  const largest = [...used]
    .sort((a, b) => Math.abs(scene.score(row, b)) - Math.abs(scene.score(row, a)))
    .slice(0, 3)
    .sort((a, b) => a - b); // as the row's details have them
  const terms = largest.flatMap((k) => [
    ` + ${signed(scene.score(row, k) * meta.score_unit)} × `.replace('+ −', '− '),
    element('span', 'appca-term', {}, componentName(meta, k)),
  ]);
  const marks = [
    rows.flags[row] & DOUBTFUL
      ? `not certain (${Math.round((100 * scene.doubt[row]) / 255)}%)`
      : '',
    rows.flags[row] & OUTSIDE ? 'marked' : '',
  ].filter(Boolean);
  const average = meta.centred === false ? '' : 'average';
  const more = used.length > 3 ? ` and ${used.length - 3} more` : '';
  const alone = average ? 'the average alone' : 'no component';
  const sum = used.length ? [average, ...terms, more] : [alone];
  const panel = more ? [`in ${setName(meta, used)}`] : [];
  lines.replaceChildren(
    element('b', '', {}, `${capital(word)} ${grouped(row)}`),
    element('span', 'appca-count', {}, ` ${said}`),
    ...(meta.components.length ? [element('p', '', {}, ...sum)] : []),
    quiet([...panel, ...marks].join(' · ')),
  );
  const bytes = sheets?.read(scene.tile[row]);
  picture.hidden = !bytes;
  if (bytes && sheets) paint(picture, bytes, sheets.meta, stage.dark);
}

/** Id and lines of the row, once they are at hand. @param {Stage} stage @param {number} row @param {HTMLElement} lines @param {() => boolean} still */
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

/** Of the places around a point the one over the fewest data and words. @param {Stage} stage @param {{x: number, y: number, spot: Placed}} found @param {Label[]} labels @returns {Rect} */
function emptiest(stage, { x, y, spot }, labels) {
  const room = occupancyOf(stage);
  const bounds = spot.open ? spot.plot : spot.view.rect;
  for (const { key, u, v, width } of labels) {
    if (key === spot.key)
      room.cover({
        x: spot.plot.x + u * spot.plot.w,
        y: spot.plot.y + v * spot.plot.h,
        w: width,
        h: 30,
      });
  }
  const places = [];
  const size = { w: WIDE, h: HIGH };
  for (const far of [56, 100, 160, 240, 340]) {
    for (const left of [x + far, x - far - WIDE]) {
      for (const top of [y - far * 0.6 - HIGH, y + far * 0.6, y - HIGH / 2]) {
        const at = { x: left, y: top, ...size };
        if (within(at, bounds, 6)) places.push({ at, cost: room.under(at) + far / 30 });
      }
    }
  }
  places.sort((a, b) => a.cost - b.cost);
  return (
    places[0]?.at ?? {
      x: clamp(x + 24, 6, stage.width - WIDE - 6),
      y: Math.max(6, y - HIGH - 24),
      ...size,
    }
  );
}
