"""The page Diagnostics: the verdict first, for fits by EM and for chains, good ones and bad."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from appca.analysis.diagnostics import diagnose, failures, of_chains, worst
from appca.data.dataset import Dataset
from appca.data.sources import draw_synthetic
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import RunStore
from appca.ui import diagnostics, state
from appca.words import percent
from tests.ui.conftest import address, healthy, html

PAGE = "check/trust"
SHORT = {"n_chains": 2, "burn_in": 20, "n_draws": 60}


@pytest.fixture(scope="module")
def table() -> Dataset:
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
def sampled(table) -> tuple[RunConfig, FitResult]:
    """A short run of aPPCA by Gibbs sampling."""
    at = {"n_components": 3, "n_active": 2, "inference": "gibbs", "chain_starts": "init"}
    return fitted(table, "aPPCA", **at, **SHORT)


@pytest.fixture
def show(start, table):
    """Return a function that stores a run and opens the page on it."""

    def opened(config: RunConfig, result: FitResult):
        DatasetStore(home()).put(table)
        RunStore(home()).save(config, result)
        return healthy(start(PAGE, run=config.id))

    return opened


def level(app) -> str:
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
    app = healthy(start(PAGE))
    assert level(app) == "doubtful"
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


def test_a_model_that_learns_the_number_of_components_shows_it(show, table):
    config, result = fitted(table, "isFA", max_components=5, **SHORT)
    app = show(config, result)
    assert level(app) in ("good", "doubtful", "bad")
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
    show, table, model, parameters, stopped_at, verdict, said
):
    config = RunConfig(table.digest, {}, model, {"n_components": 3} | parameters)
    config = replace(config, stopped_at=stopped_at)
    app = show(config, fit_run(table, config))
    assert level(app) == verdict
    assert said in html(app)


def test_sampled_chains_are_compared_once_and_drawn_with_the_names_of_components(
    show, sampled, monkeypatch
):
    config, result = sampled
    diagnoses, calls = diagnose(result.fitted.posterior), []
    monkeypatch.setattr(diagnostics, "diagnose", lambda _: calls.append(1) or diagnoses)
    app = show(config, result)
    said = of_chains(diagnoses, 2, apart=False)
    assert level(app) == worst(said)
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
    assert level(app) == "bad"
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


def test_cards_show_names_literally_pictures_with_texts_and_what_chains_dispute(sampled, table):
    fitted = sampled[1].fitted
    shown = diagnostics.cards(fitted, table)
    assert "&lt;b&gt;a&lt;/b&gt;" in shown
    assert "<b>a</b>" not in shown
    images = replace(table, image_shape=(1, 5), feature_names=None)
    for dataset in (images, replace(table, provenance={"repetition": 2.5})):
        pictures = diagnostics.cards(fitted, dataset)
        assert (pictures.count("<img"), "ca-loading" in pictures) == (6, False)
    assert 'alt="sd of component 3"' in pictures
    draws = np.tile(fitted.components, (2, 8, 1, 1))
    draws[1, :, 0] = np.linalg.svd(fitted.components)[2][-1]  # a direction none of them has
    shown = diagnostics.cards(replace(fitted, posterior={"components": draws}), table)
    assert shown.count("chain 2 has another in its place") == 1
    assert (shown.count("✕ not identified"), shown.count("✓ identified")) == (1, 2)
