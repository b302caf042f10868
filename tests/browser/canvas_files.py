"""Scenes of random rows as files, and a server for the canvas and a page of a scene."""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from appca.canvas.panels import usage_of
from appca.canvas.scene import Map, component_pictures, scene_of_usage
from appca.data.dataset import Dataset
from appca.plots.style import Colour
from benchmarks.scenes import write
from tests.fitted_runs import fitted_run

ROOT, N = Path(__file__).parents[2], 900


def write_scene(folder: Path, L: int, K: int) -> None:
    """Rows in random pairs of components, with images of their class."""
    random, active = np.random.default_rng(3), np.zeros((N, K), bool)
    for row in range(N):
        active[row, random.permutation(K)[:L]] = True
    scores = np.where(active, random.normal(1, 3, (N, K)), 0).astype(np.float32)
    classes = scores.argmax(1) % 4
    given = {"scores": scores, "membership": random.random(N).astype(np.float32)}
    given |= {"components": random.normal(size=(K, 144)), "n_active": L, "names": ("",) * K}
    run, images = fitted_run(active, **given), np.zeros((N, 12, 12), np.uint8)
    images[np.arange(N), classes * 3] = 255
    ids = np.array([f"bar {row}" for row in range(N)])
    dataset = Dataset("bars", images.reshape(N, 144).astype(np.float32), ids, image_shape=(12, 12))
    colour = Colour("category", "Bar", classes, ("a", "b", "c", "d"))
    maps = {"pca": Map("PCA", scores[:, :2])}
    entries = [{"number": k + 1, "name": "", "columns": []} for k in range(K)]
    marks = {"doubt": np.rint(run.membership * 255).astype(np.uint8)}
    of_run = entries, L, component_pictures(run, dataset), marks
    of_a_row = {"label": colour, "other": colour}, maps, ()
    write(scene_of_usage(usage_of(run, pictured=True), dataset, of_a_row, of_run), folder)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve scenes of four to six components; give the address of the page that shows them."""
    for name, L, K in (("four", 2, 4), ("two", 2, 5), ("three", 3, 5), ("six", 2, 6)):
        write_scene(folder / name, L, K)

    class Files(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            top, _, rest = path.partition("?")[0].lstrip("/").partition("/")
            known = {"scenes": folder, "appca": ROOT / "appca"}
            return str(known.get(top, ROOT / "tests" / "browser" / top) / rest)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/canvas.html"
    finally:
        server.shutdown()
        server.server_close()
