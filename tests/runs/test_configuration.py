import inspect
from dataclasses import replace

import numpy as np
import pytest

from appca.runs.run import MODELS, RunConfig, defaults, estimator_class, suited
from appca.words import InputError

BASE = RunConfig("d" * 64, {"divide": 16.0}, "aPPCA", {"n_components": 5, "random_state": 3})


def test_the_id_is_pinned():
    """Changing how ids are made orphans every stored run and every link; this test says when."""
    assert BASE.id == "d02a800c730e"


def test_the_same_settings_are_the_same_run_however_they_are_written():
    spelled_out = RunConfig(
        BASE.dataset,
        {"pca": None, "scale": "none", "centre": False, "divide": 16},
        "aPPCA",
        dict(reversed((defaults("aPPCA") | {"n_components": 5, "random_state": 3}).items())),
    )
    numpy = replace(BASE, parameters={"n_components": np.int64(5), "random_state": np.int32(3)})
    assert spelled_out.id == numpy.id == BASE.id
    assert spelled_out == numpy == BASE
    assert len({spelled_out, numpy, BASE}) == 1
    assert RunConfig.from_dict(BASE.to_dict()) == BASE


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, dataset="e" * 64),
        replace(BASE, preprocessing={"divide": 255.0}),
        replace(BASE, preprocessing={"divide": 16.0, "pca": 10}),
        replace(BASE, preprocessing={"divide": 16.0, "pca": 0.995}),
        RunConfig(BASE.dataset, BASE.preprocessing, "PPCA", {"n_components": 5, "random_state": 3}),
        replace(BASE, parameters={**BASE.parameters, "random_state": 4}),
        replace(BASE, parameters={**BASE.parameters, "tol": 1e-5}),
        replace(BASE, parameters={**BASE.parameters, "latent_variance": 1.0}),
        replace(BASE, stopped_at=7),
    ],
)
def test_everything_that_matters_changes_the_id(other):
    assert other.id != BASE.id
    assert other != BASE


def test_a_config_does_not_change_with_the_dicts_it_was_made_of():
    parameters = {"n_components": 5}
    config = RunConfig("a", {}, "aPPCA", parameters)
    before = config.id
    parameters["n_components"] = 6
    config.to_dict()["parameters"]["n_components"] = 7
    assert config.parameters["n_components"] == 5
    assert RunConfig.from_dict(config.to_dict()).id == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"model": "PCA"},
            r"There is no model “PCA”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA\.",
        ),
        ({"parameters": {"n_componets": 3}}, "aPPCA has the settings n_components, .* n_componets"),
        ({"parameters": {"random_state": None}}, "random_state must be a whole number"),
        ({"parameters": {"init": np.eye(3)}}, "init must be a finite number, a text"),
        ({"parameters": {"tol": float("nan")}}, "tol must be a finite number"),
        ({"preprocessing": {"whiten": True}}, "Preprocessing knows .*; got whiten"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_one_sentence(changes, words):
    with pytest.raises(InputError, match=words):
        replace(BASE, **changes)


@pytest.mark.parametrize("model", MODELS)
def test_recorded_settings_are_the_estimators_own_with_its_defaults(model):
    signature = inspect.signature(estimator_class(model)).parameters
    own = {name: parameter.default for name, parameter in signature.items()}
    # what is told of a fit, what is made of its scores, and what goes on from another fit
    left_out = {"callback", "verbose", "whiten", "warm_start"}
    recorded = defaults(model, "gibbs")
    assert set(recorded) == set(own) - left_out
    differing = {name for name, value in recorded.items() if own[name] != value}
    assert differing <= {"random_state", "n_components"}
    assert recorded["random_state"] == 0


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("model", MODELS)
def test_the_values_a_setting_can_have_are_those_the_estimator_takes(model):
    X = np.random.default_rng(0).standard_normal((30, 4))
    small = {"n_components": 2, "n_active": 1, "max_components": 2, "burn_in": 1, "n_draws": 2}
    for name, values in MODELS[model].choices.items():
        for value in values:
            inference = "gibbs" if name in MODELS[model].sampling else "em"
            wanted = suited(model, small | {"inference": inference} | {name: value})
            assert wanted[name] == value
            estimator_class(model)(**wanted).fit(X)
        refused = estimator_class(model)(**suited(model, small) | {name: "no such value"})
        with pytest.raises(ValueError, match=name):
            refused.fit(X)


def test_settings_of_sampling_are_recorded_only_where_something_is_sampled():
    idle = RunConfig("a", {}, "aPPCA", {"n_draws": 7, "z_update": "swap"})
    assert idle.id == RunConfig("a", {}, "aPPCA", {}).id
    assert not idle.is_sampled
    gibbs = RunConfig("a", {}, "aPPCA", {"inference": "gibbs", "n_draws": 7})
    assert gibbs.parameters["n_draws"] == 7
    assert gibbs.parameters["n_chains"] == 2
    assert gibbs.is_sampled
    assert gibbs.id != RunConfig("a", {}, "aPPCA", {"inference": "gibbs"}).id
    assert RunConfig("a", {}, "isFA", {}).is_sampled


def test_another_model_takes_over_the_settings_that_mean_something_to_it():
    old = RunConfig("a", {}, "aPPCA", {"n_components": 7, "init": "quartimax", "n_init": 3})
    taken = suited("aFA", old.parameters)
    assert (taken["n_components"], taken["init"], taken["n_init"]) == (7, "auto", 3)
    assert "latent_variance" not in taken
    fixed = suited("NPPCA", {"latent_variance": 1.0})
    assert fixed["latent_variance"] == 1.0
    assert suited("NPPCA", {"latent_variance": "component"})["latent_variance"] == "shared"
    assert suited("aFA", {"inference": "gibbs", "n_draws": 9})["n_draws"] == 9
    assert "n_draws" not in suited("aFA", {"inference": "hard", "n_draws": 9})


@pytest.mark.parametrize(
    ("model", "sizes", "active"),
    [
        ("aPPCA", ["K = 4", "L = 2"], 2),
        ("PPCA", ["K = 4"], 4),
        ("isFA", ["K up to 20"], None),
    ],
)
def test_a_config_says_how_many_components_there_are(model, sizes, active):
    config = RunConfig("a", {}, model, {})
    assert config.sizes == sizes
    assert config.n_active == active


def extended(**settings):
    return replace(BASE, parameters={"n_components": 4, "n_active": 2} | settings)


@pytest.mark.parametrize(
    "settings", [{"noise": "feature"}, {"row_scale": "learned"}, {"n_active": "learned"}]
)
def test_extensions_are_recorded(settings):
    changed = extended(**settings)
    assert changed.id != extended().id
    assert changed.is_extended
    again = RunConfig.from_record(changed.to_dict())
    assert (again.id, again.parameters) == (changed.id, changed.parameters)
    assert suited("PPCA", changed.parameters)["n_components"] == 4
    assert suited("aFA", changed.parameters)["n_active"] == 2


def test_learned_sizes_are_said_in_words():
    learned = extended(n_active="learned")
    assert learned.sizes == ["K = 4", "L learned"]
    both = extended(noise="feature", row_scale="learned")
    assert both.sizes == ["K = 4", "L = 2", "noise per feature", "row scales"]
    assert (learned.n_active, learned.chosen_size, extended().chosen_size) == (None, None, 2)
    assert learned.allows(4)
    assert not learned.allows(3)
