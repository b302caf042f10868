"""Tests of the page Check: choice of K, L and model, comparisons, hidden cells, reliability."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from appca.analysis import tables
from appca.analysis.choose import GridConfig, StabilityConfig
from appca.analysis.compare import METHODS, MaskedConfig, ModelsConfig
from appca.analysis.diagnostics import diagnose, failures, of_chains, worst
from appca.data.dataset import Dataset
from appca.data.preprocessing import suggest
from appca.data.sources import draw_synthetic, load
from appca.data.store import DatasetStore
from appca.jobs.tasks import QualityConfig
from appca.runs import fit
from appca.runs.fit import fit_run, halves_of, models_of
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import Run, RunStore
from appca.ui import diagnostics, explore, state
from appca.ui.choose import verdict
from appca.words import percent
from tests.models.synthetic import planted
from tests.ui.conftest import address, charts, find, go, healthy, html, keys, stored_run, told
from tests.ui.conftest import run_of as shown_run

PAGE, START, TRUST = "check/choose", "grid_start", "check/trust"


@pytest.fixture(scope="module")
def table() -> Dataset:
    X = planted(150, 6, 4, 2, seed=0, noise=0.1).X
    return Dataset("four, two", X, np.arange(150).astype(str))


@pytest.fixture(scope="module")
def wine() -> Dataset:
    return load("wine")


def run_of(dataset: Dataset, model: str = "aPPCA", **parameters: object) -> Run:
    return stored_run(dataset, model, suggest(dataset).to_dict(), **parameters)


def asked(jobs, kind: type):
    """Return what the job that runs is to compute, and the job."""
    (job,) = jobs.active()
    return kind.from_dict({k: v for k, v in job.spec.items() if k != "key"}), job


def measured(config, lines) -> None:
    journal = config.journal(home())
    journal.begin(config.id, config.to_dict())
    for line in lines:
        journal.append(config.id, line)


def best_at_4_and_2(config: GridConfig) -> list[list[float]]:
    """Return records of a grid: four components, two to a row, predict best by far."""
    lines = []
    for k, n, fold in config.steps():
        nats = -9 - 2 * abs(k - 4) - 3 * abs(n - 2) + 0.01 * fold
        lines.append([k, n, fold, nats, *2 * [1.0, 0.1], -29.0, *[1.0] * k, 0.1])
    return lines


def test_a_grid_fills_survives_cancel_and_reload_and_its_answer_is_adopted(start, table, jobs):
    app = start(PAGE, data=table, k="3", l="1")
    app.button(key=START).click().run()
    config, job = asked(jobs, GridConfig)
    assert address(app)["grid"] == config.id == job.spec["key"]
    assert "choose_cancel" in keys(healthy(start(PAGE, **address(app))))
    measured(config, (lines := best_at_4_and_2(config))[:25])
    maps = [one["data"][0] for one in charts(healthy(app.run()))]
    assert any(map(any, next(one["text"] for one in maps if one["type"] == "heatmap")))
    app.button(key="choose_cancel").click().run()
    assert jobs.cancelled == [job.id]
    n = len({(k, n) for k, n, *_ in lines[:24]} & {*config.cells})
    assert f", of {n} choices compared" in html(healthy(app))
    assert f"{len(config.cells) - n} other choices, some of them larger" in html(app)
    assert app.button(key=START).label.startswith("Continue")
    for line in lines[25:]:
        config.journal(home()).append(config.id, line)
    assert "Try K = 4 and L = 2" in html(healthy(app.run()))
    now = address(healthy(app.button(key="choose_adopt").click().run()))
    assert (now["k"], now["l"], [one.value for one in app.title]) == ("4", "2", ["Explore"])
    assert healthy(start(PAGE, **now)).button(key="choose_adopt").disabled


def test_grids_of_models_without_l_of_sampled_ones_and_of_too_few_rows(start, table, jobs):
    app = healthy(start(PAGE, run=stored_run(table, "PPCA", n_components=2).id))
    assert "adaptive PPCA or adaptive factor" in html(app)
    app.button(key="choose_model_aPPCA").click().run()
    assert START in keys(app)
    quick = stored_run(table, "aFA", n_components=3, n_active=1)  # chains take long
    sampled = replace(quick.config, parameters=quick.config.parameters | {"inference": "gibbs"})
    RunStore(home()).save(sampled, FitResult(quick.fitted, quick.info))
    healthy(start(PAGE, run=sampled.id)).button(key=START).click().run()
    config, _ = asked(jobs, GridConfig)
    assert (config.model, config.parameters["inference"]) == ("aFA", "em")
    assert "n_draws" not in config.parameters
    few = Dataset("few", np.eye(3), np.arange(3).astype(str))
    assert "needs at least 4" in healthy(start(PAGE, data=few)).info[0].value


def test_a_fit_is_relied_on_once_its_halves_agree(start, table, jobs):
    app = start(TRUST, data=table, k="4", l="2")
    assert "Not checked yet" in html(healthy(app))
    app.button(key="stability_start").click().run()
    config, job = asked(jobs, StabilityConfig)
    assert (job.kind, config.parameters["n_active"], config.repeats) == ("stability", 2, 4)
    gains = [-1.0, 0.1, 0.0, -1.0, 0.1, -0.5]  # PCA with L, and L + 1
    measured(config, [[n, *gains, 1.0, 0.99, 0.98, 0.97] for n in range(1, 5)])
    jobs.end(job.id, "done", stability=config.id)
    assert "You can rely on this fit" in html(healthy(app.run()))
    assert ("Fits well" in html(app), "stability_start" in keys(app)) == (True, False)
    fewer = replace(config, parameters=config.parameters | {"n_active": 1})
    measured(fewer, [[n, *gains, 1.0, 0.99, 0.9, 0.2] for n in range(1, 5)])
    app = healthy(start(TRUST, data=table, k="4", l="1"))
    assert (answer(app), "recover only component" in html(app)) == ("doubtful", True)


PLACE = "check/advanced"


def measured_which_model(app, at_floor: float = 0.0, **nats: float) -> ModelsConfig:
    """Store a comparison in which methods differ from the paper's model by so many nats per row."""
    config = models_of(app.session_state["config"])
    spread, lines = np.tile([-1.0, 1.0], 50), []
    for number, key in enumerate(METHODS):
        mean = nats.get(key.replace("+", "_"), 0.0)
        values, floor = -100.0 + mean + spread * (mean != 0), at_floor if "mixture" in key else 0.0
        lines.append([key, values.tolist(), 200 + number, 0.5, "", floor])
    measured(config, lines)
    return config


