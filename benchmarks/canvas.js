/** Hands that move as the screen is refreshed, for `benchmarks.canvas_browser`. */

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const next = () =>
  new Promise((done) => {
    requestAnimationFrame(done);
  });
const since = (began) => performance.now() - began;

/** Wait until the picture is whole and stands still, and was drawn again since a count of renders. */
async function settled(root, renders) {
  do await next();
  while (root.dataset.settled !== 'yes' || root.dataset.renders === renders);
}

/** Act, and say when what changed is on the screen, as a fair sample at least, and when all of it is. */
async function seen(canvas, root, act) {
  const { gl } = canvas.stage.gpu,
    one = new Uint8Array(4),
    renders = root.dataset.renders,
    began = performance.now();
  const through = () => gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, one); // the card is done
  act();
  const script = since(began);
  do await next();
  while (root.dataset.renders === renders);
  through();
  const picture = since(began);
  await settled(root, renders);
  through();
  return { script, picture, whole: since(began) };
}

/** Do a step a frame; milliseconds of JavaScript and between frames. The first frames warm up. */
async function frames(root, count, step) {
  const script = [],
    gaps = [];
  let last = await next();
  for (let i = 0; i < count; i += 1) {
    step(i);
    const now = await next();
    if (i > 4) {
      script.push(Number(root.dataset.frameMs));
      gaps.push(now - last);
    }
    last = now;
  }
  await settled(root);
  return { script: median(script), gap: median(gaps) };
}

function heap() {
  window.gc?.();
  return performance.memory.usedJSHeapSize / 1e6;
}

/** Pan and zoom a canvas that shows its rows. */
async function moved(root) {
  const hit = root.querySelector('.appca-hit');
  const hand = (type, x, y) =>
    hit.dispatchEvent(
      new PointerEvent(type, {
        clientX: x,
        clientY: y,
        pointerId: 1,
        isPrimary: true,
        button: 0,
        buttons: 1,
        bubbles: true,
      }),
    );
  const wheel = (deltaY) =>
    hit.dispatchEvent(
      new WheelEvent('wheel', {
        clientX: 700,
        clientY: 450,
        deltaY,
        bubbles: true,
        cancelable: true,
      }),
    );
  hand('pointerdown', 700, 450);
  const pan = await frames(root, 40, (i) => hand('pointermove', 700 + 5 * (i % 20), 450));
  hand('pointerup', 700, 450);
  await settled(root);
  const zoom = await frames(root, 40, (i) => wheel(i < 20 ? -60 : 60));
  return {
    pan_js_ms: pan.script,
    pan_gap_ms: pan.gap,
    zoom_js_ms: zoom.script,
    zoom_gap_ms: zoom.gap,
  };
}

window.measureMoves = () => moved(document.querySelector('.appca-explorer'));

window.measureCanvas = async () => {
  const { canvas } = window,
    [view] = canvas.stage.views;
  const root = document.querySelector('.appca-explorer');
  const moves = await moved(root);

  const [, other] = Object.keys(canvas.stage.meta.colourings);
  await canvas.stage.scene.codes(other); // is at hand
  const recoloured = await seen(canvas, root, () =>
    canvas.update({ options: { colouring: other } }),
  );

  const ring = Array.from({ length: 100 }, (_, k) => [
    700 + 300 * Math.cos(k / 16),
    450 + 300 * Math.sin(k / 16),
  ]);
  const selected = await seen(canvas, root, () => canvas.actions.lasso(view, ring, 'replace'));
  const rows = Number(root.dataset.selected);
  canvas.select([]);
  await settled(root);

  const { panels } = view.layout,
    first = panels[0].components;
  const to = panels.findIndex((one, i) => i > 0 && one.components.some((c) => first.includes(c)));
  canvas.tour(0, to, 0);
  await settled(root);
  const tour = await frames(root, 30, (i) => canvas.tour(0, to, (i + 1) / 31));
  return {
    ...moves,
    recolour_ms: recoloured.picture,
    recolour_whole_ms: recoloured.whole,
    lasso_js_ms: selected.script,
    lasso_ms: selected.picture,
    lasso_whole_ms: selected.whole,
    lasso_rows: rows,
    tour_js_ms: tour.script,
    tour_gap_ms: tour.gap,
    heap_mb: heap(),
  };
};

window.measurePlotly = async ([n, count]) => {
  const { Plotly } = window,
    found = {},
    size = Math.ceil(n / count);
  const root = document.body.appendChild(document.createElement('div'));
  const all = Float32Array.from({ length: n }, Math.random);
  const coloured = (x, classes) => x.map((value) => Math.floor(value * classes));
  const traces = Array.from({ length: count }, (_, p) => {
    const x = all.slice(p * size, (p + 1) * size),
      end = p ? p + 1 : '';
    const marker = { size: 3, color: coloured(x, 10) };
    const axes = { xaxis: `x${end}`, yaxis: `y${end}` };
    return {
      type: 'scattergl',
      mode: 'markers',
      x,
      y: x.map((v) => (v * 7919) % 1),
      marker,
      ...axes,
    };
  });
  const grid = { rows: 3, columns: 4, pattern: 'independent' };
  const timed = async (name, work) => {
    const began = performance.now();
    await work();
    await next();
    await next();
    found[name] = since(began);
  };
  const low = ({ x }) => Array.from(x.keys()).filter((i) => x[i] < 0.3);
  const colours = { 'marker.color': traces.map(({ x }) => coloured(x, 7)) };
  const layout = { grid, width: 1400, height: 900, showlegend: false };
  await timed('plotly_first_ms', () => Plotly.newPlot(root, traces, layout));
  await timed('plotly_recolour_ms', () => Plotly.restyle(root, colours));
  await timed('plotly_lasso_ms', () => Plotly.restyle(root, { selectedpoints: traces.map(low) }));
  await timed('plotly_pan_one_ms', () => Plotly.relayout(root, { 'xaxis.range': [0.1, 1.1] }));
  return { ...found, plotly_heap_mb: heap() };
};
