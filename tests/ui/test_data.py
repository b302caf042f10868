"""The page Data: sources, a shared home, work deleted for good, and tables of many columns."""

import io
from pathlib import Path

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.ui import services, state
from appca.ui.arrivals import Reading
from appca.ui.this_data import columns_of, contents
from tests.ui import conftest
from tests.ui.arrivals.test_uploads import field, give
from tests.ui.conftest import address, chosen, go, healthy, html, press
from tests.ui.test_background import ScriptedJobs


def test_gaps_are_counted_where_the_file_is_no_longer_at_hand():
    missing = np.zeros((12, 3), bool)
    missing[2, 0] = missing[[4, 5], 2] = True
    X = np.random.default_rng(0).normal(size=(12, 3))
    names = ("a", "b", "c")
    data = Dataset(
        "t", X, np.array([f"r{i}" for i in range(12)]), feature_names=names, missing=missing
    )
    reading = Reading(data, "", {})
    columns = columns_of(reading)
    assert [column.n_missing for column in columns] == [1, 0, 2]
    assert [contents(reading, column).words for column in columns] == [
        "1 missing",
        "none missing",
        "2 missing",
    ]


SECRET = "Zyxwvut"


def table(word: str) -> tuple[str, bytes]:
    """Return a CSV file whose ids hold a word that is nowhere else."""
    rng = np.random.default_rng(len(word))
    lines = [
        f"{word}{i},{a:.4f},{b:.4f},{c:.4f}" for i, (a, b, c) in enumerate(rng.random((40, 3)))
    ]
    return f"{word}.csv", "\n".join(["name,a,b,c", *lines]).encode()


def holding(word: str) -> list[Path]:
    """Return the files of the home, hidden ones too, in which a word is."""
    wide = np.array(word).tobytes()
    files = [path for path in home().rglob("*") if path.is_file()]
    texts = ((file, file.read_bytes()) for file in files)
    return [file for file, text in texts if word.encode() in text or wide in text]


def test_deleted_work_is_gone_from_the_disk_with_its_earlier_readings(start):
    app = give(start("data/open"), table(SECRET))
    conftest.choose(go(app, "data/this"), "preview", "Role of c", "Ignored")
    app.button(key="upload_use").click().run()
    assert len([one for one in DatasetStore(home()).list() if one.name == SECRET]) == 2
    assert len(holding(SECRET)) > 3
    last = address(healthy(app))["run"]
    go(app, "data/open").button(key=f"delete-{last}").click().run()
    assert holding(SECRET) == []
    assert not [one for one in RunStore(home()).list() if one.config.dataset not in digests()]
    assert address(healthy(app))["data"] in digests()
    healthy(go(app, "explore"))


def digests() -> set[str]:
    return {one.digest for one in DatasetStore(home()).list()}


def test_data_that_other_work_needs_stay_and_this_is_said(start):
    app = give(start("data/open"), table(SECRET))
    first = RunStore(home()).get(address(app)["run"])
    RunStore(home()).rename(first.id, "first")
    second = RunStore(home()).save(
        first.config.to_be_fitted(parameters=first.config.parameters | {"random_state": 7}),
        FitResult(first.fitted, first.info),
        name="second",
    )
    said = "The data “Zyxwvut” stay: 1 other work needs them."
    go(app, "data/open").button(key=f"delete-{second.id}").click().run()
    assert said in [one.value.replace("\\", "") for one in healthy(app).info]
    assert RunStore(home()).get(second.id) is None
    assert RunStore(home()).get(first.id) is not None
    assert first.config.dataset in digests()


def test_all_my_data_are_deleted_at_one_place(start):
    app = give(start("data/open"), table(SECRET))
    RunStore(home()).rename(address(app)["run"], SECRET)
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
    assert f"open-{config.id}" in [one.key for one in app.button]
    assert f"name-{config.id}" not in [one.key for one in app.text_input]
    app.button(key=f"shared-0-{other}").click().run()
    assert address(healthy(app))["data"] == other
    app = go(app, "data/open")
    app.button(key=f"open-{config.id}").click().run()
    assert address(healthy(app))["run"] == config.id
    kept = {one.digest for one in DatasetStore(home()).list()}
    assert not kept & {digest, other}


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def test_all_choices_of_a_source_are_there_when_one_comes_back(start, jobs):
    app = start("data/open")
    group(app, "source-mnist-classes").set_value(["1", "3"]).run()
    app.number_input(key="source-mnist-n").set_value(500).run()
    group(app, "source-coil20-size").set_value(128).run()
    app = go(app, "data/this")
    app = healthy(go(app, "data/open"))
    for key in ("mnist", "coil20"):
        go(app, "data/open").button(key=f"source-{key}-open").click().run()
    asked = {job.spec["key"]: job.spec["options"] for job in jobs.jobs.values()}
    assert asked == {"mnist": {"classes": ["1", "3"], "n": 500}, "coil20": {"size": 128}}