def test_which_model_is_asked_answered_with_doubts_and_taken(start, jobs):
    app = healthy(start(PLACE))
    assert "Which model?" in html(app)
    button = app.button(key="models_start")
    assert button.label.startswith("Compare 17 models, about")
    button.click().run()
    config, job = asked(jobs, ModelsConfig)
    assert config.id == models_of(app.session_state["config"]).id
    measured_which_model(app, 0.12, noise_scale=5.0, noise=2.0, mixture=3.0)
    jobs.end(job.id, "done", models=config.id)
    page = html(healthy(app.run()))
    assert "Use noise per feature and a scale per row" in page
    assert "+5.0 nats per row over the paper&#x27;s model" in page
    assert "Above all rivals: 2.0 nats over Mixture of PPCA, 4 of 2." in page
    assert "Mixture of PPCA, 4 of 2 is unreliable: 12% of noise variances at their floor" in page
    assert len(find(app.selectbox, "Variant").options) == 9, "rivals cannot be used"
    chosen = healthy(app.button(key="models_use").click().run()).session_state["config"].parameters
    assert (chosen["noise"], chosen["row_scale"], chosen["n_active"]) == ("feature", "learned", 2)
    assert app.button(key="models_use").disabled
    assert sum("in use" in name for name in find(app.selectbox, "Variant").options) == 1


