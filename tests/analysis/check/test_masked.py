"""Errors on hidden cells, each by its own route."""

import numpy as np
import pytest

from appca import PPCA, AdaptivePPCA
from appca.analysis.compare import MaskedConfig, hide, regressed, ridge
from appca.data.dataset import Dataset
from appca.words import InputError
from tests.models.synthetic import planted

PARAMETERS = {"n_components": 4, "n_active": 2, "random_state": 0}


def gappy(share=0.1):
    X = planted(150, 8, 4, 2, seed=0, noise=0.1).X
    missing = np.random.default_rng(1).random(X.shape) < share
    full = np.where(missing, np.nanmean(np.where(missing, np.nan, X), axis=0), X)
    return Dataset("gappy", full, np.arange(150).astype(str), missing=missing)


def config_of(dataset, parameters=PARAMETERS):
    return MaskedConfig(dataset.digest, {"centre": True, "scale": "feature"}, "aPPCA", parameters)


def test_only_observed_cells_are_hidden_and_every_column_keeps_two(seed):
    rng = np.random.default_rng(seed)
    observed = rng.random((30, 6)) < 0.8
    observed[2:, 3] = False
    observed[:2, 3] = True
    hidden = hide(observed, 0.5, rng)
    assert not (hidden & ~observed).any()
    assert (observed & ~hidden).sum(axis=0).min() >= 2
    share = hidden[:, [0, 1, 2, 4, 5]].sum() / observed.sum()
    assert 0.4 < share <= 0.5


def test_errors_are_those_of_fits_without_the_hidden_cells_and_the_planted_model_is_best(tmp_path):
    dataset = gappy()
    config = config_of(dataset)
    config.complete(dataset, tmp_path)
    errors = config.errors(tmp_path)
    assert list(errors) == ["own", "ppca_l", "ppca_k", "ridge", "near", "means"]
    hidden = hide(~dataset.missing, 0.05, np.random.default_rng([0, 1]))
    Y = np.where(dataset.missing | hidden, np.nan, dataset.X)
    centre, scale = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
    Y, truth = (Y - centre) / scale, ((dataset.X - centre) / scale)[hidden]
    for method, filled in {
        "own": AdaptivePPCA(**PARAMETERS).fit(Y).impute(Y),
        "ppca_l": PPCA(2).fit(Y).impute(Y),
        "ppca_k": PPCA(4).fit(Y).impute(Y),
        "means": np.where(np.isnan(Y), 0.0, Y),
    }.items():
        error = np.sqrt(np.mean((filled[hidden] - truth) ** 2))
        assert errors[method][1] == pytest.approx(error, rel=1e-6), method
    means = {method: values.mean() for method, values in errors.items()}
    assert means["own"] < min(0.8 * means["ppca_l"], 0.95 * means["ppca_k"])
    assert means["ppca_k"] < means["means"]


def test_ridge_predicts_each_column_from_the_others(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    Y = Z.copy()
    Y[:20, 2] = np.nan
    design = np.column_stack([np.ones(200), np.delete(Z, 2, axis=1)])
    weights = np.linalg.lstsq(design[20:], Z[20:, 2], rcond=None)[0]
    filled = regressed(Y, 1e-9, times=50)[:20, 2]
    np.testing.assert_allclose(filled, design[:20] @ weights, rtol=1e-3, atol=1e-3)
    assert np.square(ridge(Y)[:20, 2] - Z[:20, 2]).mean() < 0.5 * Z[:, 2].var()


def test_ppca_stands_for_itself_and_what_needs_all_cells_is_refused(tmp_path):
    dataset = Dataset("no gaps", planted(80, 6, 3, 3, seed=2).X, np.arange(80).astype(str))
    config = config_of(dataset, PARAMETERS | {"n_active": 4})
    config.complete(dataset, tmp_path)
    assert tuple(config.errors(tmp_path)) == ("ppca_k", "ridge", "near", "means")
    with pytest.raises(InputError, match="needs whole rows"):
        MaskedConfig(gappy().digest, {"pca": 3}, "aPPCA", PARAMETERS).complete(gappy(), tmp_path)
