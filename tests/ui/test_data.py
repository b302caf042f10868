"""Tests of the page Data: files, a shared home, deletion, many columns, new rows."""

import io
import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import nibabel
import numpy as np
import pandas as pd
import pytest

from appca.data.columns import matched, wanted_by
from appca.data.dataset import Dataset
from appca.data.readers import read
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context, project
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.storage.identity import digest_of
from appca.ui import downloads, new_rows, services
from appca.ui.arrivals import Reading
from appca.ui.state import KEYS
from appca.ui.this_data import columns_of, contents
from appca.words import InputError
from tests.data.file_makers import counts, encoded, h5ad, idx, noise, packed, store
from tests.fitted_runs import described_rows, fitted_run
from tests.pages import give, table
from tests.ui.conftest import (
    Bar,
    address,
    choices,
    choose,
    chosen,
    click,
    find,
    go,
    healthy,
    html,
    keys,
    press,
    sentences,
    told,
)

SECRET = "Zyxwvut"


@pytest.fixture
def app(start):
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(rng.random((40, 3)), [f"{SECRET}{i}" for i in range(40)], list("abc"))
    content = frame.to_csv(index_label="name", float_format="%.4f").encode()
    return healthy(give(start("data/open"), (f"{SECRET}.csv", content)))


def holding(word: str) -> list[Path]:
    wide = np.array(word).tobytes()
    texts = ((path, path.read_bytes()) for path in home().rglob("*") if path.is_file())
    return [file for file, text in texts if word.encode() in text or wide in text]


def digests() -> set[str]:
    return {one.digest for one in DatasetStore(home()).list()}


def test_deleted_work_is_gone_from_the_disk_with_its_earlier_readings(app):
    choose(go(app, "data/this"), "preview", "Role of c", "Ignored")
    app.button(key="upload_use").click().run()
    assert len([one for one in DatasetStore(home()).list() if one.name == SECRET]) == 2
    assert len(holding(SECRET)) > 3
    last = address(healthy(app))["run"]
    go(app, "data/open").button(key=f"delete-{last}").click().run()
    assert holding(SECRET) == []
    assert not [one for one in RunStore(home()).list() if one.config.dataset not in digests()]
    assert address(healthy(app))["data"] in digests()
    healthy(go(app, "explore"))


def test_data_that_other_work_needs_stay_until_all_is_deleted_at_one_place(app):
    first = RunStore(home()).get(address(app)["run"])
    RunStore(home()).rename(first.id, SECRET)
    other = replace(first.config, parameters=first.config.parameters | {"random_state": 7})
    second = RunStore(home()).save(other, FitResult(first.fitted, first.info), "second")
    said = "The data “Zyxwvut” are kept for 1 other fit."
    go(app, "data/open").button(key=f"delete-{second.id}").click().run()
    assert said in [one.value.replace("\\", "") for one in healthy(app).info]
    assert RunStore(home()).get(second.id) is None
    assert RunStore(home()).get(first.id) is not None
    assert first.config.dataset in digests()
    go(app, "data/open").button(key="recent_all_really").click().run()
    assert holding(SECRET) == []
    assert [one.name for one in DatasetStore(home()).list()] == ["Handwritten digits, 8 × 8"]
    assert SECRET not in html(healthy(app))


def test_what_a_shared_home_holds_is_listed_with_its_origin_and_opens(start, tmp_path, monkeypatch):
    folder = tmp_path / "lab-data"
    wine, planes = load("wine"), load("planes")
    digest, other = DatasetStore(folder).put(wine), DatasetStore(folder).put(planes)
    config = RunConfig(digest, {}, "PPCA", defaults("PPCA") | {"n_components": 2})
    RunStore(folder).save(config, fit_run(wine, config), "of the lab")
    app = start("data/open")
    assert not any("lab-data" in one.value for one in app.subheader)
    monkeypatch.setenv(files.SHARED, str(folder))
    app = healthy(go(app, "data/open"))
    assert "Shared by lab-data" in [one.value for one in app.subheader]
    assert f"open-{config.id}" in keys(app)
    assert f"name-{config.id}" not in [one.key for one in app.text_input]
    assert address(click(app, f"shared-0-{other}"))["data"] == other
    assert address(click(go(app, "data/open"), f"open-{config.id}"))["run"] == config.id
    assert not digests() & {digest, other}


