"""The page Choose K and L: offered, running, finished, adopted, and back after a reload."""

import json
import re

import numpy as np
import pytest

from appca.analysis.check import choose as grids
from appca.analysis.check import choose_stability as stabilities
from appca.analysis.check.choose import GridConfig, fill, steps
from appca.analysis.check.choose_stability import StabilityConfig, run
from appca.analysis.check.journal import JournalStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.store import DatasetStore
from appca.runs.configuration import defaults
from appca.runs.home import home
from appca.ui.session import services
from tests.models.synthetic import planted
from tests.ui.conftest import address, go, healthy, html
from tests.ui.session.test_background import ScriptedJobs

PAGE = "check/choose"


@pytest.fixture(scope="module")
def table() -> Dataset:
    """Rows that use two of four components."""
    X = planted(150, 6, 4, 2, seed=0, noise=0.1).X
    return Dataset("four, <b>two</b>", X, np.arange(150).astype(str), {}, None, None, {})


@pytest.fixture
def stored(table) -> str:
    return DatasetStore(home()).put(table)


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def grid_of(table: Dataset, **changes) -> GridConfig:
    """The grid the page makes of these numbers."""
    given = {"components": range(2, 6), "actives": (1, 2, 3), "parameters": defaults("aPPCA")}
    preprocessing = suggest(table).to_dict()
    return GridConfig(
        dataset=table.digest, preprocessing=preprocessing, model="aPPCA", **given | changes
    )


def measured(table: Dataset, upto: int | None = None, **changes) -> GridConfig:
    """Measure a grid in the test's home, whole or its first fits."""
    config, begun = grid_of(table, **changes), []

    def stop(cell, fold):
        begun.append(cell)
        if len(begun) == upto:
            raise KeyboardInterrupt

    try:
        fill(table, config, JournalStore(home(), grids.FOLDER), stop)
    except KeyboardInterrupt:
        assert upto is not None
    return config


def text_of(app) -> str:
    return "\n".join(item.value for item in [*app.markdown, *app.caption, *app.info])


def button(app, label: str):
    found = [one for one in app.button if one.label == label]
    assert found, [one.label for one in app.button]
    return found[0]


def heat_map(app) -> dict:
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return next(spec for spec in specs if spec["data"][0]["type"] == "heatmap")


def test_the_digits_are_offered_a_grid_with_its_size_and_time(start, jobs):
    app = healthy(start(PAGE))
    assert "150 fits: 50 cells in 3 folds of all 1,797 rows" in text_of(app)
    assert re.search(r"It takes about \d+ (s|min)", text_of(app))
    app.number_input(key="choose_max_rows").set_value(300).run()
    app.number_input(key="choose_k_step").set_value(5).run()
    assert "45 fits: 15 cells in 3 folds of a random sample of 300 of 1,797" in text_of(app)
    assert not jobs.jobs


def test_a_model_without_l_gets_a_button_that_switches(start):
    app = start("explore")
    app.selectbox(key="set-model").select("PPCA").run()
    app = healthy(go(app, PAGE))
    assert "every row uses exactly L of K components" in text_of(app)
    assert not app.number_input
    button(app, "Switch to adaptive PPCA").click().run()
    assert "Start" in [one.label for one in healthy(app).button]


def test_a_running_grid_fills_and_what_is_done_survives_a_cancel(start, stored, table, jobs):
    app = start(PAGE, data=stored)
    button(app, "Start").click().run()
    (status,) = jobs.jobs.values()
    assert status.kind == "grid"
    config = GridConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert address(app)["grid"] == config.id == status.spec["key"]
    part = measured(table, upto=26, components=config.components, actives=config.actives)
    assert part.id == config.id
    app.run()
    drawn = [row for row in heat_map(healthy(app))["data"][0]["text"] if any(row)]
    assert drawn
    assert "What is done is kept" in text_of(app)
    button(app, "Cancel").click().run()
    assert jobs.cancelled == [status.id]
    total = len(steps(config))
    assert f"25 of {total} fits are done" in text_of(healthy(app))
    button(app, "Go on").click().run()
    assert len(jobs.jobs) == 2


def test_a_reload_finds_the_running_grid_again(start, stored, jobs):
    app = start(PAGE, data=stored)
    button(app, "Start").click().run()
    again = healthy(start(PAGE, **address(app)))
    assert "Cancel" in [one.label for one in again.button]
    assert "Start" not in [one.label for one in again.button]


def test_the_advice_is_adopted_for_all_pages(start, stored, table):
    config = measured(table)
    app = healthy(start(PAGE, data=stored, grid=config.id, k="3", l="1"))
    assert "**Take K = 4, L = 2.**" in text_of(app)
    app.button(key="choose_adopt_advice").click().run()
    assert (address(healthy(app))["k"], address(app)["l"]) == ("4", "2")
    assert app.button(key="choose_adopt_advice").label == "K = 4, L = 2 is in use"
    assert any("now hold on all pages" in box.value for box in app.success)
    fit = go(app, "explore")
    assert fit.number_input(key="k_typed").value == 4
    assert fit.number_input(key="l_typed").value == 2