@pytest.mark.parametrize("gain", [3.0, 0.0])
def test_row_scales_are_offered_if_held_out_rows_prefer_them(start, table, jobs, monkeypatch, gain):
    monkeypatch.setitem(explore.SHORT, "models", 60.0)
    app = healthy(start("explore", data=table, k="4", l="2"))
    (job,) = jobs.active()
    assert (job.kind, job.asked, job.spec["most"]) == ("models", False, 3)
    assert jobs.pauses[-1] > 1.0, "after the first picture"
    assert "Comparing models" not in html(app), "nobody has asked for it"
    measured_which_model(app, scale=gain, variance=4.0)
    jobs.end(job.id, "done")
    page = told(healthy(app.run()))
    assert ("variant" in keys(app), "−97.0, not −100.0 nats" in page) == (gain > 0,) * 2
    assert ("Rows differ in scale" in html(app), "Fits well" in html(app)) == (gain > 0, False)
    if gain:
        before = (numbers := ComponentNumbers(home())).rename(shown_run(app), 1, "slant")
        now = shown_run(healthy(app.button(key="variant").click().run()))
        assert now.config.parameters["row_scale"] == "learned"
        assert (numbers.of_run(now).names, "variant" in keys(app)) == (before.names, False)


@pytest.mark.parametrize(("here", "there"), [(0.3, 0.95), (0.95, 0.95), (0.3, 0.3)])
def test_k_and_l_that_pass_are_offered(start, table, jobs, monkeypatch, here, there):
    monkeypatch.setattr(explore, "SHORT", dict.fromkeys(explore.SHORT, 60.0) | {"models": 0.0})
    app = healthy(start("explore", data=table, k="3", l="1"))
    config, job = asked(jobs, StabilityConfig)
    assert (config.id, job.asked) == (halves_of(app.session_state["config"]).id, False)
    gains = [-1.0, 0.1, 0.0, -1.0, 0.1, -0.5]  # PCA with L, and L + 1
    measured(config, [[n, *gains, *[here] * 3] for n in range(1, 5)])
    jobs.end(job.id, "done")
    healthy(app.run())
    if here < there or there < 0.9:
        grid, job = asked(jobs, GridConfig)
        measured(grid, best_at_4_and_2(grid))
        sizes = {"n_components": 4, "n_active": 2}
        best = replace(config, parameters=config.parameters | sizes)
        measured(best, [[n, *gains, *[there] * 4] for n in range(1, 5)])
        jobs.end(job.id, "done")
    assert ("sizes" in keys(healthy(app.run()))) == (here < there)
    if here < there:
        assert "K = 4, L = 2 pass the checks" in told(app)
        now = address(healthy(app.button(key="sizes").click().run()))
        assert (now["k"], now["l"], "sizes" in keys(app)) == ("4", "2", False)
    assert not jobs.active()


@pytest.mark.parametrize(("scaled", "plain", "told"), [(4, 4, 1), (1, 4, 0), (4, 1, 1)])
def test_the_steadier_of_two_fits_is_advised(start, table, monkeypatch, scaled, plain, told):
    monkeypatch.setattr(fit, "better", lambda *_: ["scales", "fit"])
    run = run_of(table, n_components=4, n_active=2)
    with_scales = run_of(table, n_components=4, n_active=2, row_scale="learned")
    for each, n in ((run, plain), (with_scales, scaled)):
        line = [*[None] * 6, *[0.95] * n, *[0.3] * (4 - n)]
        measured(halves_of(each.config), [[i, *line] for i in range(1, 5)])
    said = [html(healthy(start(TRUST, data=table, run=each.id))) for each in (run, with_scales)]
    assert "Rows differ in scale" in said[0] if told else "Rows differ in scale" not in said[0]
    assert ("Steadier without row scales" in said[1]) == (scaled < plain)


