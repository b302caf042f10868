"""A page that fetches a scene like the canvas and shows the sizes; query parameter n: rows."""

import streamlit as st

from appca.canvas.scene import RowText
from appca.ui import canvas, server
from appca.ui.canvas import PageScene
from benchmarks.scenes import planted, scene_from

JS = """
export default async function ({ data, parentElement }) {
  const box = parentElement.querySelector('.fetched');
  if (box.dataset.key === data.key) return;
  box.dataset.key = data.key;
  const headers = { 'X-Appca-Key': data.key };
  const get = async (name) => {
    const answer = await fetch(data.at + name, { headers });
    return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
  };
  const names = [data.meta, ...Object.values(data.buffers).flat(), ...data.sheets];
  const began = performance.now();
  const all = await Promise.all(names.map(get));
  box.dataset.ms = performance.now() - began;
  const fetched = performance.getEntriesByType('resource')
    .filter((one) => one.name.includes(data.at));
  box.dataset.status = [...new Set(all.map((one) => one.status))].join();
  box.dataset.bytes = all.reduce((sum, one) => sum + one.bytes, 0);
  box.dataset.transferred = fetched.reduce((sum, one) => sum + one.transferSize, 0);
  const asked = { method: 'POST', headers, body: new Uint32Array([3, 1]) };
  box.dataset.said = await (await fetch(`${data.at}${data.questions}/texts`, asked)).text();
  box.dataset.names = names.join();
}
"""


@st.cache_resource
def _made(n: int):
    fitted, dataset = planted(n)
    return scene_from(fitted, dataset), dataset


def main() -> None:
    """Show the page."""
    probe = st.components.v2.component(
        "canvas_page", js=JS, html="<div class='fetched'></div>", isolate_styles=False
    )
    scene, dataset = _made(int(st.query_params.get("n", 1000)))
    scene = scene._replace(lines=[RowText("class", dataset.labels["class"])])
    probe(key="probe", data=canvas.address(PageScene(scene, "planted"), dataset))


if __name__ == "__main__":
    main()
else:
    app = st.App(__file__, routes=server.routes())
