"""One row taken apart: sums that add up, probabilities and neighbours by other routes."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from appca.analysis import rows
from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.runs.fit import fit_run
from appca.runs.run import RunConfig
from tests.fitted_runs import fitted_model, fitted_run

SHORT = {"burn_in": 5, "n_draws": 5, "n_chains": 1}


def wine_run(model, preprocessing=None, **parameters):
    dataset = load("wine")
    options = preprocessing or {"centre": True, "scale": "feature"}
    config = RunConfig(dataset.digest, options, model, parameters)
    return dataset, fit_run(dataset, config).fitted


@pytest.mark.parametrize("reduce", [{}, {"pca": 6}])
def test_average_terms_and_residual_add_up_to_the_row_in_its_own_units(reduce):
    options = {"divide": 2.0, "scale": "feature", **reduce}
    dataset, fitted = wine_run("aPPCA", options)
    before = fitted.preprocessing
    found = rows.parts(dataset, fitted, 11)
    assert found.components == tuple(np.flatnonzero(fitted.active[11]))
    np.testing.assert_array_equal(found.original, dataset.X[11])
    total = found.average + found.terms.sum(axis=0)
    np.testing.assert_allclose(total, found.reconstruction, rtol=1e-10)
    wanted = fitted.mean + fitted.scores[11] @ fitted.components
    np.testing.assert_allclose(
        found.reconstruction, before.inverse_transform(wanted[None])[0], rtol=1e-6
    )
    if not reduce:
        scaled = (found.original - found.reconstruction) / (before.scale * before.divide)
        np.testing.assert_allclose(np.mean(scaled**2), fitted.error[11], rtol=1e-4)


def test_probabilities_of_sets_are_those_of_dense_normal_densities(seed):
    rng = np.random.default_rng(seed)
    K, D, L, noise = 4, 5, 2, 0.4
    W, tau2, mean = rng.normal(size=(K, D)), rng.uniform(0.5, 2, K), rng.normal(size=D)
    y = rng.normal(size=D) * 2
    given = {"mean": mean, "n_active": L, "noise_variance": noise, "latent_variance": tau2}
    fitted = fitted_model(W, **given)
    log_p = {
        S: multivariate_normal(
            mean, (W[list(S)].T * tau2[list(S)]) @ W[list(S)] + noise * np.eye(D)
        ).logpdf(y)
        for S in itertools.combinations(range(K), L)
    }
    total = np.logaddexp.reduce(list(log_p.values()))
    sets, probability = zip(*rows.alternatives(fitted, y, most=3), strict=True)
    assert list(sets) == sorted(log_p, key=log_p.get, reverse=True)[:3]
    np.testing.assert_allclose(probability, [np.exp(log_p[S] - total) for S in sets], rtol=1e-9)
    assert rows.alternatives(fitted_model(np.eye(20), n_active=10), np.zeros(20)) == []


@pytest.mark.default_cases(4)
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("aPPCA", {"latent_variance": "component"}),
        ("aPPCA", {"noise": "feature"}),
        ("aPPCA", {"row_scale": "learned"}),
        ("aPPCA", {"noise": "feature", "row_scale": "learned"}),
        ("aPPCA", {"noise": "feature", "n_active": "learned"}),
        ("PPCA", {"n_components": 3}),
        ("aFA", {"n_components": 4}),
        ("NPPCA", {"max_components": 4, **SHORT}),
        ("isFA", {"max_components": 4, **SHORT}),
    ],
)
def test_the_best_set_and_its_probability_are_those_of_the_run(model, parameters):
    dataset, fitted = wine_run(model, **parameters)
    Y = fitted.preprocessing.transform(dataset.X)
    for row in range(0, dataset.n_rows, 20):
        found = rows.alternatives(fitted, Y[row], most=5000)
        assert found[0][0] == tuple(np.flatnonzero(fitted.active[row]))
        np.testing.assert_allclose(found[0][1], fitted.membership[row], rtol=1e-4)
        included = np.zeros(len(fitted.components))
        for S, probability in found:
            included[list(S)] += probability
        if not fitted.draws:  # the page tells of the published draw, the run of all
            np.testing.assert_allclose(included, fitted.inclusion[row], atol=1e-4)
        if fitted.size_probabilities is not None:
            by_size = np.bincount([len(S) for S, _ in found], [p for _, p in found], minlength=5)
            sizes = rows.size_probabilities(fitted, Y[row].astype(np.float64))
            np.testing.assert_allclose(sizes, by_size, atol=1e-6)


def test_nearest_rows_are_those_of_all_distances(seed, monkeypatch):
    monkeypatch.setattr(rows, "_BLOCK_VALUES", 100)
    X = np.random.default_rng(seed).integers(0, 9, (80, 6)).astype(np.uint8)
    X[50] = X[3]
    fitted = Preprocessing(divide=3.0, scale="feature").fit(X)
    Y = fitted.transform(X).astype(float)
    distance = np.linalg.norm(Y - Y[3], axis=1)
    found = rows.near_in_data(X, fitted, 3, 7)
    assert found[0] == 50
    assert 3 not in found
    np.testing.assert_allclose(distance[found], np.sort(np.delete(distance, 3))[:7], rtol=1e-5)


def test_nearest_in_the_subspace_are_nearest_in_reconstruction():
    _, fitted = wine_run("aFA", n_components=4)
    found = rows.near_in_subspace(fitted, 5, 6)
    same = np.flatnonzero((fitted.active == fitted.active[5]).all(axis=1))
    rebuilt = fitted.scores.astype(float) @ fitted.components
    distance = np.linalg.norm(rebuilt - rebuilt[5], axis=1)
    others = np.setdiff1d(same, [5])
    assert set(found) <= set(others)
    np.testing.assert_allclose(distance[found], np.sort(distance[others])[:6], atol=1e-5)
    alone = np.array([[True, False], [False, True], [False, True]])
    fitted = fitted_run(alone, scores=np.array([[2.0, 0], [0, 1], [0, 4]]))
    assert [rows.near_in_subspace(fitted, n, 3).tolist() for n in (0, 1)] == [[], [2]]
