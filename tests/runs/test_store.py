"""Tests of stored runs: settings, files of sessions and models, homes, reports of damage."""

import argparse
import inspect
import io
import json
import os
import stat
import sys
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from appca import AdaptivePPCA, load_model
from appca.analysis.choose import GridConfig, StabilityConfig
from appca.analysis.compare import MaskedConfig
from appca.analysis.selections import SavedSelection, SelectionStore
from appca.analysis.tables import projection_table
from appca.analysis.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.commands import writing
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing, suggest
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.jobs.tasks import QualityConfig
from appca.models import settings
from appca.runs import home as homes
from appca.runs import run as config_module
from appca.runs import store as store_module
from appca.runs.fit import fit_run, prepared, preview
from appca.runs.home import secret
from appca.runs.model_file import model_bytes, read_model
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.run import MODELS, FitResult, RunConfig, defaults, estimator_class, suited
from appca.runs.session import CONTENTS, Session, pack, unpack
from appca.runs.store import Labels, Run, RunStore, labels, put
from appca.storage import files
from appca.storage.identity import Recorded
from appca.ui.open import erase
from appca.words import InputError
from tests.data.file_makers import packed, stored
from tests.faults.writers import WRITERS
from tests.fitted_runs import differing, fitted_run, info_of

CONFIG = RunConfig("d" * 64, {}, "aPPCA", {"n_components": 4, "n_active": 2})


def seeded(seed: int) -> RunConfig:
    return replace(CONFIG, parameters={"random_state": seed})


def result_of(seed: int = 0) -> FitResult:
    rng = np.random.default_rng(seed)
    given = {"scores": rng.standard_normal((30, 4)).astype(np.float32)}
    given |= {"log_likelihoods": np.array([-np.inf, np.nan, -0.0, 5e-324])}
    given |= {"noise_variance": 0.1 + seed}
    given |= {"components": rng.standard_normal((4, 7)), "mean": rng.standard_normal(7)}
    return FitResult(fitted_run(rng.random((30, 4)) > 0.5, **given), info_of())


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path)


def test_a_run_comes_back_bit_for_bit_in_another_store(store, tmp_path):
    saved = store.save(CONFIG, result_of(), name="  my\n run ")
    found = RunStore(tmp_path).get(CONFIG.id)
    assert found.id == saved.id == CONFIG.id
    assert found.config == CONFIG
    assert found.info == result_of().info
    assert (found.name, found.custom_name, found.origin) == ("my run", "my run", "fit")
    assert differing(found.fitted, result_of().fitted) == []
    for values in found.fitted.to_arrays().values():
        assert values.ndim == 0 or not values.flags.writeable, "sessions share the arrays"
    assert names_in(store.folder / found.id) == {"config.json", "arrays.npz"}
    assert names_in(store.folder) == {found.id}


def test_runs_are_listed_newest_first_under_names_made_of_their_settings(store):
    first = store.save(CONFIG, result_of(), name="kept")
    for seed in (1, 2):
        store.save(seeded(seed), result_of(seed))
    store.save(replace(seeded(3), stopped_at=12), result_of(3))
    names = [
        *("aPPCA, K = 4, L = 2, seed 3, stopped at step 12", "aPPCA, K = 4, L = 2, seed 2"),
        *("aPPCA, K = 4, L = 2, seed 1", "kept"),
    ]
    assert [run.name for run in store.list()] == names
    assert [run.config.stopped_at for run in store.list()] == [12, None, None, None]
    again = store.save(CONFIG, result_of(9), origin="live")  # keeps its arrays, and is the newest
    assert again.fitted.mean.tobytes() == first.fitted.mean.tobytes()
    assert (again.name, again.origin, store.list()[0].id) == ("kept", "fit", CONFIG.id)
    assert store.rename(CONFIG.id, " ").name == "aPPCA, K = 4, L = 2"
    assert len(store.rename(CONFIG.id, "x" * 1000).name) == 120
    with pytest.raises(InputError, match="no fit “000000000000” to rename"):
        store.rename("0" * 12, "x")
    for name in ("../" + "a" * 9, "", None, "A" * 12, "a" * 13, "/etc/passwd00"):  # no path
        assert store.get(name) is None
        store.delete(name)
    assert len(store.list()) == 4


