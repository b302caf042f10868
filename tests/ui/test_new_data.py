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
from appca.ui import downloads, new_rows, services
from appca.ui.state import KEYS
from appca.words import InputError
from tests.fitted_runs import described_rows, fitted_run
from tests.ui.conftest import address, healthy, sentences
from tests.ui.test_background import ScriptedJobs

PAGE = "data/add"


def csv_of(frame: pd.DataFrame, name: str = "new.csv") -> tuple[str, bytes, str]:
    return (name, frame.to_csv(index=False).encode(), "text/csv")


def upload(app, file: tuple[str, bytes, str]):
    app.get("file_uploader")[-1].set_value([file])
    return app.run()


def words(app) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption]).replace("\\", "")


def wine_frame() -> pd.DataFrame:
    wine = load("wine")
    return pd.DataFrame(wine.X, columns=list(wine.feature_names)).assign(
        grower=next(iter(wine.labels.values()))
    )


@pytest.fixture
def wine_page(start):
    return start(PAGE, data=DatasetStore(home()).put(load("wine")))


def test_the_run_s_own_rows_shuffled_get_the_run_s_own_numbers(wine_page, monkeypatch):
    saved = []
    monkeypatch.setattr(
        "appca.ui.new_rows.table_buttons",
        lambda made, shown, _stem, **_how: saved.append((made(), shown)),
    )
    frame = wine_frame().sample(frac=1, axis=1, random_state=1).assign(extra=1.5)
    app = healthy(upload(wine_page, csv_of(frame)))
    assert "178 new rows; columns found by their names, in another order; not used: “extra”" in (
        words(app)
    )
    table, shown = saved[-1]
    run = RunStore(home()).get(address(app)["run"])
    assert shown.run.id == run.id
    for k in range(4):
        np.testing.assert_allclose(
            table[f"component_{k + 1}"], run.fitted.scores[:, k], rtol=0, atol=1e-10
        )
    np.testing.assert_allclose(
        table["log_likelihood"], run.fitted.log_likelihood_rows, rtol=0, atol=1e-10
    )
    assert list(table["grower"]) == list(next(iter(load("wine").labels.values())))


def test_what_has_shifted_is_said_and_drawn(wine_page):
    frame = wine_frame()
    frame["hue"] += 1.0
    app = healthy(upload(wine_page, csv_of(frame)))
    assert "Most: the level of hue is higher in the new rows." in words(app)
    assert "drift_chart" in {chart.proto.id.rpartition("-")[2] for chart in app.get("plotly_chart")}


def test_missing_columns_are_one_sentence_with_their_names(wine_page):
    frame = wine_frame().drop(columns=["hue", "ash"])
    app = upload(wine_page, csv_of(frame))
    assert sentences(app) == [
        "“new” lacks 2 columns that the fit uses, “ash”, “hue”; add them, or name them as there."
    ]
    assert not app.exception


def test_missing_cells_are_filled_from_the_model_until_somebody_says_otherwise(wine_page):
    frame = wine_frame()
    frame.loc[3, "hue"] = np.nan
    frame["empty"] = np.nan  # a column the run does not know may be as it likes
    app = healthy(upload(wine_page, csv_of(frame)))
    assert "178 new rows" in words(app)
    assert "Q of a row with missing cells uses the cells it has" in words(app)
    next(one for one in app.segmented_control if one.label == "Missing values").set_value("drop")
    assert "177 new rows" in words(healthy(app.run()))


def test_images_of_another_size_are_refused_or_brought_to_size(start):
    pack = io.BytesIO()
    rng = np.random.default_rng(0)
    with zipfile.ZipFile(pack, "w") as archive:
        for i in range(4):
            picture = io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (12, 12), dtype=np.uint8)).save(picture, "PNG")
            archive.writestr(f"noise/{i}.png", picture.getvalue())
    app = upload(start(PAGE), ("noise.zip", pack.getvalue(), "application/zip"))
    (sentence,) = sentences(app)
    assert "12 × 12 pixels, those of the fit 8 × 8 pixels" in sentence
    app = healthy(app.toggle(key="new_data_resize").set_value(True).run())
    assert "4 of 4 new rows do not fit" in words(app)


def test_rows_of_an_array_are_held_against_the_run_and_noise_stands_first(start):
    rng = np.random.default_rng(0)
    pack = io.BytesIO()
    np.save(pack, np.vstack([load("digits").X[:50], rng.uniform(0, 16, (5, 64))]))
    app = healthy(upload(start(PAGE), ("mixed.npy", pack.getvalue(), "application/octet-stream")))
    (table,) = app.dataframe
    first = table.value.iloc[:5]
    assert sorted(first["id"]) == [f"row-{n}" for n in range(51, 56)]
    assert set(first["fits"]) == {"no"}
    assert all(uri.startswith("data:image/png") for uri in first["image"])
    assert all(uri.startswith("data:image/png") for uri in first["reconstruction"])


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    """Let describing new rows always be work for a worker, and say what becomes of it."""
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    monkeypatch.setattr(new_rows, "is_quick", lambda *_: False)
    return scripted


