"""The grid over K and L: folds, order, honest measuring, going on after an interruption."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.analysis import choose
from appca.analysis.choose import GridConfig, coarse_to_fine, fill, folds, sample_of, steps, stored
from appca.analysis.journal import JournalStore
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.models.settings import MODELS
from appca.words import InputError
from tests.models.synthetic import planted

FAST = {"init": "pca", "max_iter": 40, "random_state": 3}


def dataset_of(X: np.ndarray) -> Dataset:
    return Dataset("planted", X, np.arange(len(X)).astype(str), {}, None, None, {})


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    X = planted(60, 6, 4, 2, seed=1, noise=0.3, offset=5.0).X
    return dataset_of(X * np.array([1, 2, 3, 40, 50, 600.0]))


def config_of(dataset: Dataset, **changes) -> GridConfig:
    given = {"preprocessing": {"centre": True, "scale": "feature"}, "model": "aPPCA"}
    given |= {"parameters": FAST, "components": (2, 3, 5), "actives": (1, 2)}
    return GridConfig(dataset=dataset.digest, **(given | changes))


@pytest.fixture
def store(tmp_path) -> JournalStore:
    return JournalStore(tmp_path, "grids")


def nothing(*_) -> None:
    """A report nobody reads."""


def prepared(dataset: Dataset, fold: choose.RowFold) -> tuple[np.ndarray, np.ndarray]:
    """Training and held-out rows, scaled by what the training rows say."""
    fitted = Preprocessing(centre=True, scale="feature").fit(dataset.X[fold.train])
    scaler = StandardScaler().fit(dataset.X[fold.train])
    found = fitted.transform(dataset.X[fold.train]), fitted.transform(dataset.X[fold.test])
    for ours, rows in zip(found, fold, strict=True):
        assert np.allclose(ours, scaler.transform(dataset.X[rows]), rtol=1e-10, atol=1e-10)
    return found


def numbers(measures: choose.Measures) -> dict:
    """What must be the same twice: all but the time."""
    return {step: one._replace(seconds=0.0) for step, one in measures.items()}


@given(st.integers(4, 200), st.integers(2, 9), st.integers(4, 60), st.integers(0, 5))
def test_every_row_that_is_used_is_held_back_exactly_once(n_rows, n_folds, max_rows, seed):
    used = min(n_rows, max_rows)
    if used < n_folds:
        with pytest.raises(InputError, match="folds need at least"):
            folds(n_rows, n_folds, max_rows, seed)
        return
    split = folds(n_rows, n_folds, max_rows, seed)
    held = np.concatenate([fold.test for fold in split])
    assert len(held) == len(set(held.tolist())) == used
    assert set(held.tolist()) == set(sample_of(n_rows, max_rows, seed).tolist())
    for fold in split:
        assert sorted([*fold.train, *fold.test]) == sorted(held)
    sizes = [len(fold.test) for fold in split]
    assert max(sizes) - min(sizes) <= 1


def test_folds_are_shuffled_and_depend_on_the_seed_alone():
    first, again, other = (folds(90, 3, 100, seed)[0].test for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(np.diff(first))) > 1  # neither a block nor every third row


@given(st.lists(st.integers(1, 99), unique=True, min_size=1, max_size=30).map(sorted))
def test_the_coarse_order_has_every_value_once_and_halves_the_widest_gap(values):
    order = coarse_to_fine(values)
    assert sorted(order) == values
    assert order[:2] == [values[0], values[-1]][: len(values)]
    places = [values.index(value) for value in order]
    for n in range(2, len(order)):
        there = sorted(places[:n])
        gaps = np.diff(there)
        below = max(place for place in there if place < places[n])
        above = min(place for place in there if place > places[n])
        assert above - below == gaps.max()
        assert abs((above - places[n]) - (places[n] - below)) <= 1


def test_the_order_has_ppca_first_then_each_cell_once_and_both_ends_of_k_early(dataset):
    config = config_of(dataset, components=range(2, 7), actives=(1, 3))
    order = config.order()
    expected = {(k, active) for k, active in product(range(2, 7), (1, 3)) if active <= k}
    ppca = [(q, q) for q in range(1, 7)]
    assert order[:6] == ppca
    assert sorted(order) == sorted(expected | set(ppca))
    assert order[6:9] == [(2, 1), (6, 1), (6, 3)]


def test_a_cell_is_what_an_estimator_fitted_by_hand_says_of_the_rows_held_back(dataset, store):
    config = config_of(dataset, n_folds=4, random_state=9)
    fill(dataset, config, store, nothing)
    measures = stored(store, config)
    assert set(measures) == set(steps(config))
    split = folds(dataset.n_rows, 4, config.max_rows, 9)
    for (k, active, fold), found in measures.items():
        train, test = prepared(dataset, split[fold])
        by_hand = AdaptivePPCA(k, active, **FAST).fit(train)
        assert found.log_likelihood == pytest.approx(by_hand.score(test), rel=1e-12, abs=1e-12)
        left = test - by_hand.inverse_transform(by_hand.transform(test))
        assert found.error == pytest.approx((left**2).mean(), rel=1e-11)
        assert found.n_iter == by_hand.n_iter_


def test_the_model_with_factors_is_measured_alike_where_its_sums_are_exact(dataset, store):
    parameters = {"random_state": 0, "max_iter": 15}
    config = config_of(
        dataset, model="aFA", parameters=parameters, components=(3,), actives=(2,), n_folds=2
    )
    fill(dataset, config, store, nothing)
    fold = folds(dataset.n_rows, 2, config.max_rows, 0)[1]
    train, test = prepared(dataset, fold)
    score = AdaptiveFactorAnalysis(3, 2, **parameters).fit(train).score(test)
    assert stored(store, config)[3, 2, 1].log_likelihood == pytest.approx(score, abs=1e-12)


def test_cells_of_the_model_with_factors_that_would_be_estimated_are_left_out(dataset):
    config = config_of(dataset, model="aFA", components=(10, 17), actives=(2, 8))
    assert math.comb(17, 8) > MODELS["aFA"].can.exact_supports > math.comb(10, 8)
    assert config.cells == ((10, 2), (10, 8), (17, 2))
    orthogonal = config_of(dataset, components=(10, 17), actives=(2, 8))
    assert (17, 8) in orthogonal.cells


def test_an_interrupted_grid_goes_on_where_it_was_and_ends_the_same(dataset, tmp_path):
    config = config_of(dataset)
    whole, broken = JournalStore(tmp_path, "whole"), JournalStore(tmp_path, "broken")
    fill(dataset, config, whole, nothing)
    asked = []

    def stops_at_the_tenth(cell, fold):
        asked.append((*cell, fold))
        if len(asked) == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(dataset, config, broken, stops_at_the_tenth)
    assert set(stored(broken, config)) == set(steps(config)[:9])
    asked.clear()
    fill(dataset, config, broken, lambda cell, fold: asked.append((*cell, fold)))
    assert asked == steps(config)[9:]
    assert numbers(stored(broken, config)) == numbers(stored(whole, config))
    asked.clear()
    fill(dataset, config, broken, lambda cell, fold: asked.append((*cell, fold)))
    assert asked == []


def test_a_fit_that_is_interrupted_in_a_pass_leaves_no_number(dataset, store):
    config = config_of(dataset)

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill(dataset, config, store, nothing, stop)
    assert all(k == active for k, active, _ in stored(store, config))  # PPCA makes no passes


def test_damaged_numbers_are_measured_again(dataset, store):
    config = config_of(dataset)
    fill(dataset, config, store, nothing)
    before = numbers(stored(store, config))
    file = store.folder / config.id / "records.txt"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"[", b"[[")  # the first line says that it was begun
    lines[6] = b"\x00\xff" + lines[6]
    file.write_bytes(b"".join(lines)[:-7])
    assert len(stored(store, config)) == len(before) - 3
    asked = []
    fill(dataset, config, store, lambda cell, fold: asked.append((*cell, fold)))
    assert asked == [steps(config)[place] for place in (3, 5, len(before) - 1)]
    assert numbers(stored(store, config)) == before


def test_a_cell_that_a_fold_cannot_carry_has_no_number_and_stops_nothing(dataset, store):
    config = config_of(dataset, preprocessing={"pca": 3})
    fill(dataset, config, store, nothing)
    found = stored(store, config)
    assert set(found) == set(steps(config))
    assert math.isnan(found[5, 2, 0].log_likelihood)
    assert "above 3" in found[5, 2, 0].stop_reason
    assert math.isfinite(found[3, 2, 0].log_likelihood)


def test_of_many_rows_a_sample_of_the_asked_size_is_used():
    rows = sample_of(10_000, 500, 1)
    assert len(set(rows.tolist())) == 500
    assert (np.diff(rows) > 0).all()
    assert not np.array_equal(rows, sample_of(10_000, 500, 2))
    assert np.array_equal(sample_of(30, 500, 1), np.arange(30))


def test_the_settings_name_the_grid_and_come_back(dataset):
    config = config_of(dataset, actives=[2, 1, 1])
    assert config.actives == (1, 2)
    assert GridConfig.from_dict(config.to_dict()) == config
    assert GridConfig.from_dict(config.to_dict()).id == config.id
    sized = config_of(dataset, parameters=FAST | {"n_components": 4, "n_active": 3})
    assert sized.id == config.id  # the K and L of the page are not settings of the grid
    changes = [{"n_folds": 5}, {"random_state": 1}, {"max_rows": 50}, {"components": (2, 3)}]
    changes += [{"parameters": {}}, {"preprocessing": {}}, {"model": "aFA"}]
    ids = {config_of(dataset, **change).id for change in changes}
    assert len(ids | {config.id}) == len(changes) + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "PPCA"}, "model with K and L"),
        ({"parameters": {"inference": "gibbs"}}, "EM or hard"),
        ({"components": ()}, "at least one number"),
        ({"components": (1,), "actives": (2,)}, "1 to 600 cells"),
        ({"components": range(1, 60), "actives": range(1, 60)}, "choose other ranges"),
        ({"actives": (0,)}, "whole numbers from 1"),
        ({"actives": (1.5,)}, "whole numbers"),
        ({"n_folds": 1}, "whole numbers from 2"),
        ({"preprocessing": {"scale": "odd"}}, "scale must be"),
    ],
)
def test_settings_without_meaning_are_refused_in_a_sentence(dataset, change, words):
    with pytest.raises(InputError, match=words):
        config_of(dataset, **change)
