"""The page Check: K, L and model chosen, fits compared, hidden cells, and what a fit is worth."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from appca.analysis.choose import GridConfig, StabilityConfig
from appca.analysis.compare import METHODS, MaskedConfig, ModelsConfig
from appca.analysis.diagnostics import diagnose, failures, of_chains, worst
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import draw_synthetic, load
from appca.data.store import DatasetStore
from appca.jobs.tasks import QualityConfig
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig, defaults
from appca.runs.store import Run, RunStore
from appca.ui import compare, diagnostics, services, state
from appca.ui.choose import config_of, level, verdict
from appca.words import percent
from tests.models.synthetic import planted
from tests.ui.conftest import address, go, healthy, html
from tests.ui.test_background import ScriptedJobs
from tests.ui.test_explore import gappy, text_of  # noqa: F401 - a fixture

PAGE, START = "check/choose", "grid_start"


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

    def stop(place, _share):
        begun.append(place)
        if len(begun) == upto:
            raise KeyboardInterrupt

    try:
        config.complete(table, home(), stop)
    except KeyboardInterrupt:
        assert upto is not None
    return config


def heat_map(app) -> dict:
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    return next(spec for spec in specs if spec["data"][0]["type"] == "heatmap")


def test_a_model_without_l_gets_a_button_that_switches(start, stored):
    run = RunConfig(stored, {}, "PPCA", {"n_components": 2})
    RunStore(home()).save(run, fit_run(DatasetStore(home()).get(stored), run))
    app = healthy(start(PAGE, run=run.id))
    assert "adaptive PPCA or adaptive factor" in html(app)
    app.button(key="choose_model_aPPCA").click().run()
    assert app.button(key=START)


def test_a_running_grid_fills_and_what_is_done_survives_cancel_and_reload(
    start, stored, table, jobs
):
    app = start(PAGE, data=stored)
    app.button(key=START).click().run()
    (status,) = jobs.jobs.values()
    assert status.kind == "grid"
    config = GridConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert address(app)["grid"] == config.id == status.spec["key"]
    again = healthy(start(PAGE, **address(app)))
    assert "choose_cancel" in [one.key for one in again.button]
    part = measured(table, upto=26, components=config.components, actives=config.actives)
    assert part.id == config.id
    app.run()
    assert [row for row in heat_map(healthy(app))["data"][0]["text"] if any(row)]
    app.button(key="choose_cancel").click().run()
    assert jobs.cancelled == [status.id]
    assert f"25 of {len(config.steps())} fits are done" in html(healthy(app))
    assert app.button(key=START).label.startswith("Go on")


def test_the_answer_is_adopted_for_all_pages(start, stored, table):
    config = measured(table)
    app = healthy(start(PAGE, data=stored, grid=config.id, k="3", l="1"))
    assert "Try K = 4 and L = 2" in html(app)
    assert heat_map(app)["data"][1]["hovertemplate"].count("nats per row") == 1
    app.button(key="choose_adopt").click().run()
    assert (address(healthy(app))["k"], address(app)["l"]) == ("4", "2")
    assert app.button(key="choose_adopt").disabled


def test_three_rows_are_too_few_and_said_to_be(start):
    few = Dataset("few", np.eye(3), np.arange(3).astype(str), {}, None, None, {})
    app = healthy(start(PAGE, data=DatasetStore(home()).put(few)))
    assert "needs at least 4" in app.info[0].value


def test_whether_components_come_back_is_offered_and_told(start, stored, table, jobs):
    app = healthy(start("check/trust", data=stored, k="4", l="2"))
    app.button(key="stability_start").click().run()
    (status,) = jobs.jobs.values()
    config = StabilityConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert (status.kind, config.parameters["n_active"], config.repeats) == ("stability", 2, 8)
    store = config.journal(home())
    store.begin(config.id, config.to_dict())
    for fit in range(9):
        store.append(config.id, [fit, 1.0 + 0.5 * (fit == 3), 1.0, 0.99, 0.9, 0.2])
    jobs.end(status.id, "done", stability=config.id)
    app.run()
    assert "2 of 4 components come back with other random starts" in html(healthy(app))
    assert any("0.50 nats per row higher" in one.value for one in app.caption)


def test_the_grid_of_a_sampled_model_is_by_em(start, stored, jobs):
    run = RunConfig(stored, {}, "aFA", {"inference": "gibbs", "n_components": 3, "n_active": 1})
    small = run.to_be_fitted(
        parameters=run.parameters | {"n_chains": 1, "burn_in": 2, "n_draws": 2}
    )
    RunStore(home()).save(small, fit_run(DatasetStore(home()).get(stored), small))
    app = healthy(start(PAGE, run=small.id))
    app.button(key=START).click().run()
    (status,) = jobs.jobs.values()
    assert (status.spec["model"], status.spec["parameters"]["inference"]) == ("aFA", "em")
    assert "n_draws" not in status.spec["parameters"]


PLACE = "check/advanced"


def measured_which_model(app, home, at_floor: float = 0.0, **nats: float) -> ModelsConfig:
    """Store a comparison in which methods differ from the paper's model by so many nats a row."""
    config = config_of(app.session_state["config"])
    store = config.journal(home)
    store.begin(config.id, config.to_dict())
    spread = np.tile([-1.0, 1.0], 50)
    for number, key in enumerate(METHODS):
        mean = nats.get(key.replace("+", "_"), 0.0)
        values = -100.0 + mean + spread * (mean != 0)
        floor = at_floor if "mixture" in key else 0.0
        store.append(config.id, [key, values.tolist(), 200 + number, 0.5, "", floor])
    return config


