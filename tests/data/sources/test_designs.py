"""The five designs of table 1 are what their names say."""

import numpy as np
import pytest

from appca.data.sources import DESIGNS, draw_indicators, draw_synthetic


def indicators(design, seed, n_rows):
    return draw_indicators(np.random.default_rng(seed), design, n_rows, 10, 5)


def test_balanced_rows_use_exactly_l_factors_and_all_subsets_alike():
    Z = draw_indicators(np.random.default_rng(1), "balanced", 12_000, 4, 2)
    assert (Z.sum(axis=1) == 2).all()
    counts = np.unique(Z @ (1 << np.arange(4)), return_counts=True)[1]
    assert len(counts) == 6
    assert ((counts - 2000) ** 2 / 2000).sum() < 20.5  # chi-square on 5 degrees, p = 0.001


def test_classes_share_all_factors_or_none():
    Z = indicators("subspace", 0, 200).astype(int)
    assert set(np.unique(Z @ Z.T)) == {0, 5}


def test_sparse_and_dense_have_their_expected_use():
    means = [[indicators(d, seed, 50).mean() for seed in range(400)] for d in ("sparse", "dense")]
    for values, expected in zip(means, (0.3 / 1.3, 0.8), strict=True):
        assert abs(np.mean(values) - expected) < 5 * np.std(values) / 20


@pytest.mark.parametrize("design", DESIGNS)
def test_data_are_the_product_plus_noise_of_the_stated_size(design):
    truth = draw_synthetic(np.random.default_rng(3), design, n_rows=500)
    residual = truth.Y - (truth.X * truth.Z) @ truth.W.T
    assert abs(residual.std() - 0.1) < 0.003
    again = draw_synthetic(np.random.default_rng(3), design, n_rows=500)
    assert (again.Y == truth.Y).all()


def test_bad_arguments_say_what_to_give():
    with pytest.raises(ValueError, match="between 1 and n_components=10; got 11"):
        draw_indicators(np.random.default_rng(0), "balanced", 5, 10, 11)
    with pytest.raises(ValueError, match="design must be one of sparse"):
        draw_indicators(np.random.default_rng(0), "banana", 5, 10, 5)
