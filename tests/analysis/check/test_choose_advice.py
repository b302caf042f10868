"""What a grid says: planted K and L, the share of a gap, comparison fold by fold, elbows."""

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from appca.analysis import choose
from appca.analysis.choose import (
    GridConfig,
    GridTable,
    HeldOutMeasure,
    Measures,
    advise,
    closed,
    elbow,
    fill,
    folds,
    gain,
    near,
    stored,
    table,
)
from appca.analysis.journal import JournalStore
from appca.data.dataset import Dataset
from tests.models.synthetic import planted

TRUTH = (4, 2)  # K and L


def dataset_of(X: np.ndarray) -> Dataset:
    return Dataset("planted", X, np.arange(len(X)).astype(str), {}, None, None, {})


def measured(tmp_path, X, **changes) -> tuple[Dataset, GridConfig, Measures]:
    dataset = dataset_of(X)
    given = {"components": (2, 3, 4, 5), "actives": (1, 2, 3), "parameters": {"random_state": 0}}
    config = GridConfig(dataset=dataset.digest, preprocessing={}, model="aPPCA", **given | changes)
    store = JournalStore(tmp_path, "grids")
    fill(dataset, config, store, lambda *_: None)
    return dataset, config, stored(store, config)


def made_up(log_likelihood, components, actives, baseline=None) -> GridTable:
    values = np.asarray(log_likelihood, dtype=float)
    if values.ndim == 2:
        values = np.repeat(values[..., None], 3, axis=2)
    baseline = {} if baseline is None else baseline
    return GridTable(components, actives, values, values * 0 + 1.0, baseline)


@pytest.mark.thorough
@pytest.mark.parametrize("noise", [0.1, pytest.param(0.3, marks=pytest.mark.slow), 0.5])
def test_the_planted_k_and_l_are_found_at_three_noise_levels(tmp_path, seed, noise):
    X = planted(450, 8, *TRUTH, seed=seed, noise=noise).X
    _, config, measures = measured(tmp_path, X)
    advice = advise(table(config, measures))
    assert advice.cell == TRUTH
    assert advice.budgets[TRUTH[1]] == 4


@pytest.mark.thorough
def test_rows_that_use_all_planted_components_are_seen_to_be_ppca(tmp_path, seed):
    X = planted(240, 6, 3, 3, seed=seed, noise=0.2).X
    sizes = {"components": (2, 3, 4), "actives": (1, 2, 3, 4)}
    _, config, measures = measured(tmp_path, X, **sizes)
    advice = advise(table(config, measures))
    assert advice.cell == (3, 3)


def test_the_baseline_is_probabilistic_pca(tmp_path):
    X = planted(80, 6, 4, 2, seed=3, noise=0.3).X
    parameters = {"latent_variance": "component", "random_state": 0, "max_iter": 5}
    _, config, measures = measured(
        tmp_path, X, components=(3,), actives=(1,), parameters=parameters
    )
    found = table(config, measures)
    assert set(found.baseline) == {1, 3}
    split = folds(80, 3, config.max_rows, 0)
    for q, values in found.baseline.items():
        for fold, value in zip(split, values, strict=True):
            pca = PCA(q).fit(X[fold.train])
            # scikit-learn divides by N - 1, maximum likelihood by N
            n = len(fold.train)
            pca.explained_variance_ *= (n - 1) / n
            pca.noise_variance_ *= (n - 1) / n
            assert value == pytest.approx(pca.score(X[fold.test]), abs=1e-9)


def test_gain_and_share_of_the_gap_are_what_they_say():
    baseline = {1: np.array([1.0, 2.0, 3.0]), 3: np.array([5.0, 7.0, 9.0])}
    cell = np.array([4.0, 4.5, 12.0])
    found = made_up(cell[None, None], (3,), (1,), baseline)
    assert gain(found)[0, 0] == pytest.approx([3.0, 2.5, 9.0])
    assert closed(found)[0, 0] == pytest.approx([3 / 4, 2.5 / 5, 9 / 6])
    average = choose.closed_on_average(found)[0, 0]
    assert average == pytest.approx((cell.mean() - 2.0) / (7.0 - 2.0))


def test_there_is_no_share_where_there_is_no_gap():
    baseline = {2: np.full(3, 4.0), 3: np.full(3, 3.5)}
    found = made_up(np.full((2, 1, 3), 4.2), (2, 3), (2,), baseline)
    assert np.isnan(closed(found)).all()  # K = L, and PPCA with 3 worse than with 2
    assert np.isnan(choose.closed_on_average(found)).all()


def test_cells_are_compared_fold_by_fold():
    easy = np.array([0.0, 10.0, -20.0])  # what all cells share
    worse = np.array([1.0, 1.01, 0.99])
    wobbling = np.array([0.9, -0.4, 0.2])
    values = np.stack([easy, easy - worse, easy - wobbling])
    assert near(values).tolist() == [True, False, True]
    behind = choose.over_folds(easy - values[2])
    assert behind.mean == pytest.approx(wobbling.mean())
    assert behind.standard_error == pytest.approx(np.std(wobbling, ddof=1) / math.sqrt(3))


def test_cells_without_all_folds_take_no_part():
    config = GridConfig("d" * 64, {}, "aPPCA", {}, (2, 3), (1, 2), n_folds=2)
    one = HeldOutMeasure(-5.0, 0.1, 3, "converged", 0.1)
    better = one._replace(log_likelihood=-1.0)
    measures = {(2, 1, 0): one, (2, 1, 1): one, (3, 1, 0): better}
    found = table(config, measures)
    assert np.isfinite(found.log_likelihood[0, 0]).all()
    assert np.isnan(found.log_likelihood).sum() == 6
    assert advise(found).budgets == {}  # nothing to compare with yet
    assert advise(table(config, {})) == (None, {})
    assert not near(table(config, {}).log_likelihood).any()


def test_the_elbow_is_where_gains_fall_below_the_average():
    sizes = np.array([2, 3, 4, 6, 8, 10])
    assert elbow(sizes, np.array([0.0, 4.0, 8.0, 9.0, 10.0, 11.0])) == 2
    assert elbow(sizes, np.minimum(sizes, 6.0)) == 3
    assert elbow(sizes, sizes * 3.0 - 1e6) == 5  # straight: none before the end
    assert elbow(sizes, sizes**2.0) == 5  # gains grow
    assert elbow(sizes[:2], np.array([0.0, 1.0])) == 1
    assert elbow(sizes[:1], np.array([0.0])) == 0


def test_where_everything_still_rises_only_k_is_advised_for_each_l():
    k = np.arange(2, 9)
    curves = np.stack([np.sqrt(k), 2 * np.minimum(k, 5) + 0.1 * k], axis=1)
    baseline = {q: np.full(3, 0.5 * q) for q in range(1, 9)}
    advice = advise(made_up(curves, tuple(range(2, 9)), (1, 2), baseline))
    assert advice.cell is None
    assert set(advice.budgets) == {1, 2}
    assert advice.budgets[2] == 5


def test_the_smallest_l_of_cells_as_good_as_the_best_wins_then_the_smallest_k():
    values = np.full((4, 3, 3), -9.0)
    as_good = np.array([0.1, -0.2, 0.15])
    values[2, 1] = 0.0  # the best mean
    values[1, 1] = -np.abs(as_good.mean()) + as_good - as_good.mean()
    values[3, 0] = -1.0  # smaller L, but worse in every fold
    advice = advise(made_up(values, (2, 3, 4, 5), (1, 2, 3)))
    assert advice.cell == (3, 2)