def test_a_comparison_is_offered_on_its_tab(start, appca_home):
    app = healthy(start(PLACE))
    assert "Which model?" in html(app)
    button = app.button(key="models_start")
    assert button.label.startswith("Compare 16 models, about")
    wanted = config_of(app.session_state["config"]).id
    button.click().run()
    assert [watched.key for watched in app.session_state["watched"].values()] == [wanted]
    measured_which_model(other := start("explore", k="3"), appca_home, noise=2.0)
    assert "Use noise per feature" in html(healthy(go(other, PLACE)))
    assert not other.session_state["watched"]


def test_use_this_fits_the_model_that_the_answer_names_and_doubts_are_named(start, appca_home):
    app = start()
    measured_which_model(app, appca_home, 0.12, noise_scale=5.0, noise=2.0, mixture=3.0)
    app = healthy(go(app, PLACE))
    page = html(app)
    assert "Use noise per feature and a scale per row" in page
    assert "+5.0 nats a row over the paper&#x27;s model" in page
    assert "Above all rivals: 2.0 nats over Mixture of PPCA, 4 of 2." in page
    assert "Mixture of PPCA, 4 of 2 is doubtful: 12% of noise variances at their floor" in page
    (box,) = (one for one in app.selectbox if one.label == "Variant")
    assert len(box.options) == 8, "rivals cannot be used"
    app.button(key="models_use").click().run()
    chosen = healthy(app).session_state["config"].parameters
    assert (chosen["noise"], chosen["row_scale"], chosen["n_active"]) == ("feature", "learned", 2)
    assert app.button(key="models_use").disabled
    (box,) = (one for one in app.selectbox if one.label == "Variant")
    assert sum("in use" in name for name in box.options) == 1


def test_a_learned_number_is_said_and_taken_back_to_the_same_comparison(start, appca_home):
    app = start(l="1")
    config = measured_which_model(app, appca_home, noise_scale_number=9.0, mixture_diagonal=20.0)
    app = healthy(go(app, PLACE))
    assert "Rows then use 0 to 4 components, not 1." in html(app)
    assert "Mixture of factor analyzers, 4 of 1 is 11.0 nats above it" in html(app)
    app.button(key="models_use").click().run()
    assert app.session_state["config"].parameters["n_active"] == "learned"
    assert config_of(app.session_state["config"]).id == config.id
    app = start()
    measured_which_model(app, appca_home, noise=0.05)
    app = healthy(go(app, PLACE))
    assert "Keep the paper&#x27;s model" in html(app), "no clear lead"
    assert app.button(key="models_use").disabled