def test_a_learned_number_is_said_and_taken_back_to_the_same_comparison(start):
    app = start(l="1")
    config = measured_which_model(app, noise_scale_number=9.0, mixture_diagonal=20.0)
    app = healthy(go(app, PLACE))
    assert "Rows then use 0 to 4 components, not 1." in html(app)
    assert "Mixture of factor analyzers, 4 of 1 is 11.0 nats above it" in html(app)
    app.button(key="models_use").click().run()
    assert app.session_state["config"].parameters["n_active"] == "learned"
    assert models_of(app.session_state["config"]).id == config.id
    app = start()
    measured_which_model(app, noise=0.05)
    app = healthy(go(app, PLACE))
    assert "Keep the paper&#x27;s model" in html(app), "no clear lead"
    assert app.button(key="models_use").disabled


def compared(app):
    return next((box for box in app.selectbox if box.label == "Compare with"), None)


def another_start(app):
    now = RunStore(home()).get(address(app)["run"]).config
    again = now.parameters | {"random_state": now.parameters["random_state"] + 1}
    return healthy(compared(app).select(now.to_be_fitted(parameters=again).id).run())


def test_a_first_visit_compares_with_pca_and_one_press_with_others(start, wine):
    app = healthy(start(TRUST, data=wine))
    own = address(app)["run"]
    (other,) = (run for run in RunStore(home()).list() if run.id != own)
    assert (other.config.model, address(app)["with"]) == ("PPCA", other.id)
    assert "components are paired" in html(app)
    assert "components shared" not in html(app), "PCA has no supports"
    assert "moved_select" not in keys(app)
    another_start(app)
    assert RunStore(home()).get(address(app)["with"]).config.parameters["random_state"] == 1
    assert address(app)["run"] == own
    assert "components shared" in html(app)
    wider = run_of(wine, n_components=5, n_active=2)
    app = healthy(start(TRUST, run=own, **{"with": wider.id}))
    app.button(key="moved_select").click().run()
    mask = app.session_state[state.KEYS.selections][wine.digest]
    assert 0 < mask.mean() < 1
    assert f"Select the {mask.sum()} rows that differ" in [one.label for one in app.button]
    assert address(healthy(start(TRUST, **address(app))))["with"] == wider.id


def test_runs_of_other_data_are_not_offered_and_a_wrong_address_gets_another(start, wine):
    first = run_of(wine, "PPCA", n_components=3)
    run_of(load("breast_cancer"), n_components=3)
    app = healthy(start(TRUST, run=first.id))
    assert compared(app) is None
    assert "What would you like to compare with?" in told(app)
    other = run_of(wine, "PPCA", n_components=2)
    again = healthy(start(TRUST, run=first.id, **{"with": "../nonsense"}))
    assert compared(again).value == other.id


def test_a_long_variation_is_a_job_and_compared_when_it_is_ready(start, wine, jobs, monkeypatch):
    first = run_of(wine, n_components=3, n_active=2)
    monkeypatch.setattr("appca.ui.fits.LIVE_SECONDS", -1.0)
    app = healthy(start(TRUST, run=first.id))
    another_start(app).button(key="compare_fit").click().run()
    (job,) = jobs.active()
    assert "job_cancel" in keys(app)
    jobs.finish_fit(job.id)
    healthy(app.run())
    assert address(app)["run"] == first.id
    assert address(app)["with"] == jobs.status(job.id).result["run"]


def line(key: str, size: int, used: int, **values: object) -> dict:
    names = ("log_likelihood", "log_likelihood_error", "mse", "mae", "accuracy")
    near = {name: [0.9, 0.0] for name in ("trustworthiness", "continuity", "kept")}
    given = dict.fromkeys(names) | near | {"note": "", "seconds": 0.5, "n_neighbors": 15}
    return given | {"key": key, "title": f"<{key}>", "size": size, "used": used} | values


COMPARISON = [
    line("own", 4, 2, log_likelihood=-14.0, log_likelihood_error=0.5, mse=0.3),
    line("ppca_l", 2, 2, log_likelihood=-16.0, log_likelihood_error=0.5, mse=0.4),
    line("pca", 4, 4, log_likelihood=-13.0, log_likelihood_error=0.5, mse=0.2),
    line("mixture", 4, 4, note="not finished within 120 s", seconds=None, kept=None),
    line("umap", 2, 2, kept=[0.95, 0.004]),
]


