"""Points coloured by any column: which choices there are, and that the colours are that column."""

import numpy as np
import pytest

from appca.canvas import scene
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.plots.style import Colour
from appca.runs.home import home
from appca.ui import controls
from tests.ui.conftest import go, healthy


@pytest.fixture
def colours(monkeypatch) -> list[Colour]:
    """Return a list that grows by what points are coloured by, page after page."""
    seen, real = [], scene.colour_of

    def kept(dataset, fitted, choice):
        seen.append(real(dataset, fitted, choice))
        return seen[-1]

    monkeypatch.setattr(scene, "colour_of", kept)
    return seen


def choice(app, digest: str):
    return app.radio(key=f"colour-{digest[:8]}")


def test_a_pixel_colours_the_points_and_the_choice_is_kept(start, colours):
    digits = load("digits")
    app, key = healthy(start()), f"feature-{digits.digest[:8]}"
    assert choice(app, digits.digest).options == [
        *("Digit", "Residual", "Membership", "Likelihood", "Trust of the panels", "Pixel…")
    ]
    assert key not in [box.key for box in app.selectbox]
    choice(app, digits.digest).set_value(controls.FEATURE).run()
    assert len(healthy(app).selectbox(key=key).options) == 64
    assert colours[-1].name == "pixel row 5, column 5"
    app.selectbox(key=key).set_value(21).run()
    np.testing.assert_array_equal(colours[-1].values, digits.X[:, 21])
    healthy(go(app, "components/gallery"))
    healthy(go(app, "explore"))
    assert app.selectbox(key=key).value == 21


def test_columns_of_a_table_are_offered_by_name_beside_all_labels(start, colours):
    X = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    missing = np.zeros(X.shape, dtype=bool)
    missing[5, 2] = True
    labels = {name: np.array(["a", "b"] * 20) for name in ("kind", "column", "third")}
    names = ("*a*", "b", "<b>c</b>")
    table = Dataset("t", X, np.arange(40), labels, feature_names=names, missing=missing)
    app = healthy(start(data=DatasetStore(home()).put(table)))
    box = choice(app, table.digest)
    assert box.options[:3] == ["Kind", "Column", "Third"]
    assert box.options[-1] == "Column…"
    box.set_value(controls.FEATURE).run()
    feature = healthy(app).selectbox(key=f"feature-{table.digest[:8]}")
    assert feature.options == list(names)
    feature.set_value(2).run()
    assert (healthy(app) and colours[-1].name) == "<b>c</b>"
    assert np.flatnonzero(np.isnan(colours[-1].values)).tolist() == [5]


def test_very_many_columns_are_chosen_by_number_and_none_is_left_out(start, colours):
    total = controls.MOST_LISTED + 1
    X = np.random.default_rng(0).normal(size=(30, total)).astype(np.float32)
    wide = Dataset("wide", X, np.arange(30))
    app = healthy(start(data=DatasetStore(home()).put(wide)))
    choice(app, wide.digest).set_value(controls.FEATURE).run()
    box = healthy(app).number_input(key=f"feature-{wide.digest[:8]}")
    assert (box.min, box.max, box.value) == (1, total, 1)
    box.set_value(total).run()
    assert (healthy(app) and colours[-1].name) == f"feature {total}"
    np.testing.assert_array_equal(colours[-1].values, X[:, -1].astype(float))