MOST_OPTIONS = 2000  # of one widget
MOST_LETTERS = 500_000  # of all HTML of a page
PLACES = ("explore", "groups/differences", "components/gallery", "check/trust", "export")


@pytest.mark.parametrize(
    ("columns", "found"), [(2150, 111), pytest.param(100_000, 1111, marks=pytest.mark.slow)]
)
def test_the_pages_stay_usable_with_very_many_columns(columns, found, start):
    app = start("data/open")
    app.default_timeout = 100
    give(app, ("genes.csv", table(columns=columns)))
    assert f"40 rows × {columns:,}" in html(healthy(app))
    go(app, "data/this")
    assert f"1 to 24 of {columns:,} other columns" in html(healthy(app))
    app.session_state[f"preview_first-{app.session_state[KEYS.arrival].key}"] = 2
    choose(app.run(), "preview", "Role of g30", "Ignored")
    assert ("Role of g29" in html(healthy(app)), "Role of g5" in html(app)) == (True, False)
    choose(app, "preview", "Role of g30", "Feature")
    find(app.text_input, "Find a column").set_value("g17").run()
    choose(healthy(app), "role_of_all", f"Use {found:,} columns as", "Ignored")
    assert f"40 rows × {columns - found:,}" in html(click(app, "upload_use"))
    for place in ("data/this", "data/open", *PLACES):
        go(app, place)
        widgets = [*healthy(app).selectbox, *app.multiselect, *app.radio]
        assert max((len(one.options) for one in widgets), default=0) < MOST_OPTIONS
        assert len(html(app)) < MOST_LETTERS


