import json

import numpy as np

from appca.canvas.scene import scene_shown
from appca.data.dataset import Dataset
from appca.runs.numbering import Numbering, numbered
from tests.fitted_runs import fitted_run


def test_a_scene_has_the_numbers_names_colours_and_texts_of_the_page():
    active = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], bool)
    labels = {"digit": np.array(["b", "a", "b", ""]), "width": np.array([0.5, 1.5, 2.5, 3.5])}
    dataset = Dataset("d", np.eye(4, 3), np.array(["p", "q", "r", "s"]), labels)
    numbering = Numbering((2, 0, 1), (1, 1, -1), ("", "slant", ""))
    scene = scene_shown(dataset, numbered(fitted_run(active, **_features()), numbering))
    shown = [(one["number"], one["name"]) for one in scene.meta["components"]]
    assert shown == [(1, ""), (2, "slant"), (3, "")]
    assert scene.buffers["components"].tolist() == [[1, 2], [0, 2], [0, 1], [1, 2]]
    kinds = {name: one["kind"] for name, one in scene.meta["colourings"].items()}
    assert list(kinds) == ["label:digit", "label:width", "residual", "membership", "likelihood"]
    assert kinds["label:digit"] == "category"
    assert kinds["label:width"] == "quantity"
    hover = scene.meta["hover"]
    titles = [line["title"] for line in hover["lines"]]
    assert titles == ["digit", "width", "Residual", "Membership", "Likelihood"]
    assert [line.title for line in scene.lines] == titles
    assert json.loads(bytes(scene.buffers["hover.ids"])) == ["p", "q", "r", "s"]


def _features():
    from appca.data.preprocessing import Fitted

    return {"preprocessing": Fitted(1.0, np.zeros(3), np.ones(3), None)}
