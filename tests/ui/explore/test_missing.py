"""Data with missing cells on every page, from the upload to the test on hidden cells."""

import io

import numpy as np
import pandas as pd
import pytest

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.ui import services
from appca.ui.choose import filled_csv
from tests.models.synthetic import planted
from tests.ui.conftest import go, healthy, html, sentences
from tests.ui.parts.test_pages import PAGES
from tests.ui.session.test_background import ScriptedJobs


@pytest.fixture(scope="module")
def gappy() -> Dataset:
    X = planted(120, 6, 4, 2, seed=0, noise=0.1).X
    missing = np.random.default_rng(1).random(X.shape) < 0.1
    missing[0] = False
    full = np.where(missing, np.nanmean(np.where(missing, np.nan, X), axis=0), X)
    kinds = {"kind": np.array(["=a", "b"] * 60)}
    return Dataset("gappy <b>", full, np.arange(120).astype(str), kinds, missing=missing)


@pytest.fixture
def stored(gappy) -> str:
    return DatasetStore(home()).put(gappy)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def text_of(app) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption])


def button(app, label):
    return next(one for one in app.button if one.label == label)


def test_every_page_draws_data_with_missing_cells(start, stored, gappy, jobs):
    app = start(data=stored)
    for page, title in PAGES.items():
        healthy(go(app, page))
        assert [one.value for one in app.title] == [title]
        assert f"{gappy.n_missing} missing cells" in html(app)


@pytest.mark.parametrize(
    ("page", "address", "times"),
    [("check/choose", {}, 1), ("check/trust", {}, 2)],
)
def test_pages_that_read_placeholders_say_so_of_data_with_gaps_alone(
    start, stored, gappy, jobs, page, address, times
):
    said = f"{gappy.n_missing} cells of these data are missing."
    assert text_of(healthy(start(page, data=stored, **address))).count(said) == times
    assert "of these data are missing" not in text_of(healthy(start(page, **address)))


def test_other_models_refuse_in_a_box(start, stored):
    app = start("explore", data=stored)
    app.selectbox(key="set-inference").select("hard").run()
    assert not app.exception
    (said,) = sentences(app)
    assert "choose Adaptive PPCA by exact EM or Probabilistic PCA" in said


def test_the_filled_table_holds_what_was_observed_and_what_the_model_says(gappy):
    values = np.arange(gappy.n_missing) + 100.0
    back = pd.read_csv(io.BytesIO(filled_csv(gappy, values)))
    assert list(back.columns) == ["id", "kind", *(f"feature_{j + 1}" for j in range(6))]
    X = back.iloc[:, 2:].to_numpy()
    np.testing.assert_array_equal(X[gappy.missing], values)
    np.testing.assert_allclose(X[~gappy.missing], gappy.X[~gappy.missing])
    assert back["kind"][0] == "'=a"  # a spreadsheet must not run it
