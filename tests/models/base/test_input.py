"""What fits make of unusual input, and what they leave behind when they fail."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from appca import (
    PPCA,
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    NonparametricPPCA,
    PearsonResiduals,
)
from appca.models.rows import centre_of
from appca.models.stiefel import upright
from tests.models.synthetic import planted

SHORT = {"burn_in": 3, "n_draws": 3, "n_chains": 1}
MODELS = {
    "aPPCA": AdaptivePPCA(3, 1, random_state=0),
    "aPPCA, sizes": AdaptivePPCA(3, "learned", row_scale="learned", max_iter=20, random_state=0),
    "aPPCA, noise": AdaptivePPCA(3, 1, noise="feature", random_state=0),
    "aPPCA, Gibbs": AdaptivePPCA(3, 1, inference="gibbs", random_state=0, **SHORT),
    "aFA": AdaptiveFactorAnalysis(3, 1, random_state=0),
    "fsFA": FiniteSparseFA(3, random_state=0, **SHORT),
    "NPPCA": NonparametricPPCA(3, random_state=0, **SHORT),
    "PPCA": PPCA(3),
}


def interrupt(_progress):
    raise KeyboardInterrupt


@pytest.fixture
def X(seed):
    return planted(150, 6, 3, 1, seed=seed, noise=0.5).X


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("failure", ["interrupted", "constant", "no numbers"])
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_fails_leaves_the_one_before_whole_or_none(name, failure, X):
    model = MODELS[name].__class__(**MODELS[name].get_params())
    names = pd.DataFrame(X, columns=list("abcdef"))
    others = pd.DataFrame(X[:, :5] + 1.0, columns=list("uvwxy"))
    kind: type[BaseException] = ValueError
    if failure == "interrupted":
        kind = KeyboardInterrupt
        if name == "PPCA":  # has iterations where entries are missing alone
            others.iloc[0, 0] = np.nan
        model.set_params(callback=interrupt)
    elif failure == "constant":
        others[:] = 1.0
    else:
        others.iloc[1, 1] = np.inf
    with pytest.raises(kind):
        model.fit(others)
    assert not any(key.endswith("_") and not key.startswith("_") for key in model.__dict__)
    before = model.set_params(callback=None).fit(names).__dict__.copy()
    scores = model.score_samples(names)
    with pytest.raises(kind):
        model.set_params(callback=interrupt).fit(others)
    assert all(model.__dict__[key] is value for key, value in before.items() if key != "callback")
    np.testing.assert_array_equal(model.score_samples(names), scores)


def test_a_batch_that_fails_changes_nothing(X, monkeypatch):
    model = AdaptivePPCA(3, 1, random_state=0).fit(X)
    before = model.__dict__.copy()
    monkeypatch.setattr(AdaptivePPCA, "_publish_state", None)
    with pytest.raises(TypeError):
        model.partial_fit(X)
    assert model.__dict__ == before


@pytest.mark.parametrize("factor", [1e-300, 0.0023, 1e12, 1e99])
@pytest.mark.parametrize("latent", ["shared", "component"])
@pytest.mark.parametrize("name", ["aPPCA", "aPPCA, noise", "aPPCA, sizes"])
@pytest.mark.filterwarnings("ignore:EM ended")
def test_a_common_factor_of_weights_changes_nothing(name, latent, factor, X):
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    fits = [
        clone(MODELS[name]).set_params(latent_variance=latent).fit(X, sample_weight=w)
        for w in (weights, factor * weights)
    ]
    for attribute in ("components_", "noise_variance_", "explained_variance_"):
        # Each factor rounds the sums otherwise, and the climbs end within `tol` of each other.
        both = [getattr(model, attribute) for model in fits]
        np.testing.assert_allclose(*both, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match=r"at most 1e\+100"):
        fits[0].fit(X, sample_weight=1e200 * weights)


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_a_common_factor_of_the_weights_of_batches_changes_nothing(factor, seed):
    X = planted(3000, 8, 4, 2, seed=seed, noise=0.5).X
    fits = [AdaptivePPCA(4, 2, random_state=0) for _ in range(2)]
    for start in range(0, 3000, 300):
        fits[0].partial_fit(X[start : start + 300])
        fits[1].partial_fit(X[start : start + 300], sample_weight=np.full(300, factor))
    np.testing.assert_allclose(fits[1].components_, fits[0].components_, atol=1e-6)


def test_columns_of_parts_keep_the_order_of_the_fit(X):
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcdef"))
    blocks = [frame[:70], frame[70:]]
    turned = [block[list("bacdef")] for block in blocks]
    for fit in (
        lambda model: model.fit_blocks(blocks),
        lambda model: model.fit(iter(blocks)),
        lambda model: model.fit(dask.from_pandas(frame, 2)),
    ):
        model = fit(AdaptivePPCA(3, 1, random_state=0))
        assert list(model.feature_names_in_) == list("abcdef")
        assert model.score_blocks(blocks) == pytest.approx(model.score(frame))
        for ask in (
            model.score_blocks,
            lambda b, m=model: list(m.transform_blocks(b)),
            model.fit_blocks,
        ):
            with pytest.raises(ValueError, match="in its order; block 1 has"):
                ask([blocks[0], turned[1]])
        for ask in (model.transform, model.score, model.row_scales):
            with pytest.raises(ValueError, match="in its order; the Dask frame has"):
                ask(dask.from_pandas(frame[list("bacdef")], 2))


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_a_noise_of_each_feature_is_fitted_in_any_unit(unit, X):
    plain, extreme = (
        AdaptivePPCA(3, 1, noise="feature", random_state=0).fit(Y) for Y in (X, unit * X)
    )
    assert extreme.score(unit * X) == pytest.approx(plain.score(X) - 6 * np.log(unit), rel=1e-6)


@pytest.mark.parametrize("make", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_sums_of_single_precision_rows_are_taken_in_double_precision(make):
    X = np.full((200_000, 2), 500.0, np.float32)
    X[:, 1] += np.random.default_rng(0).random(len(X)).astype(np.float32)
    wanted = X.mean(axis=0, dtype=np.float64)
    np.testing.assert_allclose(centre_of(X), wanted, rtol=2e-7)
    shares = PearsonResiduals().fit(make(X)).proportions_
    np.testing.assert_allclose(shares, wanted / wanted.sum(), rtol=1e-9)


def test_the_first_of_equal_entries_is_positive():
    W = np.array([[0.1, 0.7], [-0.7, -0.7000001], [0.7 + 1e-9, 0.1]])
    np.testing.assert_array_equal(np.sign(upright(W)[[1, 0], [0, 1]]), 1.0)


def test_scores_over_all_supports_take_gaps_and_refusals_agree(X):
    gaps = X.copy()
    gaps[::4, 2] = np.nan
    model = AdaptivePPCA(3, 2, random_state=0).fit(gaps)
    scores = model.transform(gaps, "all")
    np.testing.assert_allclose(scores[1], model.transform(X, "all")[1], rtol=1e-10)
    filled = model.impute(gaps)
    np.testing.assert_allclose(filled[::4, 2], (model.mean_ + scores @ model.components_)[::4, 2])
    assert (model.row_scales(gaps) == 1.0).all()
    for name in ("aPPCA, noise", "aPPCA, sizes"):
        other = MODELS[name].__class__(**MODELS[name].get_params()).fit(X)
        for method in (other.impute, other.row_scales, other.score_samples):
            with pytest.raises(ValueError, match="missing entries"):
                method(gaps)
