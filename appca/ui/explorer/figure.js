import { axisKey } from './axes.js';
import { paintedMarker } from './colours.js';
import { domainsOf } from './grid.js';
import { selectedPlaces } from './rows.js';

/**
 * From what Python sent to what Plotly draws.
 */

export const MOST_SVG_POINTS = 5000; // of all panels, when there is no WebGL

/**
 * The traces in a colouring and selection.
 *
 * @param {Object[]} panels each with its trace as Python sent it
 * @param {Object} colour see colours.js
 * @param {?Uint8Array} selection
 * @param {{size: number, ground: string, webgl: boolean}} options see colours.js
 */
export function buildTraces(panels, colour, selection, options) {
  const share = svgShare(panels);
  return panels.map((panel) => {
    const trace = { ...panel.trace };
    delete trace.customdata; // rows are looked up in the panel
    trace.marker = paintedMarker(panel, colour, options);
    if (selection) trace.selectedpoints = selectedPlaces(panel.rows, selection);
    return options.webgl ? trace : asSvg(trace, panel, share);
  });
}

/** Which share of all points SVG can bear. */
export function svgShare(panels) {
  const total = panels.reduce((sum, panel) => sum + panel.rows.length, 0);
  return Math.min(1, MOST_SVG_POINTS / Math.max(1, total));
}

/** A fixed fraction of the places, spread by a hash of their rows: the same rows in all panels. */
export function svgPlaces(rows, share) {
  const limit = share * 4294967296;
  const places = [];
  for (let i = 0; i < rows.length; i += 1) {
    if (share >= 1 || Math.imul(rows[i] + 1, 2654435761) >>> 0 < limit) places.push(i);
  }
  return places;
}

function asSvg(trace, panel, share) {
  const places = svgPlaces(panel.rows, share);
  const pick = (value) => (ArrayBuffer.isView(value) || Array.isArray(value)
    ? places.map((place) => value[place])
    : value);
  const { marker } = trace;
  const { line, color, symbol, size } = marker;
  const thinLine = { ...line, width: pick(line.width), color: pick(line.color) };
  const thin = { ...marker, color: pick(color), symbol: pick(symbol), size: pick(size), line: thinLine };
  const thinned = { ...trace, type: 'scatter', x: pick(trace.x), y: pick(trace.y), marker: thin };
  if (trace.selectedpoints) {
    const selected = new Set(trace.selectedpoints);
    thinned.selectedpoints = places.flatMap((place, i) => (selected.has(place) ? [i] : []));
  }
  return thinned;
}

/**
 * The layout for a placement of the panels.
 *
 * @param {Object} axes of Python: ranges and names
 * @param {Object} grid see grid.js
 * @param {Object} theme see theme.js
 * @param {Object<string, number[]>} ranges kept from before, by axis key
 */
export function buildLayout(axes, grid, theme, ranges) {
  const layout = {
    width: grid.width,
    height: grid.height,
    margin: { l: 0, r: 0, t: 0, b: 0, pad: 0, autoexpand: false },
    paper_bgcolor: 'rgba(0,0,0,0)',
    plot_bgcolor: theme.fill,
    font: { family: theme.font, color: theme.text },
    showlegend: false,
    hovermode: false,
    dragmode: 'pan',
    selectdirection: 'any',
  };
  const domains = domainChanges(grid);
  for (const [key, axis] of Object.entries(axes)) {
    layout[key] = {
      ...axis,
      domain: domains[`${key}.domain`],
      range: ranges[key] ?? axis.range,
      zerolinecolor: theme.zero,
      tickfont: { ...axis.tickfont, color: theme.faint },
      title: { ...axis.title, font: { ...axis.title.font, color: theme.soft } },
    };
  }
  return layout;
}

/** The axes of another placement, as changes for Plotly.relayout. */
export function domainChanges(grid) {
  const changes = { width: grid.width, height: grid.height };
  grid.boxes.forEach((box, number) => {
    const domains = domainsOf(box, grid);
    changes[`${axisKey('x', number)}.domain`] = domains.x;
    changes[`${axisKey('y', number)}.domain`] = domains.y;
  });
  return changes;
}
