/** Pointer and wheel events at the pace of the screen, for `benchmarks.canvas`. */

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const next = () =>
  new Promise((done) => {
    requestAnimationFrame(done);
  });
const heap = () => {
  window.gc?.();
  return performance.memory.usedJSHeapSize / 1e6;
};

/** Wait until the picture is complete and still, and was drawn again since a count of renders. */
async function settled(root, renders) {
  do await next();
  while (root.dataset.settled !== 'yes' || root.dataset.renders === renders);
}

/** Milliseconds of an action's script, until a fair sample is on the screen, and until all is. */
async function seen(canvas, root, act) {
  const { gl } = canvas.stage.gpu,
    { renders } = root.dataset,
    began = performance.now();
  const finished = () => {
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits for the GPU
    return performance.now() - began;
  };
  act();
  const script = performance.now() - began;
  do await next();
  while (root.dataset.renders === renders);
  const picture = finished();
  await settled(root, renders);
  return { script, picture, whole: finished() };
}

/** Do a step at every screen refresh; milliseconds of JavaScript and between drawn frames, without those of a warm-up. */
async function frames(root, count, step) {
  const script = [],
    gaps = [];
  let { renders } = root.dataset,
    last = await next();
  for (let i = 0; gaps.length < count; i += 1) {
    step(i);
    const now = await next();
    if (root.dataset.renders === renders) continue; // drawn later, when the GPU has finished
    if (i > 4) {
      script.push(Number(root.dataset.frameMs));
      gaps.push(now - last);
    }
    [last, renders] = [now, root.dataset.renders];
  }
  await settled(root);
  return { script: median(script), gap: median(gaps) };
}

window.measureCanvas = async () => {
  const { canvas } = window,
    { stage } = canvas,
    [view] = stage.views,
    root = document.querySelector('.appca-explorer');
  const act = (Type, name, more) => {
    const at = { clientX: 700, clientY: 450, bubbles: true, cancelable: true, ...more };
    root.querySelector('.appca-hit').dispatchEvent(new Type(name, at));
  };
  const hand = { pointerId: 1, isPrimary: true, button: 0, buttons: 1 };
  act(PointerEvent, 'pointerdown', hand);
  const pan = await frames(root, 40, (i) =>
    act(PointerEvent, 'pointermove', { ...hand, clientX: 700 + 5 * (i % 20) }),
  );
  act(PointerEvent, 'pointerup', hand);
  await settled(root);
  const zoom = await frames(root, 40, (i) =>
    act(WheelEvent, 'wheel', { deltaY: i % 40 < 20 ? -60 : 60 }),
  );

  const [, colouring] = Object.keys(stage.meta.colourings);
  await stage.scene.codes(colouring); // fetched before
  const recoloured = await seen(canvas, root, () => canvas.update({ options: { colouring } }));

  const ring = Array.from({ length: 100 }, (_, k) => [
    700 + 300 * Math.cos(k / 16),
    450 + 300 * Math.sin(k / 16),
  ]);
  const selected = await seen(canvas, root, () => canvas.actions.lasso(view, ring, 'replace'));
  canvas.select([]);
  await settled(root);

  const [first, ...others] = view.layout.panels.map(({ components }) => components);
  const to = 1 + others.findIndex((components) => components.some((c) => first.includes(c)));
  canvas.tour(0, to, 0);
  await settled(root);
  const tour = await frames(root, 30, (i) => canvas.tour(0, to, ((i % 30) + 1) / 31));
  return {
    pan_js_ms: pan.script,
    pan_gap_ms: pan.gap,
    zoom_js_ms: zoom.script,
    zoom_gap_ms: zoom.gap,
    recolour_ms: recoloured.picture,
    recolour_whole_ms: recoloured.whole,
    lasso_js_ms: selected.script,
    lasso_ms: selected.picture,
    lasso_whole_ms: selected.whole,
    tour_gap_ms: tour.gap,
    heap_mb: heap(),
  };
};

window.measurePlotly = async ([n, count]) => {
  const { Plotly } = window,
    measured = {},
    size = Math.ceil(n / count),
    all = Float32Array.from({ length: n }, Math.random);
  const root = document.body.appendChild(document.createElement('div'));
  const coloured = (x, classes) => x.map((value) => Math.floor(value * classes));
  const traces = Array.from({ length: count }, (_, p) => {
    const x = all.slice(p * size, (p + 1) * size),
      y = x.map((value) => (value * 7919) % 1),
      end = p ? p + 1 : '',
      marker = { size: 3, color: coloured(x, 10) };
    return { type: 'scattergl', mode: 'markers', x, y, marker, xaxis: `x${end}`, yaxis: `y${end}` };
  });
  const timed = async (name, work) => {
    const began = performance.now();
    await work();
    await next();
    await next();
    measured[name] = performance.now() - began;
  };
  const low = ({ x }) => Array.from(x.keys()).filter((i) => x[i] < 0.3);
  const colours = { 'marker.color': traces.map(({ x }) => coloured(x, 7)) };
  const grid = { rows: 3, columns: 4, pattern: 'independent' };
  const layout = { grid, width: 1400, height: 900, showlegend: false };
  await timed('plotly_first_ms', () => Plotly.newPlot(root, traces, layout));
  await timed('plotly_recolour_ms', () => Plotly.restyle(root, colours));
  await timed('plotly_lasso_ms', () => Plotly.restyle(root, { selectedpoints: traces.map(low) }));
  await timed('plotly_pan_one_ms', () => Plotly.relayout(root, { 'xaxis.range': [0.1, 1.1] }));
  return { ...measured, plotly_heap_mb: heap() };
};
