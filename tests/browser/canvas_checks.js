/** What the browser tests ask of the canvas on the page; the page has `canvas`, `load`, `mount` and `told`. */

import { pointToPage, toPage } from '/appca/canvas/js/layout/geometry.js';

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
  return new Set(new Uint32Array(bytes.buffer)).size;
}

/** Pixels of the layer over the points on which something is drawn. */
export function ink() {
  const { width, height } = canvas.stage.over;
  canvas.stage.draw();
  const { data } = canvas.stage.context.getImageData(0, 0, width, height);
  return data.reduce((sum, value, i) => sum + (i % 4 === 3 && value > 0 ? 1 : 0), 0);
}

export async function loseContext() {
  const lose = canvas.stage.gpu.gl.getExtension('WEBGL_lose_context');
  for (const [act, kind] of Object.entries({ loseContext: 'lost', restoreContext: 'restored' }))
    await new Promise((done) => {
      const told = () => setTimeout(done, 0);
      canvas.stage.canvas.addEventListener(`webglcontext${kind}`, told, { once: true });
      lose[act]();
    });
}

/** Where a kept frame is copied to after a move by (7, 9) px, and whether it looks the same there. */
export function copied() {
  const { stage } = canvas;
  const { gpu, layer, views } = stage;
  const [view, { gl }] = [views[0], gpu];
  const patch = (x, y) => {
    const bytes = new Uint8Array(4 * 400 * 300);
    gl.bindFramebuffer(gl.FRAMEBUFFER, gpu.sheet.target);
    gl.readPixels(x, y, 400, 300, gl.RGBA, gl.UNSIGNED_BYTE, bytes);
    return bytes.join();
  };
  stage.draw(false, true);
  const before = patch(300, 200);
  layer.keep('a', stage.views);
  view.cam = { ...view.cam, x: view.cam.x - 7 / view.cam.k, y: view.cam.y - 9 / view.cam.k };
  const { x, y } = layer.carry('a', stage, view, 0);
  const [moved, no] = [patch(307, 191), layer.carry('b', stage, view, 0)];
  return [Math.round(x), Math.round(y), moved === before, no];
}

/** Open a panel at once; where its first point stands. */
export function openedPoint(panel) {
  const { stage } = canvas;
  canvas.actions.open(stage.views[0], panel);
  stage.tweens.tick(performance.now() + 999);
  stage.settle();
  const spot = stage.placed.find(({ open }) => open);
  const { xy } = stage.views[0].layout;
  return pointToPage(spot, xy[2 * spot.panel.start], xy[2 * spot.panel.start + 1]);
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
  const under = (a, i) => words.slice(i + 1).filter((b) => over(a, b));
  return words.flatMap((a, i) => under(a, i).map((b) => `${a.text} / ${b.text}`));
}

/** Mount and destroy more often than a browser keeps contexts. */
export async function mountOften(name) {
  const host = document.body.appendChild(document.createElement('div'));
  host.style.cssText = 'width:400px;height:300px';
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
