"""The estimators without a fixed number of active components: contract, queries, posterior."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from appca import FiniteSparseFA, InfiniteSparseFA, NonparametricPPCA
from appca.models import free_supports
from appca.models.free_supports import MOST_COLUMNS, Question
from tests.models import gibbs_oracles as oracle
from tests.references import low_rank

SHORT = {"n_chains": 2, "burn_in": 15, "n_draws": 20, "random_state": 0}
MODELS = [NonparametricPPCA, FiniteSparseFA, InfiniteSparseFA]
FACTORS = [FiniteSparseFA, InfiniteSparseFA]


def planted(seed=0, n_rows=150, n_features=6, n_components=3):
    """Rows with three features of their own, used by some rows each."""
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(n_features, n_components)))[0] * 3
    Z = rng.random((n_rows, n_components)) < [0.7, 0.5, 0.3]
    X = rng.normal(size=Z.shape) * Z
    return 2.0 + X @ W.T + 0.3 * rng.normal(size=(n_rows, n_features)), W


@pytest.mark.default_cases(48)
@parametrize_with_checks([model(2, n_chains=1, burn_in=4, n_draws=4) for model in MODELS])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model.__name__)
def fitted(request):
    Y, W = planted()
    model = request.param(5, n_chains=2, burn_in=60, n_draws=60, random_state=1).fit(Y)
    return model, Y, W


def test_the_planted_directions_are_found(fitted):
    model, _, W = fitted
    V = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    assert (np.abs(V @ (W / 3)).max(axis=0) > 0.97).all()


def test_attributes_have_the_shapes_of_the_contract(fitted):
    model, Y, _ = fitted
    K = model.n_components_
    assert model.components_.shape == (K, 6)
    assert model.mean_.shape == (6,)
    assert model.weights_.shape == model.explained_variance_.shape == model.scale_.shape == (K,)
    assert (np.diff(model.explained_variance_) <= 0).all()
    assert (model.components_[np.arange(K), np.abs(model.components_).argmax(axis=1)] > 0).all()
    assert model.log_likelihoods_.shape == (model.n_iter_,) == (120,)
    assert model.stop_reason_ == "made all 120 sweeps of every chain"
    assert model.posterior_["components"].shape == (2, 60, 5, 6)
    assert model.posterior_["Z_mean"].shape == model.posterior_["X_mean"].shape == (2, len(Y), 5)


def test_scores_are_zero_exactly_where_a_component_is_off(fitted):
    model, Y = fitted[0].published(), fitted[1]
    np.testing.assert_array_equal(model.transform(Y) != 0, model.allocate(Y))
    whitened = clone(model).set_params(whiten=True).fit(Y).published()
    scores = whitened.transform(Y)
    mean_square = np.square(scores).sum(axis=0) / np.maximum((scores != 0).sum(axis=0), 1)
    used = mean_square > 0
    np.testing.assert_allclose(mean_square[used], 1.0, atol=1e-9)
    np.testing.assert_allclose(
        whitened.inverse_transform(scores), model.inverse_transform(model.transform(Y)), atol=1e-9
    )


def test_the_likelihood_and_the_inclusion_are_those_of_all_sets(fitted):
    model, Y = fitted[0].published(), fitted[1]
    W, mu, noise = model.components_.T, model.mean_, model.noise_variance_
    sets = [z[0] for z in oracle.every_binary_matrix(1, model.n_components_)]
    prior = [np.where(z, np.log(model.weights_), np.log1p(-model.weights_)).sum() for z in sets]
    for y in Y[:5]:
        rows = [
            low_rank.log_density(y, W[:, z], mu, noise, model.latent_variance_[z]) for z in sets
        ]
        log_joint = np.array(rows) + prior
        log_p = np.logaddexp.reduce(log_joint)
        assert model.score_samples(y[None])[0] == pytest.approx(log_p, abs=1e-8)
        share = np.exp(log_joint - log_p)
        wanted = share @ np.array(sets)
        np.testing.assert_allclose(model.inclusion_probabilities(y[None])[0], wanted, atol=1e-8)
        np.testing.assert_array_equal(model.allocate(y[None])[0], sets[share.argmax()])
        assert model.allocation_probability(y[None])[0] == pytest.approx(share.max(), abs=1e-8)


def test_the_covariance_of_samples_is_that_of_the_model(fitted):
    model, _, _ = fitted
    draws = model.sample(40_000, random_state=3)
    W, power = model.components_.T, model.weights_ * model.latent_variance_
    wanted = (W * power) @ W.T + model.noise_variance_ * np.eye(6)
    np.testing.assert_allclose(np.cov(draws.T), wanted, atol=0.05 * wanted.max())
    np.testing.assert_allclose(draws.mean(axis=0), model.mean_, atol=0.1)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_bits(model):
    Y, _ = planted()
    first, second = (model(4, **SHORT).fit(Y) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
    for name, draws in first.posterior_.items():
        np.testing.assert_array_equal(draws, second.posterior_[name])
    other = model(4, **(SHORT | {"random_state": 1})).fit(Y)
    assert not np.array_equal(
        first.posterior_["noise_variance"], other.posterior_["noise_variance"]
    )


@pytest.mark.parametrize("model", MODELS)
def test_chains_differ_and_arviz_gets_them(model):
    Y, _ = planted()
    data = model(4, **SHORT).fit(Y).to_arviz()
    noise = data.posterior["noise_variance"]
    assert noise.dims == ("chain", "draw")
    assert noise.shape == (2, 20)
    assert not np.array_equal(noise[0], noise[1])
    assert set(data.sample_stats) == {"lp", "lp_collapsed"}
    assert data.constant_data["Z_mean"].shape == (2, 150, 4)


@pytest.mark.parametrize("model", MODELS)
def test_a_number_for_alpha_keeps_it_there(model):
    Y, _ = planted()
    assert (model(4, alpha=0.7, **SHORT).fit(Y).posterior_["alpha"] == 0.7).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_fixed_mean_stays(model):
    Y, _ = planted()
    np.testing.assert_array_equal(model(4, mean="zero", **SHORT).fit(Y).mean_, 0.0)
    np.testing.assert_allclose(model(4, mean="sample", **SHORT).fit(Y).mean_, Y.mean(axis=0))


def test_a_fixed_latent_variance_stays():
    Y, _ = planted()
    model = NonparametricPPCA(4, latent_variance=2.0, **SHORT).fit(Y)
    assert (model.posterior_["latent_variance"] == 2.0).all()
    assert (model.latent_variance_ == 2.0).all()


def test_the_components_of_the_nonparametric_ppca_are_orthonormal():
    Y, _ = planted()
    for prior in ("ibp", "beta-bernoulli"):
        W = NonparametricPPCA(6, prior=prior, **SHORT).fit(Y).components_
        np.testing.assert_allclose(W @ W.T, np.eye(len(W)), atol=1e-10)


@pytest.mark.parametrize("model", MODELS)
def test_a_stopped_fit_keeps_what_it_has(model):
    Y, _ = planted()

    def stop_at(sweep):
        def callback(progress):
            if progress.iteration == sweep:
                raise StopIteration

        return callback

    early = model(4, **SHORT, callback=stop_at(5)).fit(Y)  # during burn-in
    assert early.stop_reason_ == "stopped by the callback"
    assert early.posterior_["noise_variance"].shape == (2, 1)
    late = model(4, **SHORT, callback=stop_at(22)).fit(Y)
    assert late.posterior_["noise_variance"].shape == (2, 7)
    assert late.n_iter_ == len(late.log_likelihoods_) == 22


@pytest.mark.parametrize("model", MODELS)
def test_the_callback_hears_of_every_sweep_and_its_errors_get_through(model):
    Y, _ = planted()
    heard = []
    model(4, **SHORT, callback=heard.append).fit(Y)
    assert [p.iteration for p in heard] == list(range(1, 36))
    assert {p.max_iter for p in heard} == {35}
    assert [p.stage for p in heard] == ["burn-in"] * 15 + ["draws"] * 20

    def fail(progress):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        model(4, **SHORT, callback=fail).fit(Y)


@pytest.mark.parametrize("model", MODELS)
def test_thinning_keeps_every_third_sweep(model):
    Y, _ = planted()
    every = model(4, **SHORT).fit(Y).posterior_
    third = model(4, **(SHORT | {"n_draws": 6, "thin": 3})).fit(Y).posterior_
    np.testing.assert_array_equal(third["noise_variance"], every["noise_variance"][:, 2:18:3])


@pytest.mark.parametrize("model", FACTORS)
def test_more_factors_than_can_be_enumerated_get_estimates_with_errors(model):
    rng = np.random.default_rng(0)
    K = MOST_COLUMNS + 4
    W, Z = rng.normal(size=(20, K)), rng.random((120, K)) < 0.4
    Y = (rng.normal(size=Z.shape) * Z) @ W.T + 0.3 * rng.normal(size=(120, 20))
    fit = model(K + 2, n_chains=1, burn_in=30, n_draws=10, n_paths=24, random_state=0).fit(Y)
    assert fit.n_components_ > MOST_COLUMNS
    averaged = fit.estimate_score_samples(Y[:3])
    words = "annealed importance sampling, 6 paths a row; average over 8 draws"
    assert averaged.method == words
    assert (averaged.error > 0).all()
    fit = fit.published()
    estimate = fit.estimate_score_samples(Y[:20])
    assert estimate.method == "annealed importance sampling, 24 paths a row"
    assert (estimate.error > 0).all()
    # no set can be likelier than all of them together
    assert (fit.allocation_probability(Y[:20]) <= 1).all()
    assert np.isfinite(estimate.log_likelihood).all()


def test_the_error_of_an_average_over_draws_is_honest(monkeypatch):
    rng = np.random.default_rng(0)
    W, Z = rng.normal(size=(20, 14)), rng.random((300, 14)) < 0.4
    Y = (rng.normal(size=Z.shape) * Z) @ W.T + 0.3 * rng.normal(size=(300, 20))
    fit = FiniteSparseFA(14, n_chains=1, burn_in=60, n_draws=60, random_state=0).fit(Y[:100])
    exact = fit.estimate_score_samples(Y[100:])
    assert exact.method == "exact, by enumeration of 16384 sets; average over 12 draws"
    monkeypatch.setattr(free_supports, "MOST_COLUMNS", 12)
    estimate = fit.estimate_score_samples(Y[100:])
    z = (estimate.log_likelihood - exact.log_likelihood) / estimate.error
    # 3.2 and 12 where all draws take the same random numbers
    assert 0.3 < np.sqrt(np.mean(z**2)) < 1.5
    assert np.abs(z).max() < 5


def test_orthonormal_columns_decide_independently(seed):
    rng = np.random.default_rng(seed)
    noise, tau2 = 0.4, 1.7
    W = np.linalg.qr(rng.normal(size=(6, 4)))[0]
    Y, weights = rng.normal(size=(5, 6)) * 2, rng.uniform(0.1, 0.9, 4)
    q = Question(Y @ W / noise, np.eye(4) / noise, tau2, weights)
    own = q._replace(orthonormal=True)
    by_column, by_set = own._replace(n_paths=0).summed(), q._replace(n_paths=4).summed()
    np.testing.assert_allclose(by_column.log_sum, by_set.log_sum, atol=1e-9)
    np.testing.assert_allclose(by_column.inclusion, by_set.inclusion, atol=1e-9)
    np.testing.assert_array_equal(own.best().Z, q.best().Z)
    np.testing.assert_allclose(own.best().value, q.best().value, atol=1e-9)
    Z = rng.random((5, 4)) < 0.5
    np.testing.assert_allclose(own.means(Z), q.means(Z), atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"max_components": 0}, "max_components must be a whole number of at least 1; got 0."),
        ({"alpha": -1.0}, "alpha must be 'infer' or a number above 0; got -1.0."),
        ({"thin": 0}, "thin must be a whole number of at least 1; got 0."),
        ({"mean": "median"}, "mean must be 'learned', 'sample' or 'zero'; got 'median'."),
    ],
)
@pytest.mark.parametrize("model", MODELS)
def test_a_refusal_says_what_was_given(model, parameters, words):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the words are compared below
        model(**parameters).fit(planted()[0])
    assert str(caught.value) == words


@pytest.mark.parametrize("model", MODELS)
def test_constant_data_are_refused(model):
    with pytest.raises(ValueError, match="X must vary"):
        model(2).fit(np.ones((10, 3)))