def test_map_quality_is_measured_on_demand_and_told(start, wine, jobs):
    run = run_of(wine, n_components=4, n_active=2)
    app = healthy(start(TRUST, run=run.id))
    assert "How many near rows stay near?" in html(app)
    app.button(key="quality_start").click().run()
    (job,) = jobs.active()
    config = QualityConfig(run.config.to_dict(), run.config.k, run.config.n_active)
    assert (job.kind, job.spec["key"]) == ("quality", config.id)
    measured(config, [[one["key"], one] for one in COMPARISON])
    healthy(app.run()).button(key="quality_cancel").click().run()
    assert app.button(key="quality_start").label.startswith("Continue")
    page = html(healthy(app.run()))
    assert "UMAP keeps 95% of each row&#x27;s 15 nearest rows" in page
    assert "The panels 90%." in page
    (shown,) = app.dataframe
    table = shown.value.set_index("Method")
    assert list(table["Numbers per row"]) == ["2 of 4", "2", "2", "4", "4"]
    assert table["Neighbours kept"]["<umap>"] == 0.95
    assert table["± neighbours kept"]["<umap>"] == 0.004
    assert (table["Log-likelihood"]["<own>"], table["± log-likelihood"]["<own>"]) == (-14.0, 0.5)
    assert "120 s" in table["Note"]["<mixture>"]
    assert np.isnan(table["Neighbours kept"]["<mixture>"])
    assert "Absolute error" not in table, "no method has it"


SHORT = {"n_chains": 2, "burn_in": 20, "n_draws": 60}


@pytest.fixture(scope="module")
def factors() -> Dataset:
    sizes = {"n_rows": 90, "n_features": 5, "n_components": 3, "n_active": 2}
    drawn = draw_synthetic(np.random.default_rng(0), "balanced", **sizes)
    names = ("<b>a</b>", "b", "c", "d", "e")
    ids = np.array([f"row {n}" for n in range(90)])
    return Dataset("three factors", drawn.Y, ids, {}, None, names)


@pytest.fixture(scope="module")
def sampled(factors) -> tuple[RunConfig, FitResult]:
    at = {"n_components": 3, "n_active": 2, "inference": "gibbs", "chain_starts": "init"}
    config = RunConfig(factors.digest, {}, "aPPCA", at | SHORT)
    return config, fit_run(factors, config)


@pytest.fixture
def show(start, factors):

    def opened(config: RunConfig, result: FitResult):
        DatasetStore(home()).put(factors)
        RunStore(home()).save(config, result)
        return healthy(start(TRUST, run=config.id))

    return opened


def answer(app) -> str:
    (found,) = re.findall(r'class="ca-answer ca-(\w+)"', html(app))
    return found


def axes(app) -> list[tuple[str, str]]:
    layouts = [one["layout"] for one in charts(app) if "title" in one["layout"]["yaxis"]]
    return [(one["xaxis"]["title"]["text"], one["yaxis"]["title"]["text"]) for one in layouts]


def test_a_converged_fit_is_answered_with_chips_a_curve_and_numbers(start, monkeypatch):
    def refuse(_posterior):  # a fit by EM never waits for chains to be compared
        raise AssertionError

    monkeypatch.setattr(diagnostics, "diagnose", refuse)
    app = healthy(start(TRUST))
    assert answer(app) == "unknown"
    for said in ("Converged in", "Noise above its floor", "No row dominates", "No repeated rows"):
        assert said in html(app)
    run = RunStore(home()).get(address(app)["run"])
    assert f"<b>{percent(np.mean(run.fitted.membership < 0.5))}</b>" in html(app)