PAGE_COMPARE = "check/trust"


@pytest.fixture(scope="module")
def wine() -> Dataset:
    return load("wine")


def stored_compare(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> Run:
    DatasetStore(home()).put(dataset)
    config = RunConfig(dataset.digest, suggest(dataset).to_dict(), model, parameters)
    return RunStore(home()).save(config, fit_run(dataset, config))


def line(key: str, size: int, used: int, **values: object) -> dict:
    names = ("log_likelihood", "log_likelihood_error", "mse", "mae", "accuracy")
    near = {name: [0.9, 0.0] for name in ("trustworthiness", "continuity", "kept")}
    given = dict.fromkeys(names) | near | {"note": "", "seconds": 0.5, "n_neighbors": 15}
    return given | {"key": key, "title": f"<{key}>", "size": size, "used": used} | values


def comparison() -> list[dict]:
    return [
        line("own", 4, 2, log_likelihood=-14.0, log_likelihood_error=0.5, mse=0.3),
        line("ppca_l", 2, 2, log_likelihood=-16.0, log_likelihood_error=0.5, mse=0.4),
        line("pca", 4, 4, log_likelihood=-13.0, log_likelihood_error=0.5, mse=0.2),
        line("mixture", 4, 4, note="not finished within 120 s", seconds=None, kept=None),
        line("umap", 2, 2, kept=[0.95, 0.004]),
    ]


def config_of_compare(run: Run, **changes: object) -> QualityConfig:
    return QualityConfig(run.config.to_dict(), run.config.k, run.config.n_active, **changes)


def another_start(app):
    """Compare the fit on screen with the one from another start."""
    now = RunStore(home()).get(address(app)["run"]).config
    again = now.parameters | {"random_state": now.parameters["random_state"] + 1}
    box = next(box for box in app.selectbox if box.label == "Compare with")
    return healthy(box.select(now.to_be_fitted(parameters=again).id).run())


def test_a_first_visit_compares_with_pca_and_one_press_with_others(start, wine):
    DatasetStore(home()).put(wine)
    app = healthy(start(PAGE_COMPARE, data=wine.digest))
    own = address(app)["run"]
    (other,) = (run for run in RunStore(home()).list() if run.id != own)
    assert (other.config.model, address(app)["with"]) == ("PPCA", other.id)
    assert "components are the same" in html(app)
    assert "components shared" not in html(app), "PCA has no supports"
    assert not [button for button in app.button if button.key == "moved_select"]
    another_start(app)
    assert RunStore(home()).get(address(app)["with"]).config.parameters["random_state"] == 1
    assert address(app)["run"] == own
    assert "components shared" in html(app)


def test_rows_that_differ_are_selected_everywhere_and_the_pair_comes_back(start, wine):
    first = stored_compare(wine, n_components=4, n_active=2)
    second = stored_compare(wine, n_components=5, n_active=2)
    app = healthy(start(PAGE_COMPARE, run=first.id, **{"with": second.id}))
    app.button(key="moved_select").click().run()
    mask = app.session_state[state.KEYS.selections][wine.digest]
    assert 0 < mask.mean() < 1
    assert f"Select the {mask.sum()} rows that differ" in [one.label for one in app.button]
    again = healthy(start(PAGE_COMPARE, **address(app)))
    assert address(again)["with"] == second.id


def test_runs_of_other_data_or_damaged_ones_are_not_offered(start, wine):
    first, _ = (
        stored_compare(wine, "PPCA", n_components=3),
        stored_compare(load("breast_cancer"), n_components=3),
    )
    app = healthy(start(PAGE_COMPARE, run=first.id))
    assert not [box for box in app.selectbox if box.label == "Compare with"]
    assert "What would you like to compare with?" in [one.value for one in app.caption]
    other = stored_compare(wine, "PPCA", n_components=2)
    again = healthy(start(PAGE_COMPARE, run=first.id, **{"with": "../nonsense"}))
    box = next(box for box in again.selectbox if box.label == "Compare with")
    assert box.value == other.id


def test_a_long_variation_runs_as_a_job_and_is_compared_when_it_is_ready(
    start, wine, jobs, monkeypatch
):
    first = stored_compare(wine, n_components=3, n_active=2)
    monkeypatch.setattr("appca.ui.fits.LIVE_SECONDS", -1.0)
    app = healthy(start(PAGE_COMPARE, run=first.id))
    another_start(app).button(key="compare_fit").click().run()
    (job,) = jobs.active()
    assert app.button(key="job_cancel")
    jobs.finish_fit(job.id)
    healthy(app.run())
    assert address(app)["run"] == first.id
    assert address(app)["with"] == jobs.status(job.id).result["run"]


def test_names_from_files_are_shown_and_not_run(start):
    rng = np.random.default_rng(0)
    ids, names = np.arange(60).astype(str), ("<b>a</b>", "b", "c", "d")
    labels = {"<i>kind</i>": np.where(np.arange(60) % 2, "<u>x</u>", "=1+1")}
    own = Dataset("<s>own</s>", rng.standard_normal((60, 4)), ids, labels, None, names, {})
    first, other = (
        stored_compare(own, n_components=3, n_active=2),
        stored_compare(own, n_components=3, n_active=1),
    )
    RunStore(home()).rename(other.id, "<em>mine</em>")
    app = healthy(start(PAGE_COMPARE, run=first.id, **{"with": other.id}))
    assert not any(mark in html(app) for mark in ("<em>", "<b>a", "<u>", "<i>kind"))


def test_map_quality_is_measured_on_demand_and_told(start, wine, jobs):
    run = stored_compare(wine, n_components=4, n_active=2)
    app = healthy(start("check/trust", run=run.id))
    assert "How many near rows stay near?" in html(app)
    app.button(key="quality_start").click().run()
    (job,) = jobs.active()
    config = config_of_compare(run)
    assert (job.kind, job.spec["key"]) == ("quality", config.id)
    journal = config.journal(home())
    journal.begin(config.id, config.to_dict())
    for made in comparison():
        journal.append(config.id, [made["key"], made])
    healthy(app.run()).button(key="quality_cancel").click().run()
    assert app.button(key="quality_start").label.startswith("Go on")
    page = html(healthy(app.run()))
    assert "UMAP keeps 95% of each row&#x27;s 15 nearest rows" in page
    assert "The panels 90%." in page
    assert any("33% more error" in one.value.replace("\\", "") for one in app.markdown)
    (table,) = app.dataframe
    assert len(table.value) == 5


def test_the_table_has_errors_beside_sampled_measures_and_no_empty_columns():
    table = compare.table_of(comparison()).set_index("Method")
    assert list(table["Numbers per row"]) == ["2 of 4", "2", "2", "4", "4"]
    assert table["Neighbours kept"]["<umap>"] == 0.95
    assert table["± neighbours kept"]["<umap>"] == 0.004
    assert (table["Log-likelihood"]["<own>"], table["± log-likelihood"]["<own>"]) == (-14.0, 0.5)
    assert "120 s" in table["Note"]["<mixture>"]
    assert np.isnan(table["Neighbours kept"]["<mixture>"])
    assert "Absolute error" not in table, "no method has it"
    assert set(compare.looks(15)) >= set(table) - {"Numbers per row", "Note"}


def test_each_rival_says_what_it_keeps_that_the_fit_loses():
    lines = comparison()
    assert compare.losses(lines) == [
        "<ppca_l> with 2 numbers per row: 33% more error than this fit, −16.0 nats a row held out, "
        "not −14.0."
    ]
    lines.append(line("ppca_k", 4, 4, mse=0.15))
    assert (
        compare.losses(lines)[0] == "<ppca_k> with 4 numbers per row: 50% less error than this fit."
    )
    assert compare.losses(lines[1:]) == []


PAGE_DIAGNOSTICS = "check/trust"
SHORT = {"n_chains": 2, "burn_in": 20, "n_draws": 60}


@pytest.fixture(scope="module")
def table_diagnostics() -> Dataset:
    """Rows of five features, each made of two of three factors."""
    sizes = {"n_rows": 90, "n_features": 5, "n_components": 3, "n_active": 2}
    drawn = draw_synthetic(np.random.default_rng(0), "balanced", **sizes)
    names = ("<b>a</b>", "b", "c", "d", "e")
    ids = np.array([f"row {n}" for n in range(90)])
    return Dataset("three factors", drawn.Y, ids, {}, None, names, {})


def fitted(dataset: Dataset, model: str, **parameters) -> tuple[RunConfig, FitResult]:
    config = RunConfig(dataset.digest, {}, model, parameters)
    return config, fit_run(dataset, config)


@pytest.fixture(scope="module")
def sampled(table_diagnostics) -> tuple[RunConfig, FitResult]:
    """A short run of aPPCA by Gibbs sampling."""
    at = {"n_components": 3, "n_active": 2, "inference": "gibbs", "chain_starts": "init"}
    return fitted(table_diagnostics, "aPPCA", **at, **SHORT)


@pytest.fixture
def show(start, table_diagnostics):
    """Return a function that stores a run and opens the page on it."""

    def opened(config: RunConfig, result: FitResult):
        DatasetStore(home()).put(table_diagnostics)
        RunStore(home()).save(config, result)
        return healthy(start(PAGE_DIAGNOSTICS, run=config.id))

    return opened


def level_check(app) -> str:
    (found,) = re.findall(r'class="ca-answer ca-(\w+)"', html(app))
    return found


def axes(app) -> list[tuple[str, str]]:
    layouts = [json.loads(chart.proto.spec)["layout"] for chart in app.get("plotly_chart")]
    return [
        (one["xaxis"]["title"]["text"], one["yaxis"]["title"]["text"])
        for one in layouts
        if "title" in one["yaxis"]
    ]


def test_a_converged_fit_is_answered_with_chips_a_curve_and_numbers(start, monkeypatch):
    def refuse(_posterior):  # a fit by EM never waits for chains to be compared
        raise AssertionError

    monkeypatch.setattr(diagnostics, "diagnose", refuse)
    app = healthy(start(PAGE_DIAGNOSTICS))
    assert level_check(app) == "doubtful"
    for said in ("Converged in", "Noise above its floor", "Choices unsure", "No repeated rows"):
        assert said in html(app)
    assert len(axes(app)) == 2
    run = RunStore(home()).get(address(app)["run"])
    assert f"{percent(np.mean(run.fitted.membership < 0.5))} of rows" in html(app)


def test_without_arviz_the_page_says_what_to_install(show, sampled, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.setattr("appca.ui.diagnostics.kept", lambda _key, make: make())
    app = show(*sampled)
    assert "Chains not compared" in html(app)
    assert any("pip install 'appca[mcmc]'" in caption.value for caption in app.main.caption)
    assert ("sweep", "Joint log-density") in axes(app)


def test_numbers_that_fall_short_are_named(sampled):
    found = diagnose(sampled[1].fitted.posterior)
    found[0] = found[0]._replace(r_hat=np.nan, raftery_lewis=None)
    lines = diagnostics.lines_of(found, 2, 20.0)
    # 60 draws of two chains are at most some 120 effective ones, and 200 are wanted
    assert lines["short"].str.contains("Effective draws, Effective draws, tails").all()
    counts = [len(failures(one, 2, 20.0)) for one in found]
    heads = [head for head, *_ in diagnostics.COLUMNS.values() if "," not in head]
    named = [sum(head in text for head in heads) + ("tails" in text) for text in lines["short"]]
    assert named == counts
    assert lines.iloc[0].isna().sum() == 4  # R-hat and three numbers of Raftery and Lewis


def test_a_model_that_learns_the_number_of_components_shows_it(show, table_diagnostics):
    config, result = fitted(table_diagnostics, "isFA", max_components=5, **SHORT)
    app = show(config, result)
    assert level_check(app) in ("good", "doubtful", "bad")
    posterior = result.fitted.posterior
    assert any(diagnostics.number_words(posterior, 5) == text.value for text in app.caption)
    assert html(app).count("|cos|") == len(result.fitted.components)


@pytest.mark.parametrize(
    ("model", "parameters", "stopped_at", "verdict", "said"),
    [
        ("aPPCA", {"n_active": 1, "max_iter": 3, "tol": 0.0}, None, "bad", "Not converged"),
        ("aPPCA", {"n_active": 1, "tol": 0.0}, 5, "doubtful", "Stopped early"),
        ("PPCA", {}, None, "good", "Solved exactly"),
        ("aPPCA", {"n_active": 2, "noise": "feature"}, None, "doubtful", "at its floor"),
    ],
)
def test_a_fit_is_answered_by_how_it_ended(
    show, table_diagnostics, model, parameters, stopped_at, verdict, said
):
    config = RunConfig(table_diagnostics.digest, {}, model, {"n_components": 3} | parameters)
    config = replace(config, stopped_at=stopped_at)
    app = show(config, fit_run(table_diagnostics, config))
    assert level_check(app) == verdict
    assert said in html(app)


def test_sampled_chains_are_compared_once_and_drawn_with_the_names_of_components(
    show, sampled, monkeypatch
):
    config, result = sampled
    diagnoses, calls = diagnose(result.fitted.posterior), []
    monkeypatch.setattr(diagnostics, "diagnose", lambda _: calls.append(1) or diagnoses)
    app = show(config, result)
    said = of_chains(diagnoses, 2, apart=False)
    assert level_check(app) == worst(said)
    assert all(check.label in html(app) for check in said)
    frame = app.dataframe[0].value
    assert list(frame["name"].str.lower()) == [d.name.lower() for d in diagnoses]
    np.testing.assert_allclose(frame["r_hat"], [d.r_hat for d in diagnoses])
    assert ("sweep", "Joint log-density") in axes(app)
    assert html(app).count("of the largest weight") == 3
    assert app.get("download_button")[0].proto.label == "Save the draws (NetCDF)"
    box = next(box for box in app.selectbox if box.label == "Quantity")
    box.select("noise variance").run()
    assert ("sweep", "Noise variance") in axes(healthy(app))
    assert len(calls) == 1
    state.rename(RunStore(home()).get(config.id), 1, "<i>slant</i>")
    shown = html(healthy(app.run()))
    assert "2 · &lt;i&gt;slant&lt;/i&gt;" in shown
    assert "<i>slant" not in shown
    assert "Component 1" in shown
    assert "Component 2" not in shown


def test_chains_that_disagree_are_not_to_be_trusted(show, sampled):
    config, result = sampled
    noise = result.fitted.posterior["noise_variance"].copy()
    noise[1] += 20 * noise.std()
    posterior = dict(result.fitted.posterior) | {"noise_variance": noise}
    other = replace(config, parameters=config.parameters | {"random_state": 1})
    app = show(other, FitResult(replace(result.fitted, posterior=posterior), result.info))
    assert level_check(app) == "bad"
    assert "Do not rely on this fit yet" in html(app)
    assert "disagree about the noise variance" in html(app)


@pytest.mark.parametrize(
    ("numbers", "most", "said"),
    [
        ([5] * 4 + [6] * 90 + [7] * 6, 9, "most often 6, between 5 and 7 in 95% of the draws."),
        ([4] * 100, 5, "most often 4."),
        ([4] * 100, 4, "most often 4. That is the most allowed: allow more, and look again."),
    ],
)
def test_the_number_of_components_in_words(numbers, most, said):
    posterior = {
        "n_components": np.array([numbers]),
        "occupancy": np.tile([90, 40, 15, 14, 3, 1, 0], (1, 100, 1)),  # of 300 rows
        "Z_mean": np.zeros((1, 300, 7)),
    }
    assert diagnostics.number_words(posterior, most) == (
        "Components used by at least 5% of rows: most often 3. Also counting those that fewer rows "
        f"use: {said}"
    )


def test_cards_show_names_literally_pictures_with_texts_and_what_chains_dispute(
    sampled, table_diagnostics
):
    fitted = sampled[1].fitted
    shown = diagnostics.cards(fitted, table_diagnostics)
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "<b>a</b>" not in shown
    images = replace(table_diagnostics, image_shape=(1, 5), feature_names=None)
    for dataset in (images, replace(table_diagnostics, provenance={"repetition": 2.5})):
        pictures = diagnostics.cards(fitted, dataset)
        assert (pictures.count("<img"), "ca-loading" in pictures) == (6, False)
    assert 'alt="sd of component 3"' in pictures
    draws = np.tile(fitted.components, (2, 8, 1, 1))
    draws[1, :, 0] = np.linalg.svd(fitted.components)[2][-1]  # a direction none of them has
    shown = diagnostics.cards(replace(fitted, posterior={"components": draws}), table_diagnostics)
    assert shown.count("chain 2 has another in its place") == 1
    assert (shown.count("✕ not identified"), shown.count("✓ identified")) == (1, 2)


PAGE_MASKED = "check/advanced"


@pytest.mark.thorough
def test_hidden_cells_are_compared_in_a_job_that_can_be_cancelled(start, gappy, jobs):  # noqa: F811
    app = start(PAGE_MASKED, data=DatasetStore(home()).put(gappy))
    healthy(app.toggle(key="check_hidden").set_value(True).run())
    assert "Can it predict hidden cells?" in html(app)
    app.button(key="masked_start").click().run()
    (status,) = jobs.jobs.values()
    assert status.kind == "masked"
    healthy(app).button(key="masked_cancel").click().run()
    assert jobs.cancelled == [status.id]
    config = MaskedConfig.from_dict({k: v for k, v in status.spec.items() if k != "key"})
    assert tuple(config.methods) == ("own", "ppca_l", "ppca_k", "ridge", "near", "means")
    config.complete(gappy, home())
    app = healthy(app.run())
    assert "predict" in html(app) or "Better at" in html(app)
    assert len(app.get("plotly_chart")) == 1
    assert "masked_start" not in [one.key for one in app.button]
    downloads = [one.proto.label for one in app.get("download_button")]
    assert downloads == ["Save the data, filled by the model"]
    healthy(go(start(), PAGE_MASKED))  # whole data are asked, too


def config_of_masked(n_active=2):
    return MaskedConfig("0" * 64, {}, "aPPCA", {"n_components": 4, "n_active": n_active})


@pytest.mark.parametrize(
    ("errors", "said", "how"),
    [
        ({"own": 1, "ppca_l": 2, "means": 4}, "The model predicts hidden cells best", "good"),
        (
            {"own": 2, "ridge": 1, "means": 4},
            "Better at hidden cells than the model: r",
            "doubtful",
        ),
        ({"own": 3, "near": 4, "means": 1}, "Nothing predicts hidden cells better", "bad"),
        ({"own": 1, "near": 1.01}, "2 of 4 and Nearest rows predict hidden cells equally", "good"),
    ],
)
def test_the_answer_says_where_the_model_is_not_the_best(errors, said, how):
    bumps = {"own": [0.0, 0.5], "near": [0.1, 0.4]}
    found = {key: error + np.array(bumps.get(key, [0.0, 0.5])) for key, error in errors.items()}
    assert said in verdict(config_of_masked(), found)
    assert level(found) == how