def test_whole_numbers_that_may_be_labels_become_some_by_one_click_on_two_pages(start):
    rng = np.random.default_rng(1)
    lines = [f"{i % 11 + 1},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    file = ("t.csv", "\n".join(["population,a,b", *lines]).encode())
    app = give(start("data/open"), file)
    assert "may be labels" in told(healthy(app))
    go(app, "data/this")
    assert chosen(app, "Role of population") == "Feature"
    assert "as label" in html(choose(app, "preview", "Role of a", "Ignored")), "not answered yet"
    press(click(app, "detected_roles"), "read_as", "suggested")
    assert chosen(healthy(app), "Role of population") == "Label"
    assert "as label" not in html(app)
    assert "44 rows × 2" in html(click(app, "upload_use"))
    give(go(app, "data/open"), ("t.csv", file[1].replace(b"population", b"counted")))
    go(healthy(app), "explore").button(key="assumed_label").click().run()
    assert any("Labels" in one.value and "counted" in one.value for one in healthy(app).markdown)
    assert "assumed_label" not in keys(app)
    assert "upload_use" not in keys(go(app, "data/this"))


def test_totals_and_running_numbers_are_proposed_as_such_and_roles_come_back(start):
    rng = np.random.default_rng(1)
    items, rest = rng.normal(size=(60, 4)).round(2), rng.normal(size=(60, 2))
    frame = pd.DataFrame(items, columns=[*"abcd"]).assign(place=7 + rng.permutation(60))
    frame[["law_x", "law_y", "law"]] = np.c_[rest, rest.mean(axis=1)]
    frame = frame.assign(total=items.sum(axis=1).round(2), twice=2 * frame.a, less=-frame.a)
    file = ("scores.csv", frame.to_csv(index=False).encode())
    app = go(healthy(give(start("data/open"), file)), "explore")
    assert "“law”, “twice”, “less”, “place”, “total”" in app.button(key="assumed_redundant").label
    assert "“twice”, “less” repeat other features." in html(go(app, "data/this"))
    app.selectbox(key="pre-prepare").select("asinh").run()
    press(app.selectbox(key="pre-scale").select("none").run(), "read_as", "suggested")
    assert chosen(healthy(app), "Role of less") == chosen(app, "Role of twice") == "Ignored"
    means = {"law": "the mean of “law_x”, “law_y”", "place": "a running number"}
    for name, what in (means | {"total": "the sum of “a”, “b”, “c”"}).items():
        assert f"“{name}” is {what}" in html(app)
        press(app, "read_as", "suggested")
        assert chosen(healthy(app), f"Role of {name}") == "Ignored"
    assert "not used yet" in told(healthy(go(app, "explore")))
    of = click(app, "assumed_draft").session_state[KEYS.config].preprocessing
    assert ("60 rows × 6" in html(app), of["prepare"], of["scale"]) == (True, "asinh", "none")
    app = go(healthy(give(go(app, "data/open"), file)), "explore")
    assert all(("60 rows × 6" in html(app), "the roles last chosen for them" in told(app)))


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
    return start(PAGE, data=load("wine"))


@pytest.fixture
def saved(monkeypatch) -> list:
    found = []
    monkeypatch.setattr(new_rows, "table_buttons", lambda *given, **_: found.append(given[:2]))
    return found


def test_the_run_s_own_rows_shuffled_get_the_run_s_own_numbers_in_files_of_all_kinds(page, saved):
    frame = wine_frame().sample(frac=1, axis=1, random_state=1).assign(extra=1.5)
    app = healthy(upload(page, csv_of(frame)))
    assert "178 new rows; columns matched by name, in another order; not used: “extra”" in told(app)
    made, shown = saved[-1]
    table, run = made(), RunStore(home()).get(address(app)["run"])
    assert shown.run.id == run.id
    of_run = {f"component_{k + 1}": run.fitted.scores[:, k] for k in range(4)}
    for name, values in (of_run | {"log_likelihood": run.fitted.log_likelihood_rows}).items():
        np.testing.assert_allclose(table[name], values, rtol=0, atol=1e-10)
    assert list(table["grower"]) == list(next(iter(load("wine").labels.values())))
    for suffix, reads in (("csv", pd.read_csv), ("parquet", pd.read_parquet), ("npz", np.load)):
        content = reads(io.BytesIO(downloads.file_of(suffix, made, shown)))
        q, limit, fits = (np.asarray(content[name]) for name in ("q", "q_limit_run", "fits"))
        assert (len(fits), (q >= 0).all()) == (178, True)
        assert not fits[q > limit].any()


def test_shifts_and_missing_cells_are_said_and_missing_columns_refused(page):
    frame = wine_frame()
    app = healthy(upload(page, csv_of(frame.assign(hue=frame["hue"] + 1.0))))
    assert "Most: the level of hue is higher in the new rows." in told(app)
    assert "drift_chart" in {chart.proto.id.rpartition("-")[2] for chart in app.get("plotly_chart")}
    upload(app, csv_of(frame.drop(columns=["hue", "ash"])))
    (said,) = sentences(app)
    assert said.startswith("“new” lacks 2 columns that the fit uses, “ash”, “hue”; add them,")
    assert not app.exception
    frame.loc[3, "hue"] = np.nan
    frame["empty"] = np.nan  # a column the run does not know may be as it likes
    app = healthy(upload(app, csv_of(frame)))
    assert "178 new rows" in told(app)
    assert "For a row with missing cells, Q uses the other cells" in told(app)
    find(app.segmented_control, "Missing values").set_value("drop")
    assert "177 new rows" in told(healthy(app.run()))


def test_images_of_another_size_are_refused_or_brought_to_size_and_noise_stands_first(start):
    rng = np.random.default_rng(0)
    pictures = packed({f"noise/{i}.png": encoded(noise(i, 12, 12)) for i in range(4)})
    app = upload(start(PAGE), pictures, "noise.zip")
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
    assert set(first["stands out"]) == {"yes"}
    uris = [*first["image"], *first["reconstruction"]]
    assert all(uri.startswith("data:image/png") for uri in uris)


def test_long_work_is_a_job_that_is_cancelled_fails_or_is_done_once(page, jobs, monkeypatch):
    monkeypatch.setattr(new_rows, "is_quick", lambda *_: False)
    app = healthy(upload(page, csv_of(wine_frame())))
    (first,) = jobs.jobs
    assert jobs.jobs[first].kind == "project"
    assert not app.dataframe
    app.button(key="new_data_cancel").click().run()
    assert jobs.cancelled == [first]
    assert not app.dataframe
    with monkeypatch.context() as full:
        full.setattr(new_rows, "keep_rows", Mock(side_effect=InputError("The disk is full.")))
        app.button(key="new_data_start").click().run()
    assert [problem.message for problem in app.exception] == []
    assert sentences(app) == ["The disk is full."]
    app.button(key="new_data_start").click().run()
    gone = "The fit or the new rows no longer exist; open both again."
    jobs.end(list(jobs.jobs)[-1], "failed", gone)
    assert sentences(app.run()) == [gone]
    assert len(jobs.jobs) == 2, "it is not tried again"
    app.button(key="new_data_start").click().run()
    job = list(jobs.jobs)[-1]
    jobs.end(job, "done", **project(jobs.jobs[job].spec, Context(home())))
    app = healthy(app.run())
    (table,) = app.dataframe
    assert len(table.value) == 178
    app.run()
    assert len(jobs.jobs) == 3  # what is known is not computed again


def test_rows_marked_in_the_picture_are_the_ones_listed_and_a_single_one_is_described(page):
    content = csv_of(wine_frame().head(30))
    app = healthy(upload(page, content))
    assert len(app.dataframe[0].value) == 30
    run = RunStore(home()).get(address(app)["run"])
    new = matched(read("new.csv", io.BytesIO(content)), wanted_by(load("wine"))).dataset
    app.session_state[KEYS.marked] = {f"{digest_of([run.id, new.digest])}-": np.array([4, 9])}
    app = healthy(app.run())
    assert sorted(app.dataframe[0].value["id"]) == ["row-10", "row-5"]
    app = healthy(upload(app, csv_of(wine_frame().iloc[[5]]), "one.csv"))
    assert "No misfit in 1 new row" in told(app) or "1 of 1 new row does not fit" in told(app)
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


def test_a_file_opens_at_once_and_tells_what_to_check_and_one_of_its_name_takes_its_place(start):
    frame = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 6)), columns=[*"abcde", "age"])
    frame.loc[::2, ["d", "e"]], frame["age"] = np.nan, [130, *(np.arange(39) % 7)]
    frame = frame.assign(name=[f"p{i}" for i in range(40)], kind=["x", "y"] * 20)
    app = give(start("data/open"), ("mine <b>.csv", csv_of(frame)))
    assert "Read as UTF-8 text, commas · Row names: name · Labels: kind" in told(healthy(app))
    assert "2 columns are empty wherever kind = x: " in told(app)
    assert app.title[0].value == "Explore"
    assert "40 rows × 6" in html(app)
    assert "mine &lt;b&gt;.csv" in html(go(app, "data/this"))
    assert "“d”, “e” are empty wherever kind = x." in html(app)
    del app.session_state[KEYS.arrival]  # as if opened from Recent work
    assert "To check: age is 130 in row p0." in html(healthy(app.run()))
    assert all(f">{name}</b>" in html(app) for name in ("name", "kind", "age"))
    assert "drop the file again" in app.caption[0].value
    give(go(app, "data/open"), ("mine <b>.csv", csv_of(frame[:30])))
    assert "30 rows × 4" in html(click(go(app, "explore"), "assumed_redundant"))
    assert "Read as" not in told(click(app, "assumed_close"))


