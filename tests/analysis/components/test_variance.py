"""Parts of the variance are Shapley values and add up to all of it."""

from itertools import permutations

import numpy as np
import pytest
import scipy.sparse

from appca import AdaptiveFactorAnalysis, AdaptivePPCA, variance_by
from appca.words import InputError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 7)) @ RNG.normal(size=(7, 7)) + 3
CLASSES = np.array(["a", "b", "c"])[np.arange(60) % 3]
BLOCKS = {"left": [0, 1, 2], "right": [3, 4, 5, 6]}


@pytest.fixture(scope="module", params=[AdaptivePPCA, AdaptiveFactorAnalysis])
def model(request):
    return request.param(3, 2, random_state=0).fit(X)


def test_shares_are_means_over_all_orders_and_add_up_to_all_of_the_variance(model):
    shares = variance_by(model, X, classes=CLASSES, blocks=BLOCKS)
    sums = shares.groupby(["class", "block"])["share"].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-12)
    assert len(sums) == 6
    scores, W = model.describe(X).scores, model.components_
    for (name, block), group in shares.groupby(["class", "block"]):
        rows, columns = name == CLASSES, BLOCKS[block]
        y = (X - model.mean_)[rows][:, columns]
        saved = np.zeros(3)
        orders = list(permutations(range(3)))
        for order in orders:
            rest = y.copy()
            for k in order:
                after = rest - np.outer(scores[rows, k], W[k, columns])
                saved[k] += ((rest**2).sum() - (after**2).sum()) / len(orders)
                rest = after
        expected = np.r_[(rest**2).sum(), saved] / (y**2).sum()
        np.testing.assert_allclose(group.sort_values("component")["share"], expected, atol=1e-10)


def test_sparse_rows_and_rows_with_gaps_add_up_too():
    sparse = scipy.sparse.random(80, 9, 0.4, random_state=1, format="csr")
    fitted = AdaptivePPCA(3, 1, random_state=0).fit(sparse)
    thick = variance_by(fitted, sparse.toarray())["share"]
    np.testing.assert_allclose(variance_by(fitted, sparse)["share"], thick, atol=1e-9)
    holed = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    shares = variance_by(AdaptivePPCA(3, 1, random_state=0).fit(holed), holed, blocks=BLOCKS)
    np.testing.assert_allclose(shares.groupby("block")["share"].sum(), 1.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"blocks": {"a": [1, 2], "b": [2]}}, "must not overlap; column 2 is listed twice"),
        ({"blocks": {"a": [7]}}, "columns beyond 0 to 6"),
        ({"classes": ["a", "b", "c"]}, "one value a row, 60; got 3"),
    ],
)
def test_overlapping_blocks_and_other_lengths_are_refused(model, given, words):
    with pytest.raises(InputError, match=words):
        variance_by(model, X, **given)