def test_where_all_still_rises_k_is_advised_for_each_l_with_its_folds(start, stored, table):
    config = measured(table, components=(2, 3, 4), actives=(1, 2), n_folds=2)
    app = healthy(start(PAGE, data=stored, grid=config.id))
    assert "**Choose L first, then K.**" in text_of(app)
    assert "**With L = 2: K = 4**" in text_of(app)
    assert "picks an L near K" in text_of(app)
    assert html(app).count('<th scope="row">') == 2
    button(app, "Adopt K = 3, L = 1").click().run()
    assert address(healthy(app))["l"] == "1"


def test_every_cell_can_be_looked_at_and_adopted_without_a_mouse(start, stored, table):
    config = measured(table)
    app = healthy(start(PAGE, data=stored, grid=config.id))
    app.selectbox(key="choose_cell_of").select((5, 3)).run()
    assert "Over PPCA with 3" in html(healthy(app))
    app.button(key="choose_adopt_cell").click().run()
    assert (address(app)["k"], address(app)["l"]) == ("5", "3")
    app.get("button_group")[1].set_value("Reconstruction error").run()
    assert heat_map(healthy(app))["data"][0]["colorbar"]["title"]["text"].startswith("squared")


def test_a_grid_comes_back_by_its_address_and_else_the_last_one_does(start, stored, table):
    first = measured(table, components=(2, 4), actives=(1,), n_folds=2, random_state=5)
    measured(table, components=(3,), actives=(2,), n_folds=2)
    app = healthy(start(PAGE, data=stored, grid=first.id))
    shown = {
        name: app.number_input(key=f"choose_{name}").value for name in ("k_to", "l_to", "seed")
    }
    assert shown == {"k_to": 4, "l_to": 1, "seed": 5}
    assert address(app)["grid"] == first.id
    app = healthy(start(PAGE, data=stored))
    assert app.number_input(key="choose_k_from").value in {2, 3}
    assert "Start" not in [one.label for one in app.button]
    app = healthy(start(PAGE, data=stored, grid="../../etc"))
    assert address(app)["grid"] != "../../etc"


def test_damaged_records_are_offered_to_be_measured_again(start, stored, table):
    config = measured(table, components=(2, 4), actives=(1,), n_folds=2)
    file = home() / grids.FOLDER / config.id / "records.txt"
    file.write_bytes(file.read_bytes().replace(b"null", b"nul")[:-5])
    app = healthy(start(PAGE, data=stored, grid=config.id))
    assert f"{len(steps(config)) - 1} of {len(steps(config))} fits are done" in text_of(app)
    assert "Go on" in [one.label for one in app.button]


def test_three_rows_are_too_few_and_said_to_be(start):
    few = Dataset("few", np.eye(3), np.arange(3).astype(str), {}, None, None, {})
    app = healthy(start(PAGE, data=DatasetStore(home()).put(few)))
    assert "needs at least 4" in text_of(app)


def test_stability_is_offered_and_shown(start, stored, table, jobs):
    app = healthy(start(PAGE, data=stored, k="4", l="2"))
    assert "9 fits on all rows" in text_of(app)
    button(app, "Fit again").click().run()
    (status,) = jobs.jobs.values()
    config = StabilityConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert (status.kind, config.cell, config.repeats) == ("stability", (4, 2), 8)
    run(table, config, JournalStore(home(), stabilities.FOLDER), lambda _: None)
    jobs.end(status.id, "done", stability=config.id)
    app.run()
    assert re.search(
        r"\*\*\d of 4 components comes? back\*\* with other random starts", text_of(app)
    )
    assert "Fit again" not in [one.label for one in healthy(app).button]


def test_better_fits_from_other_starts_are_told(start, stored, table):
    app = start(PAGE, data=stored, k="4", l="2")
    parameters = defaults("aPPCA") | {"n_components": 4, "n_active": 2}
    preprocessing = suggest(table).to_dict()
    config = StabilityConfig(table.digest, preprocessing, "aPPCA", parameters)
    store = JournalStore(home(), stabilities.FOLDER)
    store.begin(config.id, config.to_dict())
    for fit in range(9):
        store.append(config.id, [fit, 1.0 + 0.5 * (fit == 3), 1.0, 0.99, 0.9, 0.2])
    app.run()
    assert "**2 of 4 components come back**" in text_of(healthy(app))
    assert "ended 0.50 nats per row above the fit in use" in text_of(app)
    assert "component 4: 0.200, not identified" in text_of(app)


def test_the_grid_of_a_sampled_model_with_factors_is_by_em(start, stored, jobs):
    app = start("explore", data=stored)
    app.selectbox(key="set-model").select("aFA").run()
    app.selectbox(key="set-inference").select("gibbs").run()
    app = healthy(go(app, PAGE))
    assert "The grid fits by EM" in text_of(app)
    button(app, "Start").click().run()
    (status,) = jobs.jobs.values()
    assert (status.spec["model"], status.spec["parameters"]["inference"]) == ("aFA", "em")
    assert "n_draws" not in status.spec["parameters"]
