"""Grids over K and L and fits again: folds, honest measures, advice, stability."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.analysis import choose
from appca.analysis.campaign import sample_of
from appca.analysis.choose import (
    GridConfig,
    GridTable,
    StabilityConfig,
    advise,
    elbow,
    folds,
    gain,
    near,
    table,
)
from appca.data.dataset import Dataset
from appca.models.settings import MODELS
from appca.words import InputError
from tests.models.synthetic import planted

FAST = {"init": "pca", "max_iter": 40, "random_state": 3}
TRUTH = (4, 2)  # K and L


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


def measured(dataset: Dataset, home, **changes):
    config = config_of(dataset, **changes)
    config.complete(dataset, home)
    return config, config.records(home)


@given(st.integers(4, 200), st.integers(2, 9), st.integers(4, 90))
def test_every_row_that_is_used_is_held_back_exactly_once(n_rows, n_folds, max_rows):
    used = min(n_rows, max_rows)
    if used < n_folds:
        with pytest.raises(InputError, match="folds need at least"):
            folds(n_rows, n_folds, max_rows)
        return
    split = folds(n_rows, n_folds, max_rows)
    held = np.concatenate([test for _, test in split])
    assert len(held) == len(set(held.tolist())) == used
    rows = sample_of(n_rows, max_rows, 0)
    assert sorted(held.tolist()) == rows.tolist() == sorted({*rows.tolist()} & {*range(n_rows)})
    assert all(sorted([*train, *test]) == sorted(held) for train, test in split)
    sizes = [len(test) for _, test in split]
    assert max(sizes) - min(sizes) <= 1
    if len(held) > 60:  # shuffled: neither a block nor every third row
        assert len(np.unique(np.diff(split[0][1]))) > 1


def test_ppca_is_measured_first_then_each_cell_once(dataset):
    steps = config_of(dataset, components=range(2, 7), actives=(1, 3)).steps()
    expected = [(k, active) for k, active in product(range(2, 7), (1, 3)) if active < k]
    assert [step[:2] for step in steps[::3]] == [*((q, q) for q in range(1, 7)), *expected]
    assert [step[2] for step in steps] == [0, 1, 2] * (len(steps) // 3)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (AdaptivePPCA, {"n_folds": 4}),
        (AdaptiveFactorAnalysis, {"components": (3,), "actives": (2,), "n_folds": 2}),
    ],
)
def test_a_cell_is_what_an_estimator_fitted_by_hand_says_of_the_rows_held_back(
    dataset, tmp_path, kind, changes
):
    if kind is AdaptiveFactorAnalysis:
        changes = changes | {"model": "aFA", "parameters": {"random_state": 0, "max_iter": 15}}
    config, measures = measured(dataset, tmp_path, **changes)
    assert set(measures) == set(config.steps())
    split = folds(dataset.n_rows, config.n_folds, config.max_rows)
    for (k, active, fold), (log_likelihood, error, _) in measures.items():
        scaler = StandardScaler().fit(dataset.X[split[fold][0]])
        train, test = (scaler.transform(dataset.X[rows]) for rows in split[fold])
        by_hand = kind(k, active, **config.parameters).fit(train)
        assert log_likelihood == pytest.approx(by_hand.score(test), rel=1e-7)
        left = test - by_hand.inverse_transform(by_hand.transform(test))
        assert error == pytest.approx((left**2).mean(), rel=1e-6)


def test_cells_are_sorted_and_those_whose_likelihood_is_an_estimate_are_left_out(dataset):
    config = config_of(dataset, model="aFA", components=(17, 10), actives=[8, 2, 2])
    assert math.comb(17, 8) > MODELS["aFA"].can.exact_supports > math.comb(10, 8)
    assert config.cells == ((10, 2), (10, 8), (17, 2))
    assert (17, 8) in config_of(dataset, components=(10, 17), actives=(2, 8)).cells
    sized = config_of(dataset, parameters=FAST | {"n_components": 4, "n_active": 3})
    assert sized.id == config_of(dataset).id, "the sizes of the page are no settings of the grid"


def test_a_cell_that_a_fold_cannot_carry_has_no_number_and_stops_nothing(dataset, tmp_path):
    config, measures = measured(dataset, tmp_path, preprocessing={"pca": 3})
    assert set(measures) == set(config.steps())
    assert measures[5, 2, 0][:2] == [None, None]
    assert math.isfinite(measures[3, 2, 0][0])


def made_up(log_likelihood, components, actives, baseline=None) -> GridTable:
    values = np.asarray(log_likelihood, dtype=float)
    if values.ndim == 2:
        values = np.repeat(values[..., None], 3, axis=2)
    return GridTable(components, actives, values, values * 0 + 1.0, baseline or {})


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("truth", "noise", "actives"),
    [
        (TRUTH, 0.1, (1, 2, 3)),
        pytest.param(TRUTH, 0.3, (1, 2, 3), marks=pytest.mark.slow),
        (TRUTH, 0.5, (1, 2, 3)),
        ((3, 3), 0.2, (1, 2, 3, 4)),  # rows that use all components: PPCA
    ],
)
def test_the_planted_k_and_l_are_found(tmp_path, seed, truth, noise, actives):
    data = dataset_of(planted(450, 8, *truth, seed=seed, noise=noise).X)
    sizes = {"components": (2, 3, 4, 5)[: truth[0] + 1], "actives": actives}
    plain = {"preprocessing": {}, "parameters": {"random_state": 0}}
    config, measures = measured(data, tmp_path, **sizes, **plain)
    assert advise(table(config, measures), 1).cell == truth


def test_the_baseline_is_probabilistic_pca(tmp_path):
    X = planted(80, 6, 4, 2, seed=3, noise=0.3).X
    parameters = {"latent_variance": "component", "random_state": 0, "max_iter": 5}
    plain = {"preprocessing": {}, "parameters": parameters}
    config, measures = measured(dataset_of(X), tmp_path, components=(3,), actives=(1,), **plain)
    baseline = table(config, measures).baseline
    assert set(baseline) == {1, 3}
    for q, values in baseline.items():
        for (train, test), value in zip(folds(80, 3, config.max_rows), values, strict=True):
            pca = PCA(q).fit(X[train])
            n = len(train)  # scikit-learn divides by N - 1, maximum likelihood by N
            pca.explained_variance_ *= (n - 1) / n
            pca.noise_variance_ *= (n - 1) / n
            assert value == pytest.approx(pca.score(X[test]), abs=1e-9)


def test_gain_and_share_of_the_gap_are_what_they_say():
    baseline = {1: np.array([1.0, 2.0, 3.0]), 3: np.array([5.0, 7.0, 9.0])}
    cell = np.array([4.0, 4.5, 12.0])
    grid = made_up(cell[None, None], (3,), (1,), baseline)
    more = cell.mean() - 2.0
    assert gain(grid, (3, 1)) == pytest.approx((more, more / (7.0 - 2.0)))
    none = made_up(np.full((2, 1, 3), 4.2), (2, 3), (2,), {2: np.full(3, 4.0), 3: np.full(3, 3.5)})
    for K in (2, 3):  # K = L, and PPCA with 3 worse than with 2
        assert gain(none, (K, 2)) == (pytest.approx(0.2), pytest.approx(np.nan, nan_ok=True))


def test_cells_are_compared_fold_by_fold():
    easy = np.array([0.0, 10.0, -20.0])  # what all cells share
    worse, wobbling = np.array([1.0, 1.01, 0.99]), np.array([0.9, -0.4, 0.2])
    values = np.stack([easy, easy - worse, easy - wobbling])
    assert near(values).tolist() == [True, False, True]
    behind, error = choose.over_folds(easy - values[2])
    assert behind == pytest.approx(wobbling.mean())
    assert error == pytest.approx(np.std(wobbling, ddof=1) / math.sqrt(3))


def test_cells_without_all_folds_take_no_part():
    config = GridConfig("d" * 64, {}, "aPPCA", {}, (2, 3), (1, 2), n_folds=2)
    one, better = [-5.0, 0.1, 0.1], [-1.0, 0.1, 0.1]
    grid = table(config, {(2, 1, 0): one, (2, 1, 1): one, (3, 1, 0): better})
    assert np.isfinite(grid.log_likelihood[0, 0]).all()
    assert np.isnan(grid.log_likelihood).sum() == 6
    assert advise(grid, 2).cell == (2, 1)
    assert advise(table(config, {}), 2) is None
    assert not near(table(config, {}).log_likelihood).any()


SIZES = np.array([2, 3, 4, 6, 8, 10])


@pytest.mark.parametrize(
    ("sizes", "values", "place"),
    [
        (SIZES, np.array([0.0, 4.0, 8.0, 9.0, 10.0, 11.0]), 2),
        (SIZES, np.minimum(SIZES, 6.0), 3),
        (SIZES, SIZES * 3.0 - 1e6, 5),  # straight: none before the end
        (SIZES, SIZES**2.0, 5),  # gains grow
        (SIZES[:2], np.array([0.0, 1.0]), 1),
        (SIZES[:1], np.array([0.0]), 0),
    ],
)
def test_the_elbow_is_where_gains_fall_below_the_average(sizes, values, place):
    assert elbow(sizes, values) == place


def test_where_everything_still_rises_only_k_is_advised_for_each_l():
    k = np.arange(2, 9)
    curves = np.stack([np.sqrt(k), 2 * np.minimum(k, 5) + 0.1 * k], axis=1)
    grid = made_up(curves, tuple(range(2, 9)), (1, 2))
    advice = advise(grid, 2)
    assert advice.cell == (5, 2)
    assert advice.reason == (
        "With L = 2, going beyond 5 components gains little: 0.10 nats for 1 more, "
        "against 2.10 between 2 and 3."
    )
    assert advise(grid, 1).cell[1] == 1
    assert advise(grid, 7).cell == (5, 2)


def test_the_smallest_l_of_cells_as_good_as_the_best_wins_then_the_smallest_k():
    values = np.full((4, 3, 3), -9.0)
    as_good = np.array([0.1, -0.2, 0.15])
    values[2, 1] = 0.0  # the best mean
    values[1, 1] = -np.abs(as_good.mean()) + as_good - as_good.mean()
    values[3, 0] = -1.0  # smaller L, but worse in every fold
    assert advise(made_up(values, (2, 3, 4, 5), (1, 2, 3)), 1).cell == (3, 2)


def stability_of(dataset: Dataset, k=3, active=1, **changes) -> StabilityConfig:
    parameters = {"n_components": k, "n_active": active, "random_state": 0}
    given = {"preprocessing": {}, "model": "aPPCA", "parameters": parameters, "repeats": 3}
    return StabilityConfig(dataset=dataset.digest, **(given | changes))


def test_planted_components_come_back_and_those_of_round_data_do_not(tmp_path, seed):
    dataset = dataset_of(planted(400, 8, 3, 1, seed=seed, noise=0.1).X)

    def outcome(dataset, config):
        config.complete(dataset, tmp_path)
        return config.outcome(tmp_path)

    starts = outcome(dataset, stability_of(dataset))
    assert starts.cosines.shape == (3, 3)
    # a random start may end elsewhere, and then says so by a lower likelihood
    settled = starts.log_likelihoods > starts.reference - 0.01
    assert (starts.cosines[settled] > 0.999).all()
    halves = outcome(dataset, stability_of(dataset, way="halves"))
    assert (halves.cosines > 0.97).all()
    assert np.abs(halves.log_likelihoods - halves.reference).max() < 0.1
    ball = dataset_of(np.random.default_rng(seed).standard_normal((300, 8)))
    assert outcome(ball, stability_of(ball, way="halves")).cosines.mean() < 0.95


def test_numbers_are_those_of_fits_by_hand(tmp_path):
    dataset = dataset_of(planted(90, 5, 3, 2, seed=0, noise=0.5, offset=4.0).X)
    config = stability_of(dataset, 3, 2, way="halves", preprocessing={"centre": True}, repeats=2)
    config.complete(dataset, tmp_path)
    stability = config.outcome(tmp_path)
    Y = dataset.X - dataset.X.mean(axis=0)
    reference = AdaptivePPCA(3, 2, random_state=0).fit(Y)
    again = AdaptivePPCA(3, 2, random_state=0).fit(Y[config.variant(2, 90)[1]])
    assert stability.reference == pytest.approx(reference.score(Y), abs=1e-9)
    assert stability.log_likelihoods[1] == pytest.approx(again.score(Y), abs=1e-7)
    cosines = np.abs(reference.components_ @ again.components_.T)  # all have length one
    orders = (cosines[np.arange(3), list(order)] for order in permutations(range(3)))
    assert stability.cosines[1] == pytest.approx(max(orders, key=sum), abs=1e-6)


def test_variants_differ_in_the_start_alone_or_in_the_rows_alone():
    config = stability_of(dataset_of(np.eye(4)))
    (one, rows), (two, same) = config.variant(1, 90), config.variant(2, 90)
    np.testing.assert_array_equal([rows, same], [np.arange(90)] * 2)
    assert one["init"] == two["init"] == "random"
    assert one["random_state"] != two["random_state"]
    halves = stability_of(dataset_of(np.eye(4)), way="halves")
    (one, rows), (two, other) = halves.variant(1, 91), halves.variant(2, 91)
    assert one == two == halves.parameters
    assert len(set(rows.tolist())) == len(rows) == 46
    assert not np.array_equal(rows, other)


def test_nothing_is_said_before_there_are_two_fits(tmp_path):
    config = stability_of(dataset_of(np.eye(4)))
    journal = config.journal(tmp_path)
    journal.begin(config.id, config.to_dict())
    journal.append(config.id, [0, -1.0, 1.0, 1.0, 1.0])
    assert config.outcome(tmp_path) is None
    journal.append(config.id, [1, -2.0, 0.5, 0.75, 1.0])
    stability = config.outcome(tmp_path)
    assert (stability.reference, stability.log_likelihoods.tolist()) == (-1.0, [-2.0])
    assert stability.cosines.tolist() == [[0.5, 0.75, 1.0]]
