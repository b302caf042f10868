"""The map as a view of Explore: offered in one press, drawn when it is there, its settings kept."""

import numpy as np
import pytest

from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.canvas.panels import trust_colour
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.ui import canvas
from tests.ui.conftest import address, go, healthy

PAGE = "explore"


def stored_map(app, trust: np.ndarray | None = None, **options: object) -> np.ndarray:
    """Store a map for what is on screen, as a job would."""
    run = RunStore(home()).get(address(app)["run"])
    config = EmbeddingConfig(run.config.dataset, run.config.preprocessing, **options)
    rows = np.random.default_rng(0).normal(size=(1797, 2)).astype(np.float32)
    EmbeddingStore(home()).save(config, Embedding(rows, trust))
    return rows


def test_the_map_is_offered_until_it_is_there_and_offered_anew_for_other_settings(start):
    app = healthy(start(PAGE))
    view = app.segmented_control(key="view-2")
    assert view.options == ["Subspaces", "PCA", "Map"]
    healthy(view.set_value("umap").run())
    assert app.button(key="umap_run").label == "Lay out the map, about 17 s"
    stored_map(app)
    assert "umap_run" not in [button.key for button in healthy(app.run()).button]
    healthy(app.number_input(key="umap_min_dist").set_value(0.5).run())
    healthy(app.run())
    assert app.button(key="umap_run")
    stored_map(app, min_dist=0.5)
    assert "umap_run" not in [button.key for button in healthy(app.run()).button]


@pytest.mark.parametrize("n_rows", [2, 3])
def test_fewer_rows_than_have_neighbours_are_said_to_be_too_few(start, n_rows):
    few = Dataset("few", np.random.default_rng(0).normal(size=(n_rows, 4)), list("abc")[:n_rows])
    app = healthy(start(PAGE, data=DatasetStore(home()).put(few)))
    view = next(one for one in app.segmented_control if one.key.startswith("view-"))
    healthy(view.set_value("umap").run())
    told = [text.value for text in app.caption if "A map needs" in text.value]
    assert bool(told) == (n_rows == 2)


def test_rows_are_coloured_by_the_trust_of_their_panels(start, monkeypatch):
    app = healthy(start(PAGE))
    colour = next(box for box in app.radio if box.key.startswith("colour-")).key
    drawn = []
    monkeypatch.setattr(canvas, "trust_colour", lambda *of: drawn.append(of) or trust_colour(*of))
    healthy(app.radio(key=colour).set_value("panels").run())
    [(levels, title)] = drawn
    assert (title, levels.shape) == ("Trust of the panels", (1797, 3))
    assert 0 < np.nanmean(levels[:, 0]) < 0.5


def test_rows_are_coloured_by_the_trust_of_a_map_that_has_it_and_the_choice_ends_with_it(start):
    app = healthy(start(PAGE))
    colour = next(box for box in app.radio if box.key.startswith("colour-")).key
    assert "Trust of the map" not in app.radio(key=colour).options
    trust = np.tile(np.float32([0.1, 0.02, 0.6]), (1797, 1))
    stored_map(app, trust)
    first = healthy(start(PAGE))  # another window, before it has drawn any fit
    assert "Trust of the map" in first.radio(key=colour).options
    healthy(app.run())
    healthy(app.radio(key=colour).set_value("trust").run())
    text = "Trustworthiness 0.900, continuity 0.980, nearest rows kept 60%. 1,797 of 1,797 rows"
    assert any(caption.value.startswith(text) for caption in app.caption)
    healthy(go(app, "export"))
    healthy(go(app, "explore"))
    healthy(app.radio(key=colour).set_value("trust").run())
    stored_map(app, None)
    assert healthy(app.run()).radio(key=colour).value != "trust"