def messy(n: int = 90) -> bytes:
    """Write a table as a spreadsheet program of the West does, with an id, dates and gaps."""
    rng = np.random.default_rng(3)
    X = 20 + rng.normal(size=(n, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(n, 5))
    lines = ["Kunde-Nr;Größe;b;c;d;e;Datum;Stadt;konstant"]
    for i, row in enumerate(X):
        cells = ["" if i % 9 == j else f"{x:.2f}".replace(".", ",") for j, x in enumerate(row)]
        town = ("Köln", "Ulm")[i % 2]
        lines.append(f"{10_000 + i};{';'.join(cells)};{i % 28 + 1}.06.2024;{town};7")
    return "\r\n".join(lines).encode("cp1252")


def test_a_messy_file_is_read_as_a_person_would_and_can_be_read_otherwise_and_undone(start):
    app = give(start("data/open"), ("messy.csv", messy()))
    said = told(healthy(app))
    assert "Read as Western European text (cp1252), semicolons, decimal comma" in said
    assert "Labels: Stadt · Left out: Datum (dates), konstant (one value)" in said
    assert "Missing: 50 cells, filled from the model" in said
    assert "upload_use" not in keys(go(app, "data/this"))
    assert chosen(app, "Encoding") == "Western European (cp1252)"
    choose(app, "read_as", "Missing values", "50 cells missing: column mean")
    choose(app, "read_as", "Encoding", "UTF-8")
    assert "name its encoding" in sentences(app)[0]
    choose(app, "read_as", "Encoding", "Latin-1")
    assert chosen(healthy(app), "Header") == "Line 1 is the header"
    assert "filled with their column's mean" in told(click(app, "upload_use"))
    assert "90 rows × 5" in html(app)
    assert "missing cell" not in html(app)
    Bar(app).send("undo")  # takes back how the file was read
    assert "50 missing cells" in html(healthy(app))
    go(app, "data/this")
    assert chosen(app, "Missing values") == "50 cells missing: fill from the model"
    assert "upload_use" not in keys(app)
    assert "missing cell" not in html(healthy(Bar(go(app, "explore")).send("redo")))


def test_a_refused_file_is_corrected_where_it_stands(start):
    rows = [f"{'xy'[i % 2]},{i % 7},{i * i},{-999 if i in (3, 7) else i / 9}" for i in range(20)]
    rows[1] = "y,1,inf,0.5"
    app = give(start("data/open"), ("t.csv", "\n".join(["k,a,b,c", *rows]).encode()))
    assert "is infinite in row 2" in sentences(app)[0]
    choose(app, "preview", "Role of b", "Label")
    choose(app, "preview", "Role of k", "Ignored")
    choose(app, "read_as", "Header", "No header")  # columns have other names now
    assert "There is no column" not in sentences(app)[0]
    choose(app, "read_as", "Header", "Line 1 is the header")
    choose(app, "preview", "Role of b", "Ignored")
    press(healthy(app), "read_as", "suggested")
    assert chosen(app, "Other gaps") == "-999 missing"
    choose(app, "read_as", "Other gaps", "No other gaps").button(key="upload_use").click().run()
    assert "20 rows × 2" in html(healthy(app))
    give(go(app, "data/open"), ("u.csv", b"1,2\n2,3\na,b\n4,5\n6,7.5\n"))
    press(go(app, "data/this"), "header_line", "line", 3)
    assert "2 rows × 2" in html(click(app, "upload_use")), "another line is the header"


def test_several_arrays_are_offered_and_the_shape_of_images_stays_with_other_changes(start):
    rng, stream = np.random.default_rng(0), io.BytesIO()
    b = rng.normal(size=(20, 12))
    b[3, 4] = np.nan
    np.savez(stream, a=rng.normal(size=(30, 6)), b=b)
    app = give(start("data/open"), ("x.npz", stream.getvalue()))
    assert app.title[0].value == "Data"
    assert "several arrays" in sentences(app)[0]
    choose(app, "read_as", "The array with the rows", "b (20 x 12)")
    find(app.number_input, "Height").set_value(3).run()
    assert find(app.number_input, "Width").value == 4
    assert any("images of 3 × 4 pixels" in one.value for one in healthy(app).text)
    assert "20 rows × 12" in html(click(app, "upload_use"))
    assert "3 × 4 pixels" in html(go(app, "data/this"))
    assert [find(app.number_input, label).value for label in ("Height", "Width")] == [3, 4]
    assert "upload_use" not in keys(app)
    choose(app, "read_as", "Missing values", "1 cell missing: column mean")
    assert "3 × 4 pixels" in html(go(click(app, "upload_use"), "data/this"))
    for place, height in ((1, 3), (-1, None)):  # the same down its columns, and no image
        healthy(press(app, "shape_cards", "shape", place))
        assert find(app.number_input, "Height").value == height


def test_several_files_are_digits_and_labels_a_store_or_a_recording_and_events(start, tmp_path):
    images, labels = noise(0, 30, 4, 4), np.arange(30, dtype=np.uint8) % 3
    app = give(start("data/open"), ("x-images.idx", idx(images)), ("x-labels.idx", idx(labels)))
    assert "30 rows × 16" in html(healthy(app))
    assert "4 × 4 pixels" in html(go(app, "data/this"))
    folder = store(tmp_path / "cells.zarr", h5ad(counts(0, 9, 7), kind=list("abcabcabc")), 2)
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = [(f"cells.zarr/{path.relative_to(folder)}", path.read_bytes()) for path in paths]
    assert "Labels: kind" in told(healthy(give(go(app, "data/open"), *files)))
    events = ("own_events.tsv", b"onset\tduration\n4\t6\n20\t6\n")
    healthy(give(go(app, "data/open"), ("own.nii", recording()), events))
    assert app.title[0].value == "Explore"
    assert len(re.findall('<img[^>]*alt="Component', html(app))) == 4
    digest = app.session_state["config"].dataset
    assert [event["onset"] for event in services.dataset(digest).provenance["events"]] == [4, 20]


def test_annotated_data_let_choose_values_and_variables(start):
    X = counts(0, 30, 8).astype(np.float32)
    kinds = {"kind": list("abc") * 10, "batch": list("uvwxyz") * 5, "depth": np.arange(30) / 7}
    marks = np.arange(8) % 2 == 0
    data = h5ad(X, {"twice": 2 * X}, {"X_two": X[:, :2]}, highly_variable=marks, **kinds)
    app = healthy(go(healthy(give(start("data/open"), ("cells.h5ad", data))), "data/this"))
    arrays = {"X (30 x 8)", "twice, of layers (30 x 8)", "X_two, of obsm (30 x 2)"}
    assert set(choices(app, "The array with the rows")) == arrays
    assert chosen(app, "Variables") == "Only variables marked highly_variable"
    choose(app, "read_as", "Variables", "All variables")
    assert "30 rows × 8" in html(click(app, "upload_use"))
    choose(go(app, "data/this"), "read_as", "The array with the rows", "X_two, of obsm (30 x 2)")
    assert "30 rows × 2" in html(click(app, "upload_use"))


def recording() -> bytes:
    """Write 20 volumes, 2 s apart, with a bright box that a mask finds."""
    values = np.random.default_rng(0).normal(20, 2, (12, 12, 10, 20)).astype(np.float32)
    values[2:10, 2:10, 2:8] += 900
    image = nibabel.Nifti1Image(values, np.eye(4))
    image.header.set_zooms((1.0, 1.0, 1.0, 2.0))
    return image.to_bytes()


def test_gaps_are_counted_where_the_file_is_no_longer_at_hand():
    missing = np.isin(np.arange(36), [6, 14, 17]).reshape(12, 3)
    X = np.random.default_rng(0).normal(size=(12, 3))
    data = Dataset("t", X, np.arange(12), feature_names=("a", "b", "c"), missing=missing)
    columns = columns_of(reading := Reading(data, "", {}))
    assert [column.n_missing for column in columns] == [1, 0, 2]
    looks = [contents(reading, column) for column in columns]
    assert [look.words for look in looks] == ["1 missing", "none missing", "2 missing"]
    assert looks[0].cells[1:4] == [f"{X[1, 0]:.6g}", None, f"{X[3, 0]:.6g}"]
    data = replace(data, labels={"school": np.where(np.arange(12) < 4, np.nan, 1.0)})
    label = columns_of(reading := Reading(data, "", {}))[0]
    assert contents(reading, label).words == "1 value, 4 missing"
