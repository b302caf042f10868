"""Rows are left out of the data on screen, and come back."""

import numpy as np

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.home import home
from tests.ui.conftest import address, healthy, html, sentences
from tests.ui.parts import test_pages


def opened(start, X: np.ndarray):
    ids = np.array([f"row {i}" for i in range(len(X))])
    labels = {"kind": np.arange(len(X)) % 3}
    return healthy(start("explore", data=DatasetStore(home()).put(Dataset("few", X, ids, labels))))


def select(app, mask: np.ndarray):
    test_pages.select(app, np.flatnonzero(mask), len(mask))
    app.query_params["tab"] = "selection"
    return healthy(app.run())


def on_screen(app) -> Dataset:
    return DatasetStore(home()).get(address(app)["data"])


def test_a_row_that_holds_the_variance_is_named_left_out_and_put_back(start):
    X = np.random.default_rng(0).normal(size=(60, 6))
    X[17] = 500.0
    app = opened(start, X)
    first = address(app)
    assert any("row 17" in text.value and "over 99%" in text.value for text in app.markdown)
    healthy(app.button(key="far_leave_out").click().run())
    left = on_screen(app)
    np.testing.assert_array_equal(left.X, np.delete(X, 17, axis=0))
    assert left.provenance["left_out"]["ids"] == ["row 17"]
    assert left.name == "few, 59 of 60 rows"
    assert (address(app)["k"], address(app)["l"]) == (first["k"], first["l"])
    assert not any("of the variance in the components" in text.value for text in app.markdown)
    healthy(app.button(key="put_back").click().run())
    assert address(app)["data"] == first["data"]
    assert "60 rows × 6" in html(app)


def test_the_selection_is_left_out_or_kept_alone_step_by_step(start):
    X = np.random.default_rng(1).normal(size=(60, 6))
    app = opened(start, X)
    every = on_screen(app)
    select(app, np.arange(60) < 20)
    healthy(app.button(key="fit_only_these").click().run())
    assert on_screen(app).ids.tolist() == every.ids[:20].tolist()
    select(app, np.arange(20) < 5)
    healthy(app.button(key="leave_out").click().run())
    assert on_screen(app).ids.tolist() == every.ids[5:20].tolist()
    noted = on_screen(app).provenance["left_out"]
    assert (noted["of"], noted["n"]) == (every.digest, 60)
    assert sorted(noted["ids"]) == sorted([*every.ids[:5], *every.ids[20:]])
    assert noted["why"] == "40 rows that were not selected, 5 selected rows"


def test_fewer_than_two_rows_are_not_left(start):
    app = opened(start, np.random.default_rng(2).normal(size=(60, 6)))
    digest = address(app)["data"]
    select(app, np.arange(60) < 59)
    app.button(key="leave_out").click().run()
    assert sentences(app) == [
        "A data set needs at least 2 rows; got 1, so add rows or choose more of them."
    ]
    assert address(app)["data"] == digest
