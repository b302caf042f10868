/** The views of the canvas: made by the name of a layout, each with its part of the width. */

import { having, withPanels } from '../scene/other.js';
import { some } from '../scene/layouts.js';
import { keepCells } from './keep.js';
import { View } from './view.js';

/** @typedef {import('../stage.js').Stage} Stage */

const FIRST = 0.56; // of the width where there are two

/** A view of a layout; a triangle has a map in its free half. @param {Pick<Stage, 'meta' | 'scene' | 'options'>} stage @param {string} name @param {import('../scene/layouts.js').Layout} [before] whose panels keep their places */
export async function makeView({ meta, scene, options }, name, before) {
  const whole = await scene.layout(name);
  if (before) keepCells(before, whole);
  const layout = options.panels?.length
    ? some(whole, options.panels)
    : await withPanels(scene, whole, await openedOf(scene, whole, options));
  const map = layout.kind === 'triangle' ? besideTriangle(meta, options) : undefined;
  const view = new View(layout, map ? await scene.layout(map) : null, meta.components.length);
  view.filter = options.filter ?? {};
  view.compact = isCompact(options);
  return view;
}

/** The map in the free half of a triangle. @param {import('../types.js').Meta} meta @param {import('../types.js').Options} options */
function besideTriangle({ layouts }, { compact }) {
  const maps = Object.keys(layouts).filter((map) => layouts[map].kind === 'map');
  return compact ? undefined : ['slices', 'umap', ...maps].find((map) => maps.includes(map));
}

/** Buffers that views of some layouts need, of those that there are. @param {import('../types.js').Meta} meta @param {import('../types.js').Options} options @param {string[]} names */
export const buffersOf = (meta, options, names) =>
  [...names, besideTriangle(meta, options)].flatMap((name) => [`order.${name}`, `map.${name}`]);

/** Gathered subspaces that a search or a filter has opened. @param {import('../scene/scene.js').Scene} scene @param {import('../scene/layouts.js').Layout} layout @param {import('../types.js').Options} options */
async function openedOf(scene, layout, { sought = [], filter }) {
  if (!layout.panels.some(({ other }) => other)) return [];
  const gathered = await scene.gathered(layout.name);
  const kept = filter?.components?.length ? having(gathered, filter.components) : [];
  return [
    ...gathered.filter(({ components }) => sought.includes(`${components}`)),
    ...kept.filter(({ components }) => !sought.includes(`${components}`)),
  ];
}

/** Whether there is no title above the picture. @param {import('../types.js').Options} options */
export const isCompact = ({ compact, panels }) => compact ?? Boolean(panels?.length);

/** Give each view its part of the canvas, and its panels their lines of the panel table. @param {Stage} stage */
export function share(stage) {
  const { width, height, views } = stage;
  const half = views.length > 1 ? Math.round(width * FIRST) : width;
  for (const view of views) view.alone = half === width;
  views.forEach((view, i) =>
    view.resize(
      i
        ? { x: half + 1, y: 0, w: width - half - 1, h: height }
        : { x: 0, y: 0, w: half, h: height },
    ),
  );
  let base = 0;
  for (const view of views)
    for (const part of view.parts) {
      part.base = base;
      base += part.layout.panels.length;
    }
  stage.frame = '';
}