def test_a_name_given_while_old_runs_go_is_not_lost(store, monkeypatch):
    monkeypatch.setattr(store_module, "LIVE_RUNS_KEPT", 1)
    old, found = store.save(CONFIG, result_of(), origin="live"), store.list()
    with monkeypatch.context() as slow:
        slow.setattr(RunStore, "list", lambda _: [*found, *found])
        store.rename(old.id, "mine")
        store.save(seeded(1), result_of(1), origin="live")
    assert store.get(old.id).name == "mine"


def test_names_that_were_given_outlive_damaged_arrays(store):
    run = store.save(CONFIG, result_of(), name="hours of work")
    K = len(run.fitted.components)
    put(run, Labels(("left stroke", *[""] * (K - 1)), (1,) * K))
    (run.path / "arrays.npz").write_bytes(b"x" * (run.path / "arrays.npz").stat().st_size)
    store.drop_arrays(run.id)
    assert store.get(run.id) is None
    again = store.save(CONFIG, result_of())
    assert again.name == "hours of work"
    assert labels(again).names[0] == "left stroke"


def test_live_runs_beyond_the_newest_are_pruned_unless_named_or_asked_for(store, monkeypatch):
    monkeypatch.setattr(store_module, "LIVE_RUNS_KEPT", 3)
    named = store.save(seeded(0), result_of(), name="mine", origin="live")
    asked = store.save(seeded(1), result_of(), origin="fit")
    live = [store.save(seeded(seed), result_of(), origin="live") for seed in range(2, 7)]
    store.renew(live[2].id, origin="live")  # looked at again: the newest now
    store.save(seeded(7), result_of(), origin="live")
    kept = {run.id for run in store.list()}
    assert kept == {named.id, asked.id, live[2].id, live[4].id, seeded(7).id}
    assert store.renew(live[0].id) is None
    for seed in range(8, 12):  # named runs take no places of others
        store.save(seeded(seed), result_of(), name=f"mine {seed}", origin="live")
    assert kept < {run.id for run in store.list()}


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
        ({"preprocessing": {"whiten": True}}, "Preprocessing has the options .*; got whiten"),
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
    left_out, recorded = {"callback", "verbose", "whiten", "warm_start"}, defaults(model, "gibbs")
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


def stored_in(home: Path, dataset, **parameters):
    config = RunConfig(dataset.digest, {}, "aPPCA", SETTINGS | parameters)
    return RunStore(home).save(config, fit_run(dataset, config))


def test_old_runs_open_and_are_found_for_the_same_settings(planes, later, tmp_path):
    run, before = stored_in(tmp_path, planes), [(one.id, one.to_dict()) for one in others(planes)]
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
    old = stored_in(tmp_path, planes)
    later(default=0.5)
    store, today = RunStore(tmp_path), RunConfig(planes.digest, {}, "aPPCA", SETTINGS)
    assert today.parameters["sharpness"] == 0.5
    assert store.get(today.id) is None
    assert store.get(old.id).config.parameters["sharpness"] == 0.0
    run = store.save(today, fit_run(planes, today))
    assert RunConfig.from_dict(json.loads(json.dumps(today.to_dict()))) == today == run.config


def test_a_run_with_a_keyword_that_is_gone_opens_and_is_not_fitted_again(
    planes, later, tmp_path, monkeypatch
):
    later()
    new = stored_in(tmp_path, planes, sharpness=0.5)
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


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    part = load("digits").take(np.arange(80))
    labels_ = {**part.labels, "size <b>": np.arange(80) / 7}
    return Dataset("My digits", part.X, part.ids, labels_, part.image_shape, None, {"source": "x"})


