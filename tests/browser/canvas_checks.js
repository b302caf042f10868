/** What the browser tests ask of the canvas on the page; the page has `canvas`, `load`, `mount` and `told`. */

import { toPage } from '/appca/canvas/js/layout/geometry.js';

/** Back to all panels with nothing selected or held, and no page around. */
export async function start() {
  const { stage } = canvas;
  delete stage.callbacks.onPoint;
  delete stage.sheets?.read;
  document.querySelectorAll('#sheet').forEach((sheet) => sheet.remove());
  document.querySelector('dialog[open]')?.close();
  canvas.actions.hold(-1);
  stage.options.held = undefined;
  if (stage.views[0].layout.name !== 'subspaces') await canvas.morph('subspaces');
  if (stage.views.length > 1) await canvas.update({ options: { beside: '' } });
  if (stage.views[0].opened) canvas.actions.close(stage.views[0]);
  canvas.actions.filter({});
  canvas.actions.home(stage.views[0]);
  stage.tweens.tick(performance.now() + 999);
  canvas.select([]);
  stage.only = -1;
  told.selections.length = 0;
}

export function coloursDrawn() {
  const { stage } = canvas;
  stage.draw();
  const { gl } = stage.gpu;
  const { plot } = stage.placed[0];
  const bytes = new Uint8Array(4 * 80 * 80);
  gl.readPixels(plot.x, stage.height - plot.y - 80, 80, 80, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
  const seen = new Set();
  for (let i = 0; i < bytes.length; i += 4) seen.add(bytes.slice(i, i + 3).join());
  return seen.size;
}

/** Pixels of the layer over the points on which something is drawn. */
export function ink() {
  const { width, height } = canvas.stage.over;
  canvas.stage.draw();
  const { data } = canvas.stage.context.getImageData(0, 0, width, height);
  return data.reduce((sum, value, i) => sum + (i % 4 === 3 && value > 0 ? 1 : 0), 0);
}

export function loseContext() {
  const { stage } = canvas;
  const lose = stage.gpu.gl.getExtension('WEBGL_lose_context');
  return new Promise((done) => {
    stage.canvas.addEventListener('webglcontextrestored', () => setTimeout(done, 0), {
      once: true,
    });
    stage.canvas.addEventListener(
      'webglcontextlost',
      () => setTimeout(() => lose.restoreContext(), 0),
      { once: true },
    );
    lose.loseContext();
  });
}

/** Open a panel at once; where its first point stands. */
export function openedPoint(panel) {
  const { stage } = canvas;
  canvas.actions.open(stage.views[0], panel);
  stage.tweens.tick(performance.now() + 999);
  stage.settle();
  const spot = stage.placed.find(({ open }) => open);
  const { plot, range } = spot;
  const { start } = spot.panel;
  const { xy } = stage.views[0].layout;
  const share = (axis) =>
    (xy[2 * start + axis] - range[2 * axis]) / (range[2 * axis + 1] - range[2 * axis]);
  return [plot.x + share(0) * plot.w, plot.y + plot.h - share(1) * plot.h];
}

/** Keep what is written from now on, and what is written in a dashed frame. */
export function listen() {
  window.written = { all: [], dashed: [] };
  const all = CanvasRenderingContext2D.prototype;
  const { fillText, setLineDash } = all;
  let dashes = '';
  all.setLineDash = function dash(lines) {
    dashes = String(lines);
    return setLineDash.call(this, lines);
  };
  all.fillText = function write(text, ...at) {
    written.all.push(text);
    if (dashes === '3,2') written.dashed.push(text);
    dashes = '';
    return fillText.call(this, text, ...at);
  };
}

/** Pairs of words that lie over one another. */
export function overlappingWords() {
  const { stage } = canvas;
  const { context } = stage;
  const words = [];
  const write = context.fillText;
  context.fillText = (text, x, y) => {
    const w = context.measureText(text).width;
    const left = { right: x - w, center: x - w / 2, left: x }[context.textAlign];
    words.push({ text, x: left, y, w, h: 0.8 * parseFloat(context.font.match(/([\d.]+)px/)[1]) });
    write.call(context, text, x, y);
  };
  stage.draw();
  delete context.fillText;
  const over = (a, b) => a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
  return words.flatMap((a, i) =>
    words
      .slice(i + 1)
      .filter((b) => over(a, b))
      .map((b) => `${a.text} / ${b.text}`),
  );
}

/** Mount and destroy more often than a browser keeps contexts. */
export async function mountOften(name) {
  const host = document.createElement('div');
  host.style.cssText = 'width:400px;height:300px';
  document.body.append(host);
  for (let i = 0; i < 18; i += 1) {
    const one = mount(host, await load(name));
    if (i > 15) await one.ready;
    one.destroy();
  }
  host.remove();
  return host.childElementCount;
}

/** The middle of a component's picture, in pixels of the page. */
export function onDiagonal(component) {
  const [{ arrangement, cam, rect }] = canvas.stage.views;
  const { x, y, w, h } = toPage(cam, rect, arrangement.diagonal[component].rect);
  return [x + w / 2, y + h / 2];
}
