"""Three canvases on one page: a fit, two panels of it, and a map with a selection of its own."""

import numpy as np
import streamlit as st

from appca.analysis.components import principal_scores
from appca.canvas.scene import Map, scene_shown
from appca.ui import canvas, server, state
from appca.ui.canvas import PageScene
from benchmarks.scenes import planted


@st.cache_resource
def _made() -> tuple:
    fitted, dataset = planted(600, K=5)
    plane = principal_scores(dataset.X, 2)[0]
    scene = scene_shown(dataset, fitted, {"pca": Map("PCA", plane)})
    return dataset, PageScene(scene, "fit")


def main() -> None:
    """Draw the page."""
    dataset, scene = _made()
    mine = st.session_state.setdefault("mine", np.zeros(dataset.n_rows, bool))

    def choose(mask: np.ndarray) -> None:
        st.session_state["mine"] = mask

    st.markdown(f"all: {state.get(dataset).sum()}, own: {mine.sum()}")
    canvas.draw(dataset, scene, "pairs", "label:class", height=420)
    with st.container(key="two"):
        panels = ["{1,2}", "{3,4}"]
        canvas.draw(
            *(dataset, scene, "pairs", "label:class"),
            key="some",
            height=220,
            options={"panels": panels},
        )
    with st.container(key="free"):
        canvas.draw(
            *(dataset, scene, "pca", "label:class"),
            key="rows",
            height=260,
            selected=mine,
            on_select=choose,
        )


if __name__ == "__main__":
    main()
else:
    app = st.App(__file__, routes=server.routes())