@pytest.fixture(scope="module")
def home(dataset, tmp_path_factory) -> Path:
    """A home in which somebody has worked."""
    folder = tmp_path_factory.mktemp("sender")
    DatasetStore(folder).put(dataset)
    learned = {"row_scale": "learned", "n_active": "learned", "max_iter": 20}
    for i, parameters in enumerate(
        (
            {"n_components": 3, "n_active": 1, "init": "pca"},
            {"n_components": 5, "noise": "feature", "init": "pca"} | learned,
            {"n_components": 6, "inference": "gibbs", "burn_in": 5, "n_draws": 10} | learned,
        )
    ):
        config = RunConfig(dataset.digest, {"divide": 16.0}, "aPPCA", parameters)
        with warnings.catch_warnings(action="ignore"):  # of features that are constant
            result = fit_run(dataset, config)
        run = RunStore(folder).save(config, result, "my run" if i else None)
        ComponentNumbers(folder).rename(run, 1, "slant =1+1")
        ComponentNumbers(folder).flip(run, i)
    return folder


PLACES = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)  # on the map
LOOK = {"colour": "residual", "view": "umap", "n_neighbors": 9.0}


@pytest.fixture(scope="module")
def session(dataset, home) -> Session:
    runs = sorted(RunStore(home).list(), key=lambda run: run.config.k)
    few, odd = np.arange(80) < 5, np.arange(80) % 2 == 1
    saved = [SavedSelection("few", few), SavedSelection("odd", odd)]
    laid_out = [(layout_of(dataset, runs[0].id), Embedding(PLACES))]
    return Session(dataset, runs, saved, few, runs[1].id, LOOK, laid_out)


def layout_of(dataset, run: str) -> EmbeddingConfig:
    return EmbeddingConfig(dataset.digest, {"divide": 16.0}, 9, start="appca", run=run)


@pytest.fixture(scope="module")
def content(session, home) -> bytes:
    return pack(session, home)


def everything_of(run: Run) -> list:
    shown = ComponentNumbers(run.path.parents[1]).of_run(run)
    seen = numbered(run.fitted, shown).to_arrays()
    arrays = {name: (v.dtype, v.shape, v.tobytes()) for name, v in seen.items()}
    return [run.config.of_import(None), run.info, run.custom_name, shown, arrays]


def test_all_of_it_is_the_same_in_another_home(session, content, tmp_path):
    found = unpack("my.appca", io.BytesIO(content), tmp_path)
    got, given = DatasetStore(tmp_path).get(found.dataset), session.dataset
    assert got.digest == given.digest
    assert (got.name, got.image_shape, got.provenance) == ("My digits", (8, 8), {"source": "x"})
    assert got.X.dtype == given.X.dtype
    np.testing.assert_array_equal(got.X, given.X)
    np.testing.assert_array_equal(got.ids, given.ids)
    assert list(got.labels) == list(given.labels)
    for name, column in given.labels.items():
        np.testing.assert_array_equal(got.labels[name], column)
    assert found.opened == found.runs[1]
    for here, run in zip(found.runs, session.runs, strict=True):
        assert everything_of(RunStore(tmp_path).get(here)) == everything_of(run)
    kept = SelectionStore(tmp_path).list(found.dataset, 80)
    assert [saved.name for saved in kept] == ["few", "odd"] == list(found.selections)
    for saved, expected in zip(kept, session.selections, strict=True):
        np.testing.assert_array_equal(saved.mask, expected.mask)
    np.testing.assert_array_equal(found.selected, session.selected)
    assert found.look == LOOK
    laid_out = EmbeddingStore(tmp_path).get(layout_of(got, found.runs[0]).id)
    assert np.array_equal(laid_out.coordinates, PLACES), "under the fit as it is called here"


def test_files_of_a_run_have_the_order_and_the_signs_on_screen(session, home, dataset, tmp_path):
    numbers = ComponentNumbers(home)
    assert any(-1 in numbers.of_run(run).signs for run in session.runs)
    for run in session.runs:
        numbering = numbers.of_run(run)
        order, signs = list(numbering.order), np.array(numbering.signs)
        raw, shown = run.fitted, numbered(run.fitted, numbering)
        np.testing.assert_array_equal(shown.components, raw.components[order] * signs[:, None])
        for name, values in shown.posterior.items():
            if name == "components":
                drawn = raw.posterior[name][:, :, order]
                np.testing.assert_array_equal(values, drawn * signs[:, None])
        loaded = []
        for name, fitted in (("shown", shown), ("raw", raw)):
            (tmp_path / f"{name}.npz").write_bytes(model_bytes(run.config, fitted, run.info))
            loaded.append(load_model(tmp_path / f"{name}.npz"))
        scores, of_raw = (model.transform(dataset.X) for model in loaded)
        np.testing.assert_allclose(scores, of_raw[:, order] * signs, atol=1e-12)
        table = projection_table(dataset, shown)
        for j in range(len(order)):
            np.testing.assert_array_equal(table[f"component_{j + 1}"], shown.scores[:, j])


