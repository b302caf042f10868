"""Settings name a run: recorded with their defaults, and opened by later versions."""

import inspect
import io
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from appca import AdaptivePPCA
from appca.analysis.choose import GridConfig, StabilityConfig
from appca.analysis.compare import MaskedConfig
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import QualityConfig
from appca.models import settings
from appca.runs import run as config_module
from appca.runs.fit import fit_run, preview
from appca.runs.model_file import model_bytes
from appca.runs.run import MODELS, RunConfig, defaults, estimator_class, suited
from appca.runs.session import Session, pack, unpack
from appca.runs.store import RunStore
from appca.storage.identity import Recorded
from appca.words import InputError
from tests.fitted_runs import differing

BASE = RunConfig("d" * 64, {"divide": 16.0}, "aPPCA", {"n_components": 5, "random_state": 3})


def test_the_same_settings_are_the_same_run_however_they_are_written():
    spelled_out = RunConfig(
        BASE.dataset,
        {"pca": None, "scale": "none", "centre": False, "divide": 16},
        "aPPCA",
        dict(reversed((defaults("aPPCA") | {"n_components": 5, "random_state": 3}).items())),
    )
    numpy = replace(BASE, parameters={"n_components": np.int64(5), "random_state": np.int32(3)})
    assert BASE.id == "d02a800c730e", "another way of making ids orphans every stored run and link"
    assert spelled_out.id == numpy.id == BASE.id
    assert len({spelled_out, numpy, BASE, RunConfig.from_dict(BASE.to_dict())}) == 1


def test_everything_that_matters_changes_the_id():
    more = BASE.parameters
    changes = [
        *({"dataset": "e" * 64}, {"stopped_at": 7}, {"model": "PPCA", "parameters": {}}),
        *({"preprocessing": {"divide": 16.0} | other} for other in ({"pca": 10}, {"pca": 0.995})),
        {"preprocessing": {"divide": 255.0}},
        {"parameters": more | {"random_state": 4}},
        {"parameters": more | {"tol": 1e-5}},
        {"parameters": more | {"latent_variance": 1.0}},
    ]
    others = [replace(BASE, **change) for change in changes]
    assert len({one.id for one in [BASE, *others]}) == len({BASE, *others}) == 1 + len(changes)


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


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("model", MODELS)
def test_the_values_a_setting_can_have_are_those_the_estimator_takes(model):
    X = np.random.default_rng(0).standard_normal((20, 4))
    small = {"n_components": 2, "n_active": 1, "max_components": 2, "burn_in": 1, "n_draws": 2}
    for name, values in MODELS[model].choices.items():
        for value in values:
            inference = "gibbs" if name in MODELS[model].sampling else "em"
            few = small | {"inference": inference, "max_iter": 3, "n_chains": 1}
            wanted = suited(model, few | {name: value})
            assert wanted[name] == value
            estimator_class(model)(**wanted).fit(X)
        refused = estimator_class(model)(**suited(model, small) | {name: "no such value"})
        with pytest.raises(ValueError, match=name):
            refused.fit(X)


def test_settings_mean_what_the_model_can_do_with_them():
    idle = RunConfig("a", {}, "aPPCA", {"n_draws": 7, "z_update": "swap"})
    assert idle.id == RunConfig("a", {}, "aPPCA", {}).id, "nothing is sampled"
    gibbs = RunConfig("a", {}, "aPPCA", {"inference": "gibbs", "n_draws": 7})
    assert (gibbs.parameters["n_draws"], gibbs.parameters["n_chains"]) == (7, 2)
    assert gibbs.id != RunConfig("a", {}, "aPPCA", {"inference": "gibbs"}).id
    sampled = [one.is_sampled for one in (idle, gibbs, RunConfig("a", {}, "isFA", {}))]
    assert sampled == [False, True, True]
    old = RunConfig("a", {}, "aPPCA", {"n_components": 7, "init": "quartimax", "n_init": 3})
    taken = suited("aFA", old.parameters)
    assert (taken["n_components"], taken["init"], taken["n_init"]) == (7, "auto", 3)
    assert "latent_variance" not in taken
    for given, kept in ((1.0, 1.0), ("component", "shared")):
        assert suited("NPPCA", {"latent_variance": given})["latent_variance"] == kept
    assert suited("aFA", {"inference": "gibbs", "n_draws": 9})["n_draws"] == 9
    assert "n_draws" not in suited("aFA", {"inference": "hard", "n_draws": 9})


SETTINGS = {"n_components": 2, "n_active": 1, "max_iter": 30}


class Sharper(AdaptivePPCA):
    """Adaptive PPCA of a later version, with a keyword more."""

    def __init__(self, **given):
        self.sharpness = given.pop("sharpness", 0.0)
        super().__init__(**given)

    own = inspect.signature(AdaptivePPCA.__init__)
    new = inspect.Parameter("sharpness", inspect.Parameter.KEYWORD_ONLY, default=0.0)
    __init__.__signature__ = own.replace(parameters=[*own.parameters.values(), new])

    def fit(self, X, y=None):
        super().fit(X, y)
        self.components_ = self.components_ * (1.0 + self.sharpness)
        return self


