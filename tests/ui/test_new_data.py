"""New rows from a file: described by the run on screen, in a page or a job, and saved."""

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from appca.data.columns import matched, wanted_by
from appca.data.dataset import Dataset
from appca.data.readers import read
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context, project
from appca.runs.fit import key_of
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.ui import downloads, new_rows
from appca.ui.state import KEYS
from appca.words import InputError
from tests.fitted_runs import described_rows, fitted_run
from tests.ui.conftest import ScriptedJobs, address, healthy, sentences, told

PAGE = "data/add"


def csv_of(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def upload(app, content: bytes, name: str = "new.csv"):
    app.get("file_uploader")[-1].set_value([(name, content, "application/octet-stream")])
    return app.run()


def wine_frame() -> pd.DataFrame:
    wine = load("wine")
    frame = pd.DataFrame(wine.X, columns=list(wine.feature_names))
    return frame.assign(grower=next(iter(wine.labels.values())))


@pytest.fixture
def page(start):
    return start(PAGE, data=DatasetStore(home()).put(load("wine")))


@pytest.fixture
def saved(monkeypatch) -> list:
    """Return a list that grows by what the buttons of the page would save."""
    found = []
    monkeypatch.setattr(
        new_rows, "table_buttons", lambda made, shown, _stem, **_how: found.append((made, shown))
    )
    return found


def test_the_run_s_own_rows_shuffled_get_the_run_s_own_numbers_in_files_of_all_kinds(page, saved):
    frame = wine_frame().sample(frac=1, axis=1, random_state=1).assign(extra=1.5)
    app = healthy(upload(page, csv_of(frame)))
    said = "178 new rows; columns found by their names, in another order; not used: “extra”"
    assert said in told(app)
    made, shown = saved[-1]
    table, run = made(), RunStore(home()).get(address(app)["run"])
    assert shown.run.id == run.id
    for k in range(4):
        scores = run.fitted.scores[:, k]
        np.testing.assert_allclose(table[f"component_{k + 1}"], scores, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        table["log_likelihood"], run.fitted.log_likelihood_rows, rtol=0, atol=1e-10
    )
    assert list(table["grower"]) == list(next(iter(load("wine").labels.values())))
    for suffix in ("csv", "parquet", "npz"):
        content = io.BytesIO(downloads.file_of(suffix, made, shown))
        if suffix == "npz":
            found = dict(np.load(content, allow_pickle=False))
        else:
            found = getattr(pd, f"read_{suffix}")(content)
        assert len(found["fits"]) == 178
        assert (np.asarray(found["q"]) >= 0).all()
        beyond = np.asarray(found["q"]) > np.asarray(found["q_limit_run"])
        assert not np.asarray(found["fits"])[beyond].any()


def test_shifts_and_missing_cells_are_said_and_missing_columns_refused(page):
    frame = wine_frame()
    app = healthy(upload(page, csv_of(frame.assign(hue=frame["hue"] + 1.0))))
    assert "Most: the level of hue is higher in the new rows." in told(app)
    assert "drift_chart" in {chart.proto.id.rpartition("-")[2] for chart in app.get("plotly_chart")}
    upload(app, csv_of(frame.drop(columns=["hue", "ash"])))
    assert sentences(app) == [
        "“new” lacks 2 columns that the fit uses, “ash”, “hue”; add them, or name them as there."
    ]
    assert not app.exception
    frame.loc[3, "hue"] = np.nan
    frame["empty"] = np.nan  # a column the run does not know may be as it likes
    app = healthy(upload(app, csv_of(frame)))
    assert "178 new rows" in told(app)
    assert "Q of a row with missing cells uses the cells it has" in told(app)
    next(one for one in app.segmented_control if one.label == "Missing values").set_value("drop")
    assert "177 new rows" in told(healthy(app.run()))


def test_images_of_another_size_are_refused_or_brought_to_size_and_noise_stands_first(start):
    pack = io.BytesIO()
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(pack, "w") as archive:
        for i in range(4):
            picture = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (12, 12), dtype=np.uint8)).save(picture, "PNG")
            archive.writestr(f"noise/{i}.png", picture.getvalue())
    app = upload(start(PAGE), pack.getvalue(), "noise.zip")
    (sentence,) = sentences(app)
    assert "12 × 12 pixels, those of the fit 8 × 8 pixels" in sentence
    app = healthy(app.toggle(key="new_data_resize").set_value(True).run())
    assert "4 of 4 new rows do not fit" in told(app)
    pack = io.BytesIO()
    np.save(pack, np.vstack([load("digits").X[:50], rng.uniform(0, 16, (5, 64))]))
    app = healthy(upload(app, pack.getvalue(), "mixed.npy"))
    (table,) = app.dataframe
    first = table.value.iloc[:5]
    assert sorted(first["id"]) == [f"row-{n}" for n in range(51, 56)]
    assert set(first["fits"]) == {"no"}
    for column in ("image", "reconstruction"):
        assert all(uri.startswith("data:image/png") for uri in first[column])


