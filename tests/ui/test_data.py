"""The page Data: sources, a shared home, work deleted for good, and tables of many columns."""

from pathlib import Path

import numpy as np
import pytest

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from appca.ui import services, state
from tests.pages import give, table
from tests.ui import conftest
from tests.ui.conftest import address, chosen, go, healthy, html, keys, press, told

SECRET = "Zyxwvut"


@pytest.fixture
def app(start):
    """Open the app with a table whose ids hold a word that is nowhere else."""
    rng = np.random.default_rng(7)
    lines = [
        f"{SECRET}{i},{a:.4f},{b:.4f},{c:.4f}" for i, (a, b, c) in enumerate(rng.random((40, 3)))
    ]
    content = "\n".join(["name,a,b,c", *lines]).encode()
    return healthy(give(start("data/open"), (f"{SECRET}.csv", content)))


def holding(word: str) -> list[Path]:
    """Return the files of the home, hidden ones too, in which a word is."""
    wide = np.array(word).tobytes()
    texts = ((path, path.read_bytes()) for path in home().rglob("*") if path.is_file())
    return [file for file, text in texts if word.encode() in text or wide in text]


def digests() -> set[str]:
    return {one.digest for one in DatasetStore(home()).list()}


def test_deleted_work_is_gone_from_the_disk_with_its_earlier_readings(app):
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


def test_data_that_other_work_needs_stay_until_all_is_deleted_at_one_place(app):
    first = RunStore(home()).get(address(app)["run"])
    RunStore(home()).rename(first.id, SECRET)
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
    app.button(key=f"shared-0-{other}").click().run()
    assert address(healthy(app))["data"] == other
    go(app, "data/open").button(key=f"open-{config.id}").click().run()
    assert address(healthy(app))["run"] == config.id
    assert not digests() & {digest, other}


MOST_OPTIONS = 2000  # of one widget
MOST_LETTERS = 500_000  # of all HTML of a page
PLACES = ("explore", "groups/differences", "components/gallery", "check/trust", "export")


@pytest.mark.parametrize(
    ("columns", "found"), [(2500, 111), pytest.param(100_000, 1111, marks=pytest.mark.slow)]
)
def test_the_pages_stay_usable_with_very_many_columns(columns, found, start):
    app = start("data/open")
    app.default_timeout = 100
    give(app, ("genes.csv", table(columns=columns)))
    assert f"40 rows × {columns:,}" in html(healthy(app))
    go(app, "data/this")
    assert f"1 to 24 of {columns:,} columns" in html(healthy(app))
    find = next(one for one in app.text_input if one.label == "Find a column")
    find.set_value("g17").run()
    assert f"Use {found:,} columns as" in html(healthy(app))
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
    press(app, "read_as", "suggested")
    assert chosen(healthy(app), "Role of population") == "Label"
    assert "as label" not in html(app)
    app.button(key="upload_use").click().run()
    assert "44 rows × 2" in html(healthy(app))
    give(go(app, "data/open"), file)
    go(healthy(app), "explore").button(key="assumed_label").click().run()
    assert any("Labels" in one.value and "population" in one.value for one in healthy(app).markdown)
    assert "assumed_label" not in keys(app)
    assert "upload_use" not in keys(go(app, "data/this"))


def test_classes_are_renamed_and_keep_the_fit(start, monkeypatch):
    steps: list[tuple] = []
    file = ("t.csv", table())
    app = give(start("data/open"), file)
    run, digest = address(healthy(app))["run"], address(app)["data"]
    monkeypatch.setattr(state, "note", lambda *both: steps.append(both))

    def names() -> list[str]:
        return services.dataset(digest).classes("class")[0]

    state.rename_class(digest, "class", "b", "bee")
    state.rename_class(digest, "class", "a", "ant")
    assert names() == ["ant", "bee"]
    steps[-1][0]()
    assert names() == ["a", "bee"]
    assert address(healthy(app.run()))["run"] == run
    give(go(app, "data/open"), file)
    assert services.dataset(address(healthy(app))["data"]).classes("class")[0] == ["a", "bee"]