@pytest.fixture
def planes(tmp_path):
    store = DatasetStore(tmp_path)
    return store.get(store.put(load("planes").take(np.arange(0, 900, 10))))


@pytest.fixture
def later(monkeypatch):
    """Return a step into the version in which aPPCA has the keyword "sharpness"."""

    def step(default: float = 0.0, named: bool = True) -> None:
        module = ModuleType("appca_of_later")
        module.Sharper = Sharper
        monkeypatch.setitem(sys.modules, "appca_of_later", module)
        spec = MODELS["aPPCA"]._replace(
            estimator="appca_of_later:Sharper",
            parameters=MODELS["aPPCA"].parameters | {"sharpness": default},
        )
        monkeypatch.setitem(config_module.MODELS, "aPPCA", spec)
        if named:
            monkeypatch.setitem(settings.BEFORE, "sharpness", 0.0)

    return step


def stored(home: Path, dataset, **parameters):
    config = RunConfig(dataset.digest, {}, "aPPCA", SETTINGS | parameters)
    return RunStore(home).save(config, fit_run(dataset, config))


def test_old_runs_open_and_are_found_for_the_same_settings(planes, later, tmp_path):
    run, before = stored(tmp_path, planes), [(one.id, one.to_dict()) for one in others(planes)]
    fitted = run.fitted
    later()
    store = RunStore(tmp_path)
    assert store.damaged() == {}
    found = store.get(run.id)
    assert found.config.parameters["sharpness"] == 0.0
    today = RunConfig(planes.digest, {}, "aPPCA", run.config.parameters)
    spelled_out = replace(today, parameters=today.parameters | {"sharpness": 0})
    assert today.id == spelled_out.id == found.config.id == run.id
    assert found.config == today
    assert differing(found.fitted, fitted) == []
    again = fit_run(planes, found.config)
    np.testing.assert_array_equal(again.fitted.components, fitted.components)
    for (name, known), config in zip(before, others(planes), strict=True):
        assert (config.id, type(config).from_dict(known)) == (name, config)
    changed = MaskedConfig(planes.digest, {}, "aPPCA", SETTINGS | {"sharpness": 0.5})
    assert changed.id != MaskedConfig(planes.digest, {}, "aPPCA", SETTINGS).id


def test_a_default_that_changes_again_takes_no_run_for_another(planes, later, tmp_path):
    old = stored(tmp_path, planes)
    later(default=0.5)
    store = RunStore(tmp_path)
    today = RunConfig(planes.digest, {}, "aPPCA", SETTINGS)
    assert today.parameters["sharpness"] == 0.5
    assert store.get(today.id) is None
    assert store.get(old.id).config.parameters["sharpness"] == 0.0
    run = store.save(today, fit_run(planes, today))
    assert RunConfig.from_dict(json.loads(json.dumps(today.to_dict()))) == today == run.config


def test_a_run_with_a_keyword_that_is_gone_opens_and_is_not_fitted_again(
    planes, later, tmp_path, monkeypatch
):
    later()
    new = stored(tmp_path, planes, sharpness=0.5)
    monkeypatch.undo()
    found = RunStore(tmp_path).get(new.id)
    assert found.config.id == new.id
    assert found.config.unknown == ["sharpness"]
    assert "sharpness" not in found.config.parameters
    for fit in (fit_run, preview):
        with pytest.raises(InputError, match=r"made with sharpness, which .* choose other"):
            fit(planes, found.config)
    with pytest.raises(InputError, match="got sharpness"):
        RunConfig.from_dict(found.config.to_dict())
    other = replace(found.config, stopped_at=3)
    assert other.unknown == []
    assert other.id != new.id
    packed = pack(Session(planes, [found]))
    (imported,) = unpack("s.appca", io.BytesIO(packed), tmp_path / "b").runs
    assert RunStore(tmp_path / "b").get(imported).config.unknown == ["sharpness"]
    assert unpack("s.appca", io.BytesIO(packed), tmp_path).runs == (new.id,)
    assert model_bytes(found.config, found.fitted, found.info)


def others(dataset) -> list[Recorded]:
    """Return settings of every other kind that name a model's keywords."""
    run = RunConfig(dataset.digest, {}, "aPPCA", SETTINGS)
    of = dataset.digest, {}, "aPPCA", run.parameters
    grid = GridConfig(*of, components=(2, 3), actives=(1,))
    return [grid, StabilityConfig(*of), MaskedConfig(*of), QualityConfig(run.to_dict(), 2, 1)]


def test_a_field_that_came_later_is_recorded_where_it_changes_something():
    @dataclass(frozen=True, eq=False)
    class Before(Recorded):
        size: int

    @dataclass(frozen=True, eq=False)
    class After(Recorded):
        later: ClassVar = {"shape": "round"}
        size: int
        shape: str = "square"

    old, neutral, new = Before(3), After(3, "round"), After(3)
    assert old.id == neutral.id != new.id
    assert After.from_dict(old.to_dict()) == neutral
    assert After.from_dict(new.to_dict()) == new
    assert neutral != old, "settings of another kind"