def test_what_is_there_already_stays(content, session, tmp_path):
    first = unpack("my.appca", io.BytesIO(content), tmp_path)
    run = RunStore(tmp_path).rename(first.runs[1], "mine")
    ComponentNumbers(tmp_path).rename(run, 1, "width")
    other = np.arange(80) == 70
    SelectionStore(tmp_path).save(first.dataset, "few", other)
    second = unpack("my.appca", io.BytesIO(content), tmp_path)
    assert second.runs == first.runs
    run = RunStore(tmp_path).get(first.runs[1])
    assert (run.custom_name, ComponentNumbers(tmp_path).of_run(run).names[1]) == ("mine", "width")
    assert second.selections == ("few (2)", "odd")
    kept = {saved.name: saved.mask for saved in SelectionStore(tmp_path).list(first.dataset, 80)}
    np.testing.assert_array_equal(kept["few"], other)
    np.testing.assert_array_equal(kept["few (2)"], session.selections[0].mask)


def test_without_data_the_data_must_be_here(session, dataset, tmp_path):
    light = pack(session, with_data=False)
    names = zipfile.ZipFile(io.BytesIO(light)).namelist()
    assert not any(name.startswith("data/") for name in names)
    with pytest.raises(InputError, match="“My digits” is not here; open it first from your own"):
        unpack("light.appca", io.BytesIO(light), tmp_path)
    assert list(tmp_path.iterdir()) == []
    DatasetStore(tmp_path).put(dataset)
    assert len(unpack("light.appca", io.BytesIO(light), tmp_path).runs) == len(session.runs)
    provenance = {"source": "mnist", "options": {"n": 80}}
    mnist = Dataset("MNIST", dataset.X, dataset.ids, provenance=provenance)
    with pytest.raises(InputError, match="open it first from MNIST with n = 80"):
        unpack("m.appca", io.BytesIO(pack(Session(mnist, []), with_data=False)), tmp_path)
    gaps = np.zeros(dataset.X.shape, bool)
    gaps[[3, 70], [5, 60]] = True
    holed = Dataset("holes", dataset.X.astype(float), dataset.ids, missing=gaps)
    found = unpack("h.appca", io.BytesIO(pack(Session(holed, []))), tmp_path)
    got = DatasetStore(tmp_path).get(found.dataset)
    np.testing.assert_array_equal(got.with_gaps(), holed.with_gaps())


