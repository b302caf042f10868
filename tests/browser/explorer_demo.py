"""A page with nothing but the explorer, for the browser tests and for looking at it.

Query parameters: data (digits, mnist, coil32, coil128), n, panels (atlas, pairs, map), count.
The projections are principal components and the assignment is to the two largest of four.
"""

import gzip
import io
import itertools
import json
import os
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import streamlit as st
from PIL import Image

from appca.plots import palette
from appca.plots.explore.panel import Cell, Panel
from appca.plots.explore.sprites import mean_image, sprites_of
from appca.ui.explorer.component import explorer
from appca.ui.explorer.payload import HoverColumn, HoverData

HOSTILE = "<img src=x onerror=document.title=1>"


def mnist(n: int) -> tuple[np.ndarray, np.ndarray]:
    folder = Path(os.environ["APPCA_DATA"]) / "mnist"
    images, labels = [], []
    for part in ("train", "t10k"):
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
            raw = file.read(16 + 784 * n)
        images.append(np.frombuffer(raw, np.uint8, offset=16).reshape(-1, 28, 28))
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
            raw = file.read(8 + n)
        labels.append(np.frombuffer(raw, np.uint8, offset=8))
    return np.concatenate(images)[:n], np.concatenate(labels)[:n].astype(str)


def coil(side: int) -> tuple[np.ndarray, np.ndarray]:
    archive = zipfile.ZipFile(Path(os.environ["APPCA_DATA"]) / "coil20" / "coil-20-proc.zip")
    names = sorted(name for name in archive.namelist() if name.endswith(".png"))
    images = [Image.open(io.BytesIO(archive.read(name))).convert("L") for name in names]
    small = [np.asarray(i.resize((side, side), Image.Resampling.BOX)) for i in images]
    return np.stack(small), np.array([Path(name).name.split("__")[0] for name in names])


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    data = load_digits()
    return np.rint(data.images * (255 / 16)).astype(np.uint8), data.target.astype(str)


@st.cache_resource(show_spinner=False)
def dataset(kind: str, n: int) -> SimpleNamespace:
    if kind == "mnist":
        images, labels = mnist(n)
    elif kind.startswith("coil"):
        images, labels = coil(int(kind[4:]))
    else:
        images, labels = digits()
    flat = images.reshape(len(images), -1).astype(np.float32) / 255
    flat = flat - flat.mean(axis=0)
    _, vectors = np.linalg.eigh(flat.T @ flat) if flat.shape[1] < 2000 else _thin(flat)
    rng = np.random.default_rng(1)
    turn, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    scores = (flat @ vectors[:, :-5:-1] @ turn).astype(np.float32)
    return SimpleNamespace(
        digest=f"{kind}{n}",
        n_rows=len(images),
        image_shape=images.shape[1:],
        images=lambda rows: images[rows],
        pixels=images,
        labels=labels,
        scores=scores,
        error=np.square(flat).mean(axis=1) - np.square(scores).sum(axis=1) / flat.shape[1],
    )


def _thin(flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values, vectors = np.linalg.eigh(flat @ flat.T)
    return values, flat.T @ vectors / np.sqrt(np.maximum(values, 1e-9))


def subset_panels(data: SimpleNamespace, pictures: object) -> list[Panel]:
    order = np.argsort(-np.abs(data.scores), axis=1)[:, :2]
    order.sort(axis=1)
    panels = []
    for pair in itertools.combinations(range(4), 2):
        rows = np.flatnonzero((order == pair).all(axis=1)).astype(np.int32)
        panels.append(one_panel(data, pictures, pair, rows))
    return sorted(panels, key=lambda panel: -len(panel.rows))


def one_panel(data: SimpleNamespace, pictures: object, pair: tuple, rows: np.ndarray) -> Panel:
    x, y = data.scores[rows][:, pair].T
    names = [str(component + 1) for component in pair]
    magnitudes = np.sort(np.abs(data.scores[rows]), axis=1)
    cells = []
    for sx, sy in itertools.product((1, -1), (1, -1)):
        inside = rows[(np.sign(x) == sx) & (np.sign(y) == sy)]
        label = " ".join(("+" if s > 0 else "−") + n for s, n in zip((sx, sy), names, strict=True))
        image = mean_image(pictures, inside) if len(inside) else None
        cells.append(Cell(label, len(inside), inside, (sx, sy), image))
    return Panel(
        title=f"{{{','.join(names)}}} · {len(rows):,} rows",
        subtitle=f"{len(rows) / data.n_rows:.1%} of all",
        rows=rows,
        x=x,
        y=y,
        x_title=f"component {names[0]}",
        y_title=f"component {names[1]}",
        hollow=magnitudes[:, -2] < 1.04 * magnitudes[:, -3],
        cells=cells,
    )


def map_panels(data: SimpleNamespace) -> list[Panel]:
    rows = np.arange(data.n_rows, dtype=np.int32)
    x, y = data.scores[:, :2].T
    rgb = np.clip(128 + 90 * data.scores[:, 1:4] / data.scores[:, 1:4].std(axis=0), 0, 255)
    leading = np.argmax(np.abs(data.scores), axis=1)
    axes = {"x_title": "UMAP 1", "y_title": "UMAP 2", "origin": False}
    return [
        Panel("aPPCA colours", "", rows, x, y, **axes, symbol=leading, rgb=np.uint8(rgb)),
        Panel("PCA colours", "", rows, x, y, **axes, rgb=np.uint8(rgb[:, ::-1])),
        Panel("Classes", "", rows, x, y, **axes),
    ]


def explore() -> None:
    query = st.query_params
    data = dataset(query.get("data", "digits"), int(query.get("n", "10000")))
    pictures = sprites_of(data)
    what = query.get("panels", "atlas")
    panels = map_panels(data) if what == "map" else subset_panels(data, pictures)
    panels = (panels * 3)[: int(query.get("count", len(panels)))]
    choice = st.segmented_control(
        "Colour by", ["Class", "Error", "None"], default="Class", key="by", required=True
    )
    values = {
        "Class": lambda: palette.colour_by("Class", data.labels),
        "Error": lambda: palette.colour_by("Reconstruction error", data.error),
        "None": lambda: None,
    }
    classes = palette.colour_by("Class", data.labels)
    hostile = np.array([f"{HOSTILE} {row}" for row in range(data.n_rows)])
    hover = HoverData(
        hostile if query.get("hostile") else np.arange(data.n_rows).astype(str),
        [
            HoverColumn("class", classes.values, classes.names),
            HoverColumn("error", data.error.astype(np.float32)),
        ],
    )
    with st.container():
        result = explorer(
            "demo",
            panels,
            n_rows=data.n_rows,
            revision=f"{data.digest}-{what}",
            colour=values[choice](),
            sprites=None if query.get("plain") else pictures,
            selection=st.session_state.get("kept"),
            hover=hover,
            thumbnail_px=int(query.get("px", "22")),
        )
    if result.changed:
        st.session_state["kept"] = result.selection
    if st.button("Select every seventh row"):
        st.session_state["kept"] = np.arange(data.n_rows) % 7 == 0
        st.rerun()
    kept = st.session_state.get("kept")
    rows = [] if kept is None else np.flatnonzero(kept).tolist()
    received = {"selected": len(rows), "rows": rows[:2000], "changed": result.changed}
    st.code(json.dumps(received), language=None)


def other() -> None:
    st.title("Another page")


def main() -> None:
    st.set_page_config(page_title="Explorer demo", layout="wide")
    pages = [st.Page(explore, url_path="explore"), st.Page(other, url_path="other")]
    st.navigation(pages).run()


if __name__ == "__main__":
    main()