ENDS = [  # model, parameters, stopped at, answer, what is said
    ("aPPCA", {"init": "random", "max_iter": 3, "tol": 0.0}, None, "bad", "Not converged"),
    ("aPPCA", {"n_active": 1, "tol": 0.0}, 5, "doubtful", "Stopped early"),
    ("PPCA", {}, None, "doubtful", "Solved exactly"),
    ("aPPCA", {"n_active": 2, "noise": "feature"}, None, "doubtful", "at its floor"),
]


@pytest.mark.parametrize(("model", "parameters", "stopped", "wanted", "said"), ENDS)
def test_a_fit_is_answered_by_how_it_ended(show, factors, model, parameters, stopped, wanted, said):
    config = RunConfig(factors.digest, {}, model, {"n_components": 3} | parameters, stopped)
    app = show(config, fit_run(factors, config))
    assert answer(app) == wanted
    assert said in html(app)
    ended = "init" in parameters, "noise" in parameters  # by a curve, near the start
    assert (len(axes(app)) == 2, "already near" in told(app)) == ended


def test_without_arviz_the_page_says_what_to_install(show, sampled, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    monkeypatch.setattr("appca.ui.diagnostics.kept", lambda _key, make: make())
    app = show(*sampled)
    assert "Chains not compared" in html(app)
    assert "pip install 'appca[mcmc]'" in told(app)
    assert ("sweep", "Joint log-density") in axes(app)


def test_sampled_chains_are_compared_once_and_drawn_with_names(show, sampled, monkeypatch):
    config, result = sampled
    diagnoses, calls = diagnose(result.fitted.posterior), []
    monkeypatch.setattr(diagnostics, "diagnose", lambda _: calls.append(1) or diagnoses)
    app, said = show(config, result), of_chains(diagnoses, 2, apart=False)
    assert answer(app) == worst(said)
    assert all(check.label in html(app) for check in said)
    frame = app.dataframe[0].value
    assert list(frame["name"].str.lower()) == [d.name.lower() for d in diagnoses]
    np.testing.assert_allclose(frame["r_hat"], [d.r_hat for d in diagnoses])
    assert ("sweep", "Joint log-density") in axes(app)
    assert html(app).count("of the largest weight") == 3
    assert app.get("download_button")[0].proto.label == "Save the draws (NetCDF)"
    find(app.selectbox, "Quantity").select("noise variance").run()
    assert ("sweep", "Noise variance") in axes(healthy(app))
    assert len(calls) == 1
    state.rename(RunStore(home()).get(config.id), 1, "<i>slant</i>")
    shown = html(healthy(app.run()))
    assert "2 · &lt;i&gt;slant&lt;/i&gt;" in shown
    assert "<i>slant" not in shown
    assert "Component 2" not in shown
    # 60 draws of two chains are at most some 120 effective ones, and 200 are wanted
    found = [diagnoses[0]._replace(r_hat=np.nan, raftery_lewis=None), *diagnoses[1:]]
    lines = diagnostics.lines_of(found, 2, 20.0)
    assert lines["short"].str.contains("Effective draws, Effective draws, tails").all()
    heads = [head for head, *_ in diagnostics.COLUMNS.values() if "," not in head]
    named = [sum(head in text for head in heads) + ("tails" in text) for text in lines["short"]]
    assert named == [len(failures(one, 2, 20.0)) for one in found]
    assert lines.iloc[0].isna().sum() == 4  # R-hat and three numbers of Raftery and Lewis


def test_chains_that_disagree_are_not_to_be_trusted(show, sampled):
    config, result = sampled
    noise = result.fitted.posterior["noise_variance"].copy()
    noise[1] += 20 * noise.std()
    posterior = dict(result.fitted.posterior) | {"noise_variance": noise}
    other = replace(config, parameters=config.parameters | {"random_state": 1})
    app = show(other, FitResult(replace(result.fitted, posterior=posterior), result.info))
    assert answer(app) == "bad"
    assert "Do not rely on this fit yet" in html(app)
    assert "disagree about the noise variance" in html(app)


def test_a_model_that_learns_the_number_of_components_shows_it(start, factors):
    run = stored_run(factors, "isFA", max_components=5, **SHORT)
    app = healthy(start(TRUST, run=run.id))
    assert answer(app) in ("good", "doubtful", "bad")
    assert html(app).count("|cos|") == len(run.fitted.components)


def test_cards_have_pictures_with_texts_and_say_what_chains_dispute(sampled, factors):
    fitted, images = sampled[1].fitted, replace(factors, image_shape=(1, 5), feature_names=None)
    for dataset in (images, replace(factors, provenance={"repetition": 2.5})):
        pictures = diagnostics.cards(fitted, dataset)
        assert (pictures.count("<img"), "ca-loading" in pictures) == (6, False)
    assert 'alt="sd of component 3"' in pictures
    draws = np.tile(fitted.components, (2, 8, 1, 1))
    draws[1, :, 0] = np.linalg.svd(fitted.components)[2][-1]  # a direction none of them has
    shown = diagnostics.cards(replace(fitted, posterior={"components": draws}), factors)
    assert "<b>a</b>" not in shown
    assert shown.count("chain 2 has a different component") == 1
    assert (shown.count("✕ not identified"), shown.count("✓ identified")) == (1, 2)


@pytest.fixture(scope="module")
def gappy() -> Dataset:
    X = planted(120, 6, 4, 2, seed=0, noise=0.1).X
    missing = np.random.default_rng(1).random(X.shape) < 0.1
    full = np.where(missing, np.nanmean(np.where(missing, np.nan, X), axis=0), X)
    kinds = {"kind": np.array(["=a", "b"] * 60)}
    return Dataset("gappy", full, np.arange(120).astype(str), kinds, missing=missing)


def test_hidden_cells_are_compared_in_a_job_and_filled_data_are_saved(start, gappy, jobs):
    app = start(PLACE, data=gappy)
    healthy(app.toggle(key="check_hidden").set_value(True).run())
    assert "Can it predict hidden cells?" in html(app)
    app.button(key="masked_start").click().run()
    config, job = asked(jobs, MaskedConfig)
    healthy(app).button(key="masked_cancel").click().run()
    assert jobs.cancelled == [job.id]
    assert tuple(config.methods) == ("own", "ppca_l", "ppca_k", "ridge", "near", "means")
    measured(config, [[*step, 1.0 + (step[1] != "own"), 9] for step in config.steps()])
    assert "The model predicts hidden cells best" in html(healthy(app.run()))
    assert len(charts(app)) == 1
    assert "masked_start" not in keys(app)
    downloads = [one.proto.label for one in app.get("download_button")]
    assert downloads == ["Save the data, filled by the model"]
    values = np.arange(gappy.n_missing) + 100.0
    lines = [row.split(",") for row in tables.filled_csv(gappy, values).decode().splitlines()]
    assert lines[0] == ["id", "kind", *(f"feature_{j + 1}" for j in range(6))]
    X = np.array([row[2:] for row in lines[1:]], float)
    np.testing.assert_array_equal(X[gappy.missing], values)
    np.testing.assert_allclose(X[~gappy.missing], gappy.X[~gappy.missing])
    assert lines[1][1] == "'=a"  # a spreadsheet must not run it


def test_the_answer_says_where_the_model_is_not_the_best():
    config = MaskedConfig("0" * 64, {}, "aPPCA", {"n_components": 4, "n_active": 2})
    for errors, said, how in (
        ({"own": 1, "ppca_l": 2, "means": 4}, "The model predicts hidden cells best", "good"),
        ({"own": 2, "ridge": 1, "means": 4}, "hidden cells than the model: r", "doubtful"),
        ({"own": 3, "near": 4, "means": 1}, "Nothing predicts hidden cells better", "bad"),
        ({"own": 1, "near": 1.01}, "at hidden cells: Adaptive PPCA, 2 of 4, Near", "good"),
    ):
        bumps = {key: [0.1, 0.4] if key == "near" else [0.0, 0.5] for key in errors}
        found = {key: error + np.array(bumps[key]) for key, error in errors.items()}
        told, level = verdict(config, found)
        assert said in told
        assert level == how