MATRIX = "data/matrix.npy"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [  # what is wrong with its description is in tests/attacks/test_sessions
        (CONTENTS, None, "is not a session file"),
        (CONTENTS, b"[", "contains a damaged “session.json”"),
        (MATRIX, stored(np.save, np.zeros((80, 64), np.uint8)), "digest differs"),
        (MATRIX, stored(np.save, np.zeros((80, 64)))[:900], "contains a damaged"),
        (MATRIX, None, "lacks “data/matrix.npy”"),
        ("runs/1/pre_offset.npy", None, "is damaged"),
        ("selections/0.npy", stored(np.save, np.zeros(79, bool)), "is damaged"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_stored(
    content, tmp_path, name, given, sentence
):
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        members = {one: old.read(one) for one in old.namelist()} | {name: given}
    altered = packed({one: data for one, data in members.items() if data is not None})
    with pytest.raises(InputError, match=sentence):
        unpack("bad.appca", io.BytesIO(altered), tmp_path)
    assert list(tmp_path.iterdir()) == []


SHORT = {"n_chains": 1, "burn_in": 4, "n_draws": 4}
FILED = [
    ("aPPCA", {"n_components": 5, "n_active": 2, "init": "pca"}),
    ("aPPCA", {"n_components": 5, "n_active": 2, "inference": "gibbs", **SHORT}),
    ("PPCA", {"n_components": 3}),
    ("aFA", {"n_components": 5, "n_active": 2, "init": "pca"}),
    ("NPPCA", {"max_components": 4, **SHORT}),
    ("isFA", {"max_components": 4, **SHORT}),
    ("fsFA", {"max_components": 4, **SHORT}),
]
QUERIES = ("transform", "allocate", "inclusion_probabilities", "allocation_probability")
QUERIES += ("score_samples",)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits").take(np.arange(300))


def config_of(dataset: Dataset, model: str, **parameters: object) -> RunConfig:
    options = {"divide": 16.0, "scale": "global", "pca": 12}
    return RunConfig(dataset.digest, options, model, parameters)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(("model", "parameters"), FILED)
def test_a_loaded_model_gives_the_bits_it_gave_before(digits, tmp_path, model, parameters):
    config = config_of(digits, model, **parameters)
    fitted = Preprocessing.from_dict(config.preprocessing).fit(digits.X)
    before = estimator_class(model)(**config.parameters).fit(fitted.transform(digits.X))
    result, path = fit_run(digits, config), tmp_path / "model.npz"
    path.write_bytes(model_bytes(config, result.fitted, result.info))
    after = load_model(path)
    assert type(after.estimator_) is type(before)
    assert after.estimator_.get_params() == before.get_params()
    assert (after.config, after.estimator_.stop_reason_) == (config, before.stop_reason_)
    new = load("digits").X[400:460]
    after.save(tmp_path / "again.npz")
    again, rows = load_model(tmp_path / "again.npz"), prepared(config, fitted, new)
    for query in QUERIES:
        expected = getattr(before, query)(rows).tobytes()
        assert {getattr(one, query)(new).tobytes() for one in (after, again)} == {expected}, query
    assert after.sample(3).tobytes() == fitted.inverse_transform(before.sample(3)).tobytes()
    scores = after.describe(digits.X).scores.astype(np.float32)
    np.testing.assert_allclose(scores, result.fitted.scores, rtol=1e-5, atol=1e-6)
    likelihoods = after.score_samples(digits.X)
    np.testing.assert_allclose(likelihoods, result.fitted.log_likelihood_rows, rtol=1e-10)
    rebuilt = scores @ after.components_ + after.mean_
    np.testing.assert_allclose(after.inverse_transform(scores, "map"), rebuilt, atol=1e-3)


def test_a_loaded_model_is_a_scikit_learn_estimator(tmp_path):
    wine = load("wine")
    wine = replace(wine, missing=(np.arange(178) % 9 == 0)[:, None] & (np.arange(13) == 3))
    sizes = {"n_components": 3, "init": "pca"}
    config = RunConfig(wine.digest, suggest(wine).to_dict(), "aPPCA", sizes)
    result = fit_run(wine, config)
    file = tmp_path / "wine.npz"  # as the page Export gives it
    file.write_bytes(model_bytes(config, result.fitted, result.info, wine.feature_names))
    table, model = pandas.DataFrame(wine.X, columns=list(wine.feature_names)), load_model(file)
    scores = model.transform(table)
    framed = clone(model).set_output(transform="pandas").fit_transform(table)
    assert list(framed.columns) == [f"adaptiveppca{k}" for k in range(3)]
    chain = make_pipeline(clone(model), KNeighborsClassifier()).fit(table, wine.labels["cultivar"])
    assert chain.score(table, wine.labels["cultivar"]) > 0.8
    search = GridSearchCV(model, {"estimator__n_components": [2, 3]}, cv=2).fit(table)
    assert search.best_params_ == {"estimator__n_components": 3}
    with pytest.raises(NotFittedError):
        clone(model).transform(table)
    assert not hasattr(clone(model), "components_")
    alone = model.estimator_.predict(model.prepared(table))
    np.testing.assert_array_equal(model.predict(table), alone)
    # Names: the order is that of the fit, and without them a warning.
    assert list(model.feature_names_in_) == list(wine.feature_names)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.transform(wine.X), scores)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.score(table[table.columns[::-1]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.transform(table.rename(columns={"ash": "dust"}))
    # Gaps are filled in units of the data.
    gappy = pandas.DataFrame(wine.with_gaps(), columns=list(wine.feature_names))
    filled = model.impute(gappy)
    np.testing.assert_allclose(filled[wine.missing], result.fitted.imputed, rtol=1e-12)
    np.testing.assert_array_equal(filled[~wine.missing], wine.X[~wine.missing])
    np.testing.assert_array_equal(clone(model).fit(gappy).transform(gappy), model.transform(gappy))


def test_a_start_comes_along_and_a_changed_file_of_an_estimator_is_refused(tmp_path):
    X, start = np.random.default_rng(0).standard_normal((50, 5)), np.eye(5)[:3]
    model = AdaptivePPCA(3, 2, init=start, random_state=np.random.default_rng(1), callback=print)
    model.fit(X).save(tmp_path / "model.npz")
    after = load_model(tmp_path / "model.npz")
    assert (after.random_state, after.callback) == (None, None), "no number or word"
    np.testing.assert_array_equal(after.init, start)
    np.testing.assert_array_equal(after.fit(X).components_, model.components_)
    with zipfile.ZipFile(tmp_path / "model.npz") as old:
        members = {name: old.read(name) for name in old.namelist()}
    facts = json.loads(members["estimator.json"])
    for change, message in (
        ({"estimator": "Pickle"}, "of its estimator"),
        ({"parameters": {"n_components": "x"}}, "of its estimator"),
        ({"parameters": {"n_components": 3, "evil": 1}}, "of its estimator"),
        ({"format": 99}, "newer version"),
    ):
        altered_file = members | {"estimator.json": json.dumps(facts | change).encode()}
        (tmp_path / "other.npz").write_bytes(packed(altered_file))
        with pytest.raises(InputError, match=message):
            load_model(tmp_path / "other.npz")


def altered(content: bytes, **changes: np.ndarray | None) -> io.BytesIO:
    """Return an NPZ with other arrays in it; None takes one away."""
    with np.load(io.BytesIO(content)) as archive:
        arrays = {name: archive[name] for name in archive.files} | changes
    kept = {name: value for name, value in arrays.items() if value is not None}
    return io.BytesIO(stored(np.savez, **kept))


def test_a_file_that_is_no_model_is_refused_in_a_sentence_and_nothing_is_unpickled(digits):
    config = config_of(digits, "isFA", max_components=3, n_chains=1, burn_in=2, n_draws=4)
    result = fit_run(digits, config)
    content, draws = model_bytes(config, result.fitted, result.info), result.fitted.draws
    assert len(draws["components"]) == 4
    unfit = r"The arrays in “given.npz” do not match each other|“given.npz” lacks"
    for changes, sentence in (
        ({"run": None}, "“given.npz” is not a model file"),
        ({"mean": None}, "“given.npz” lacks the array “mean”"),
        ({"mean": np.zeros(3)}, unfit),
        ({"components": np.zeros(12)}, unfit),
        ({"mean": np.full(12, np.nan)}, unfit),
        ({"pre_scale": np.ones(2)}, unfit),
        ({"run": np.array("[1]")}, "no valid description of its model"),
        ({"run": np.array('{"config": {"model": "os"}}')}, "no valid description of its model"),
        ({"mean": np.array([print], dtype=object)}, r"contains a damaged “mean\.npy”"),
        ({"draws_components": draws["components"][:, :, :-1]}, unfit),
        ({"draws_components": draws["components"][:, :1]}, unfit),
        ({"draws_components": draws["components"][0]}, unfit),
        ({"draws_mean": draws["mean"][:2]}, unfit),
        ({"draws_noise_variance": -draws["noise_variance"]}, unfit),
        ({"draws_weights": draws["weights"] * np.nan}, unfit),
        ({"draws_latent_variance": None}, unfit),
    ):
        with pytest.raises(InputError, match=sentence):
            read_model("given.npz", altered(content, **changes))
    none = {f"draws_{name}": None for name in draws}
    assert not read_model("f", altered(content, **none)).model.draws  # a file from before


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home that is not there yet, in a folder open to all."""
    if os.name != "posix":
        pytest.skip("needs rights of a POSIX system")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("APPCA_HOME", str(tmp_path / "own" / "home"))
    homes.private.cache_clear()
    return tmp_path / "own" / "home"


def rights_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o027], ids=oct)
def test_nobody_else_enters_a_home(own, umask):
    before = os.umask(umask)
    try:
        assert homes.home() == own
        WRITERS["run"].write(own, 1)
        own.chmod(0o755)  # a home that was open is closed
        homes.private.cache_clear()
        homes.home()
    finally:
        os.umask(before)
    assert rights_of(own) == 0o700
    assert WRITERS["run"].read(own) == 1


def test_where_rights_cannot_be_set_the_home_is_used_all_the_same(own, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    own.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(Path, "chmod", refuse)
    assert homes.home() == own
    WRITERS["run"].write(own, 1)
    assert WRITERS["run"].read(own) == 1
    assert rights_of(own) == 0o755


def test_a_file_that_a_person_asked_for_has_the_usual_rights(tmp_path):
    before = os.umask(0o022)
    try:
        writing.write(argparse.Namespace(out=tmp_path / "out.npz"), lambda: None, dict)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.npz").stat().st_mode) == 0o644


def test_a_damaged_secret_is_replaced_and_an_unwritable_home_is_an_os_error(tmp_path):
    with ThreadPoolExecutor(8) as pool:  # all get the same
        (first,) = set(pool.map(lambda _: secret(tmp_path), range(16)))
    assert len(first) == 32
    (tmp_path / "secret").write_bytes(b"")
    second = secret(tmp_path)
    assert second != first
    assert second == secret(tmp_path)
    (tmp_path / "home").write_text("a file")
    with pytest.raises(OSError, match="home"):
        secret(tmp_path / "home")
    assert (tmp_path / "home").read_text() == "a file"


def state(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """Return a home of somebody else, which this account could write, and its only fit."""
    folder, dataset = tmp_path / "lab", load("wine")
    digest = DatasetStore(folder).put(dataset)
    config = RunConfig(digest, {}, "aPPCA", defaults("aPPCA") | {"n_components": 3, "n_active": 1})
    RunStore(folder).save(config, fit_run(dataset, config), "of the lab")
    monkeypatch.setenv(files.SHARED, f"{tmp_path / 'absent'}:{folder}")
    before = state(folder)
    yield folder, config, dataset
    assert state(folder) == before


def test_data_and_fits_are_there_and_nothing_is_copied_for_that(lab):
    _, config, dataset = lab
    data, runs = DatasetStore(homes.home()), RunStore(homes.home())
    assert (data.get(config.dataset).X == dataset.X).all()
    assert data.put(dataset) == config.dataset
    run = runs.get(config.id)
    assert (run.name, run.is_shared) == ("of the lab", True)
    assert runs.renew(config.id, "another name").name == "of the lab"
    assert runs.save(config, fit_run(dataset, config)).is_shared
    ComponentNumbers(homes.home()).of_run(run)
    data.note_origin(config.dataset, Path(__file__))
    assert runs.list() == []
    assert data.list() == []
    assert not (homes.home() / "runs").exists() or not list((homes.home() / "runs").iterdir())


def test_what_is_changed_is_copied_first(lab):
    _, config, _ = lab
    runs, data = RunStore(homes.home()), DatasetStore(homes.home())
    data.delete(config.dataset)
    assert data.get(config.dataset).n_rows == 178, "a shared data set cannot be deleted"
    scores = runs.get(config.id).fitted.scores.copy()
    runs.rename(config.id, "mine")
    assert (runs.get(config.id).name, runs.get(config.id).is_shared) == ("mine", False)
    assert (runs.get(config.id).fitted.scores == scores).all()
    runs.delete(config.id)
    assert runs.get(config.id).name == "of the lab"
    numbering = ComponentNumbers(homes.home()).rename(runs.get(config.id), 0, "acid")
    assert numbering.names[0] == "acid"
    assert not runs.get(config.id).is_shared
    erase(homes.home())
    assert runs.get(config.id).is_shared
