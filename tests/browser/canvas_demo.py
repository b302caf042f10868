"""A page that fetches a scene as the canvas does, and says what came; query parameter n: rows."""

import numpy as np
import streamlit as st

from appca.data.preprocessing import Fitted
from appca.plots.explore.scene.scene import scene_of
from appca.ui.explorer import serving
from benchmarks.scenes import digits, planted
from tests.fitted_runs import fitted_run

FEATURES = {
    "mean": np.zeros(64),
    "preprocessing": Fitted(1.0, np.zeros(64), np.ones(64), None),
}
JS = """
export default async function ({ data, parentElement }) {
  const box = parentElement.querySelector('.fetched');
  if (box.dataset.key === data.key) return;
  box.dataset.key = data.key;
  const get = async (name, key = data.key) => {
    const answer = await fetch(data.at + name, { headers: { 'X-Appca-Key': key } });
    return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
  };
  const names = [data.meta, ...Object.values(data.buffers).flat(), ...data.sheets];
  const all = await Promise.all(names.map((name) => get(name)));
  const fetched = performance.getEntriesByType('resource')
    .filter((one) => one.name.includes(data.at));
  box.dataset.status = [...new Set(all.map((one) => one.status))].join();
  box.dataset.bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  box.dataset.transferred = fetched.reduce((sum, one) => sum + one.transferSize, 0);
  box.dataset.wrong = (await get('0'.repeat(32), 'x')).status;
  box.dataset.names = names.join();
}
"""

if __name__ == "__main__":
    probe = st.components.v2.component(
        "canvas_demo", js=JS, html="<div class='fetched'></div>", isolate_styles=False
    )

    @st.cache_resource
    def scene(n: int):
        if n:
            fitted, dataset = planted(n)
        else:
            dataset = digits()
            active = np.random.default_rng(0).random((dataset.n_rows, 4)).argsort(1) < 2
            fitted = fitted_run(active, components=np.eye(4, 64), **FEATURES)
        return scene_of(fitted, dataset), dataset.digest

    probe(key="probe", data=serving.address(*scene(int(st.query_params.get("n", 0)))))
else:
    app = st.App(__file__, routes=serving.routes())
