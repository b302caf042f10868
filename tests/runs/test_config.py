import inspect
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from appca.data.errors import InputError
from appca.runs.config import MODELS, RunConfig, defaults, estimator_class

BASE = RunConfig("d" * 64, {"divide": 16.0}, "aPPCA", {"n_components": 5, "random_state": 3})


def test_the_id_is_pinned():
    """Changing how ids are made orphans every stored run and every link; this test says when."""
    assert BASE.id == "9b0044b1ace1"


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


@given(st.integers(1, 50), st.integers(1, 50), st.floats(1e-9, 1e3), st.integers(0, 2**31))
def test_an_id_is_a_function_of_the_settings(K, L, tol, seed):
    parameters = {"n_components": K, "n_active": L, "tol": tol, "random_state": seed}
    config = RunConfig("a", {}, "aPPCA", parameters)
    again = RunConfig("a", {}, "aPPCA", dict(reversed(parameters.items())))
    assert config.id == again.id
    assert config.id != replace(config, parameters=parameters | {"n_components": K + 1}).id
    assert len(config.id) == 12
    assert set(config.id) <= set("0123456789abcdef")


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
        ({"model": "PCA"}, r"There is no model “PCA”; choose one of aPPCA, PPCA\."),
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
    left_out = {"callback", "whiten"}  # neither changes a run's numbers
    assert set(defaults(model)) == set(own) - left_out
    differing = {name for name, value in defaults(model).items() if own[name] != value}
    assert differing <= {"random_state", "n_components"}
    assert defaults(model)["random_state"] == 0