def group(app, key: str):
    """Return the pills or the row of buttons of a key."""
    return next(one for one in app.get("button_group") if one.key == key)


MOST_OPTIONS = 2000  # of one widget
MOST_LETTERS = 500_000  # of all HTML of a page
PAGES = (
    "data/open",
    "explore",
    "explore",
    "explore",
    "groups/differences",
    "components/gallery",
    "check/trust",
    "export",
)


def expression_table(columns, rows=8):
    """Genes as columns, as they come from a sequencer: a sample's name, its group, numbers."""
    rng = np.random.default_rng(0)
    text = io.StringIO()
    text.write(",".join(["sample", "kind", *(f"gene_{j}" for j in range(columns))]) + "\n")
    for i in range(rows):
        cells = rng.normal(size=columns).round(2).astype(str).tolist()
        text.write(",".join([f"s{i}", "ab"[i % 2], *cells]) + "\n")
    return text.getvalue().encode()


def options_of(app):
    widgets = [*app.selectbox, *app.multiselect, *app.radio]
    return {one.label: len(one.options) for one in widgets}


@pytest.mark.parametrize("columns", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_pages_stay_usable_with_very_many_columns(columns, start):
    app = start("data/open")
    app.default_timeout = 100
    give(app, ("genes.csv", expression_table(columns)))
    assert f"8 rows × {columns:,}" in html(healthy(app))
    field(go(app, "data/this"), "Find a column").set_value("gene_17").run()
    assert max(options_of(healthy(app)).values()) < MOST_OPTIONS
    assert "Use " in html(app)
    for page in PAGES:
        go(app, page)
        assert max(options_of(healthy(app)).values(), default=0) < MOST_OPTIONS
        assert len(html(app)) < MOST_LETTERS


def test_columns_with_words_among_numbers_are_left_out_together_where_they_are_many(start):
    head = ",".join(f"c{j}" for j in range(600))
    cells = ["0", "1", "2", "oops", "4", "5", "6", "7", "8"]
    rows = [",".join([str(i % 4), *[cell] * 597, f"{i}.5", "1.5"]) for i, cell in enumerate(cells)]
    app = give(start("data/open"), ("t.csv", "\n".join([head, *rows]).encode()))
    assert "9 rows × 2" in html(healthy(app))


def test_whole_numbers_that_may_be_labels_are_said_and_become_labels_by_one_click(start):
    rng = np.random.default_rng(1)
    lines = [f"{i % 11 + 1},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    app = give(start("data/open"), ("t.csv", "\n".join(["population,a,b", *lines]).encode()))
    assert any("may be labels" in one.value for one in healthy(app).markdown)
    go(app, "data/this")
    assert chosen(app, "Role of population") == "Feature"
    press(app, "read_as", "suggested")
    assert chosen(healthy(app), "Role of population") == "Label"
    assert "as label" not in html(app)
    app.button(key="upload_use").click().run()
    assert "44 rows × 2" in html(healthy(app))


def test_a_feature_that_may_be_a_label_becomes_one_by_a_click_beside_the_picture(start):
    rng = np.random.default_rng(1)
    lines = [f"{i % 11 + 1},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    app = give(start("data/open"), ("t.csv", "\n".join(["population,a,b", *lines]).encode()))
    go(healthy(app), "explore").button(key="assumed_label").click().run()
    assert any("Labels" in one.value and "population" in one.value for one in healthy(app).markdown)
    assert not [one for one in app.button if one.key == "assumed_label"]
    go(app, "data/this")
    assert not [one for one in app.button if one.key == "upload_use"]


def test_classes_are_renamed_and_keep_the_fit(start, monkeypatch):
    steps: list[tuple] = []
    rng = np.random.default_rng(1)
    lines = [f"{'ab'[i % 2]},{a},{b}" for i, (a, b) in enumerate(rng.normal(size=(44, 2)))]
    file = ("t.csv", "\n".join(["kind,a,b", *lines]).encode())
    app = give(start("data/open"), file)
    run = address(healthy(app))["run"]
    digest = address(app)["data"]

    monkeypatch.setattr(state, "note", lambda *both: steps.append(both))

    def names() -> list[str]:
        return services.dataset(digest).classes("kind")[0]

    state.rename_class(digest, "kind", "b", "bee")
    state.rename_class(digest, "kind", "a", "ant")
    assert names() == ["ant", "bee"]
    steps[-1][0]()
    assert names() == ["a", "bee"]
    assert address(healthy(app.run()))["run"] == run
    give(go(app, "data/open"), file)
    assert services.dataset(address(healthy(app))["data"]).classes("kind")[0] == ["a", "bee"]