def refuse(*_: object) -> None:
    raise InputError("The disk is full.")


def finish(jobs: ScriptedJobs, job: str) -> None:
    spec = jobs.jobs[job].spec
    jobs.end(job, "done", **project(spec, Context(home())))


def test_long_work_is_a_job_that_can_be_cancelled_and_started_again(wine_page, jobs, monkeypatch):
    app = healthy(upload(wine_page, csv_of(wine_frame())))
    (first,) = jobs.jobs
    assert jobs.jobs[first].kind == "project"
    assert not app.dataframe
    app.button(key="new_data_cancel").click().run()
    assert jobs.cancelled == [first]
    assert not app.dataframe
    with monkeypatch.context() as full:
        full.setattr(new_rows, "keep_rows", refuse)
        app.button(key="new_data_start").click().run()
    assert [problem.message for problem in app.exception] == []
    assert sentences(app) == ["The disk is full."]
    app.button(key="new_data_start").click().run()
    second = list(jobs.jobs)[-1]
    assert second != first
    finish(jobs, second)
    app = healthy(app.run())
    assert len(app.dataframe) == 1
    assert len(app.dataframe[0].value) == 100
    assert "The 100 that fit least of 178." in words(app)
    app.run()
    assert len(jobs.jobs) == 2  # what is known is not computed again


def test_a_job_that_fails_says_why(wine_page, jobs):
    app = healthy(upload(wine_page, csv_of(wine_frame())))
    (job,) = jobs.jobs
    jobs.end(job, "failed", "The fit or the new rows are not there any more; open both again.")
    app.run()
    assert sentences(app) == ["The fit or the new rows are not there any more; open both again."]
    assert len(jobs.jobs) == 1


def test_rows_marked_in_the_picture_are_the_ones_listed(wine_page):
    frame = wine_frame().head(30)
    app = healthy(upload(wine_page, csv_of(frame)))
    assert len(app.dataframe[0].value) == 30
    run = RunStore(home()).get(address(app)["run"])
    new = matched(read_frame(frame), wanted_by(load("wine"))).dataset
    app.session_state[KEYS.marked] = {f"{key_of(run.id, new.digest)}-": np.array([4, 9])}
    app = healthy(app.run())
    assert sorted(app.dataframe[0].value["id"]) == ["row-10", "row-5"]


def read_frame(frame: pd.DataFrame) -> Dataset:
    name, content, _ = csv_of(frame)
    return read(name, io.BytesIO(content))


def test_a_single_row_is_described(wine_page):
    app = healthy(upload(wine_page, csv_of(wine_frame().iloc[[5]], "one.csv")))
    assert "All 1 new row fit" in words(app) or "1 of 1 new row does not fit" in words(app)
    assert list(app.dataframe[0].value["id"]) == ["row-1"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_the_saved_file_holds_every_new_row_with_its_distances(
    wine_page, monkeypatch, suffix, tmp_path
):
    saved = {}

    def keep(made, shown, stem, **_how):
        saved[stem] = downloads.file_of(suffix, made, shown)

    monkeypatch.setattr(new_rows, "table_buttons", keep)
    healthy(upload(wine_page, csv_of(wine_frame().head(30))))
    file = tmp_path / f"rows.{suffix}"
    file.write_bytes(saved["new-rows"])
    if suffix == "npz":
        with np.load(file, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    else:
        found = getattr(pd, f"read_{suffix}")(file)
    assert len(found["fits"]) == 30
    assert (np.asarray(found["q"]) >= 0).all()
    beyond = np.asarray(found["q"]) > np.asarray(found["q_limit_run"])
    assert not np.asarray(found["fits"])[beyond].any()


def test_the_picture_holds_both_kinds_of_rows():
    old = Dataset("old", np.eye(6)[:, :4], np.arange(6), {"class": np.arange(6)}, (2, 2))
    new = Dataset("new", np.ones((3, 4)), np.array(["0", "1", "x"]), {"kind": ["a", "b", "c"]})
    active = np.array([[1, 1, 0]] * 6, dtype=bool)
    mixed = np.array([[1, 1, 0], [0, 1, 1], [0, 1, 1]], dtype=bool)
    both = new_rows.together(
        old, fitted_run(active), new, described_rows(mixed), np.array([0, 1, 2])
    )
    assert both.n_old == 6
    assert len(set(both.dataset.ids)) == 9
    assert list(both.dataset.labels["class"]) == [*"012345", "", "", ""]
    assert list(both.dataset.labels["kind"]) == [""] * 6 + ["a", "b", "c"]
