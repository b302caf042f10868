"""What a model with any W says of a row depends on the row alone, to the bit."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from appca import AdaptiveFactorAnalysis, FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
from appca.models import threads

D, N = 37, 30  # an odd number of features, and rows for several of each kind of remainder


def model_of(kind, k, n_active, dtype):
    """A model as if it had been fitted."""
    rng = np.random.default_rng(k)
    C = rng.standard_normal((k, D))
    if kind is NonparametricPPCA:
        C = np.linalg.qr(C.T)[0].T
    arrays = {
        "components": C.astype(dtype),
        "mean": rng.standard_normal(D).astype(dtype),
        "noise_variance": np.array(0.7),
        "latent_variance": np.ones(k),
        "explained_variance": np.ones(k),
        "scale": np.ones(k),
    }
    if n_active:
        return kind(k, n_active, n_paths=4).restore(arrays | {"n_active": np.array(n_active)})
    free = {"n_components": np.array(k), "weights": np.full(k, 0.4), "alpha": np.array(1.0)}
    keywords = {} if kind is NonparametricPPCA else {"n_paths": 4}
    return kind(k, **keywords).restore(arrays | free)


def rows_of(model, dtype):
    rng = np.random.default_rng(1)
    H = rng.standard_normal((N, len(model.components_))) * (
        rng.random(model.components_.shape[0]) < 0.5
    )
    noise = 0.8 * rng.standard_normal((N, D))
    return (model.mean_ + H @ model.components_ + noise).astype(dtype)


def joined(parts, order=None):
    told = [part[: part._fields.index("method")] for part in parts]
    columns = [np.concatenate(column) for column in zip(*told, strict=True)]
    return columns if order is None else [column[np.argsort(order)] for column in columns]


@pytest.mark.default_cases(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "k", "n_active"),
    [
        (AdaptiveFactorAnalysis, 17, 8),  # 24,310 sets: by importance sampling
        (AdaptiveFactorAnalysis, 8, 3),  # 56 sets: exactly
        (InfiniteSparseFA, 18, None),  # more than 16 columns: by importance sampling
        (FiniteSparseFA, 17, None),
        (InfiniteSparseFA, 9, None),  # 512 sets: exactly
        (NonparametricPPCA, 9, None),
    ],
)
def test_a_row_alone_in_twos_or_among_others_is_told_the_same(
    kind, k, n_active, dtype, seed, monkeypatch
):
    model = model_of(kind, k, n_active, dtype)
    X = rows_of(model, dtype)
    order = np.random.default_rng(seed).permutation(N)
    wanted = joined([model.describe(X)])
    for cores in (1, 2):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        with threadpool_limits(cores):
            many = np.concatenate([X] * 20)  # enough for blocks that are shared out
            others = {
                "alone": joined([model.describe(X[i : i + 1]) for i in range(N)]),
                "in twos": joined([model.describe(X[i : i + 2]) for i in range(0, N, 2)]),
                "in sevens": joined([model.describe(X[i : i + 7]) for i in range(0, N, 7)]),
                "together": joined([model.describe(X)]),
                "permuted": joined([model.describe(X[order])], order),
                "among many": [column[-N:] for column in joined([model.describe(many)])],
            }
        for name, found in others.items():
            for field, a, b in zip(model.describe(X)._fields, found, wanted, strict=False):
                np.testing.assert_array_equal(a, b, err_msg=f"{field}, {name}, {cores} threads")