@pytest.fixture
def slow(monkeypatch, jobs) -> ScriptedJobs:
    """Let describing new rows always be work for a worker."""
    monkeypatch.setattr(new_rows, "is_quick", lambda *_: False)
    return jobs


def refuse(*_: object) -> None:
    raise InputError("The disk is full.")


def test_long_work_is_a_job_that_is_cancelled_fails_with_a_sentence_or_is_done_once(
    page, slow, monkeypatch
):
    app = healthy(upload(page, csv_of(wine_frame())))
    (first,) = slow.jobs
    assert slow.jobs[first].kind == "project"
    assert not app.dataframe
    app.button(key="new_data_cancel").click().run()
    assert slow.cancelled == [first]
    assert not app.dataframe
    with monkeypatch.context() as full:
        full.setattr(new_rows, "keep_rows", refuse)
        app.button(key="new_data_start").click().run()
    assert [problem.message for problem in app.exception] == []
    assert sentences(app) == ["The disk is full."]
    app.button(key="new_data_start").click().run()
    gone = "The fit or the new rows are not there any more; open both again."
    slow.end(list(slow.jobs)[-1], "failed", gone)
    assert sentences(app.run()) == [gone]
    assert len(slow.jobs) == 2, "it is not tried again"
    app.button(key="new_data_start").click().run()
    job = list(slow.jobs)[-1]
    slow.end(job, "done", **project(slow.jobs[job].spec, Context(home())))
    app = healthy(app.run())
    (table,) = app.dataframe
    assert len(table.value) == 100
    assert "The 100 that fit least of 178." in told(app)
    app.run()
    assert len(slow.jobs) == 3  # what is known is not computed again


def test_rows_marked_in_the_picture_are_the_ones_listed_and_a_single_one_is_described(page):
    content = csv_of(wine_frame().head(30))
    app = healthy(upload(page, content))
    assert len(app.dataframe[0].value) == 30
    run = RunStore(home()).get(address(app)["run"])
    new = matched(read("new.csv", io.BytesIO(content)), wanted_by(load("wine"))).dataset
    app.session_state[KEYS.marked] = {f"{key_of(run.id, new.digest)}-": np.array([4, 9])}
    app = healthy(app.run())
    assert sorted(app.dataframe[0].value["id"]) == ["row-10", "row-5"]
    app = healthy(upload(app, csv_of(wine_frame().iloc[[5]]), "one.csv"))
    assert "All 1 new row fit" in told(app) or "1 of 1 new row does not fit" in told(app)
    assert list(app.dataframe[0].value["id"]) == ["row-1"]


def test_the_picture_holds_both_kinds_of_rows():
    old = Dataset("old", np.eye(6)[:, :4], np.arange(6), {"class": np.arange(6)}, (2, 2))
    new = Dataset("new", np.ones((3, 4)), np.array(["0", "1", "x"]), {"kind": ["a", "b", "c"]})
    mixed = described_rows(np.array([[1, 1, 0], [0, 1, 1], [0, 1, 1]], dtype=bool))
    fitted = fitted_run(np.array([[1, 1, 0]] * 6, dtype=bool))
    both = new_rows.together(old, fitted, new, mixed, np.array([0, 1, 2]))
    assert both.n_old == 6
    assert len(set(both.dataset.ids)) == 9
    assert list(both.dataset.labels["class"]) == [*"012345", "", "", ""]
    assert list(both.dataset.labels["kind"]) == [""] * 6 + ["a", "b", "c"]
