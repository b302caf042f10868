"""AdaptivePPCA(inference="gibbs"): contract, agreement with EM, what the paper's variant misses."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from tests.models.contract import refused

SHORT = {"n_chains": 2, "burn_in": 10, "n_draws": 20, "random_state": 0}


def planted(seed=0, n_rows=200, n_features=8, n_components=4, n_active=2):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(n_features, n_components)))[0]
    Z = np.argsort(rng.random((n_rows, n_components)), axis=1) < n_active
    X = 2 * rng.normal(size=Z.shape) * Z
    return 3.0 + X @ W.T + 0.5 * rng.normal(size=(n_rows, n_features)), W


def gibbs(**parameters):
    return AdaptivePPCA(4, 2, inference="gibbs", **(SHORT | parameters))


@pytest.mark.thorough  # tests/models/base/test_estimators has the class in every run
@parametrize_with_checks(
    [AdaptivePPCA(2, 1, inference="gibbs", n_chains=1, burn_in=2, n_draws=3, max_iter=20)],
    expected_failed_checks=refused,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def test_weights_are_refused():
    Y, _ = planted()
    with pytest.raises(ValueError, match="sample_weight cannot be used with inference='gibbs'"):
        gibbs().fit(Y, sample_weight=np.arange(len(Y)))


@pytest.mark.thorough
def test_the_posterior_lies_around_the_fit_by_em():
    Y, W = planted(n_rows=2000)
    em = AdaptivePPCA(4, 2, random_state=0).fit(Y)
    draws = gibbs(n_draws=150).fit(Y).posterior_
    for name, fitted in (
        ("noise_variance", em.noise_variance_),
        ("latent_variance", em.latent_variance_[0]),
    ):
        chain = draws[name][..., 0] if draws[name].ndim == 3 else draws[name]
        # a posterior standard deviation is all that may lie between the mean and the maximum
        assert abs(chain.mean() - fitted) < 2 * chain.std(), name
    np.testing.assert_allclose(draws["mean"].mean(axis=(0, 1)), em.mean_, atol=0.15)
    # the maximum of the likelihood is above every draw, but not by much: K D / 2 nats or so
    gap = em.log_likelihoods_[-1] - draws["log_likelihood"]
    assert gap.min() > 0
    assert gap.mean() < 60
    cosines = np.abs(draws["components"][:, -1] @ W).max(axis=1)
    assert (cosines > 0.98).all()


def test_attributes_are_those_of_the_contract():
    Y, _ = planted()
    model = gibbs().fit(Y)
    assert model.posterior_["components"].shape == (2, 20, 4, 8)
    assert model.posterior_["Z_mean"].shape == model.posterior_["X_mean"].shape == (2, 200, 4)
    np.testing.assert_allclose(model.posterior_["Z_mean"].sum(axis=2), 2.0)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-9)
    assert model.log_likelihoods_.shape == (model.n_iter_,) == (30,)
    assert model.stop_reason_ == "made all 30 sweeps of every chain"
    # the published draw is one of the draws, and its density is its log-likelihood
    assert model.noise_variance_ in model.posterior_["noise_variance"]
    place = np.unravel_index(model.posterior_["log_posterior"].argmax(), (2, 20))
    wanted = model.posterior_["log_likelihood"][place]
    assert model.published().score_samples(Y).sum() == pytest.approx(wanted, abs=1e-6)
    assert model.to_arviz().posterior["latent_variance"].shape == (2, 20, 4)


def test_the_posterior_exists_only_after_sampling():
    model = gibbs().fit(planted()[0]).set_params(inference="em").fit(planted()[0])
    assert not hasattr(model, "posterior_")
    with pytest.raises(ValueError, match="not fitted"):
        model.to_arviz()


def test_the_same_seed_gives_the_same_bits_and_chains_differ():
    Y, _ = planted()
    first, second = gibbs().fit(Y).posterior_, gibbs().fit(Y).posterior_
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])
    assert not np.array_equal(first["noise_variance"][0], first["noise_variance"][1])


@pytest.mark.parametrize("z_update", ["block", "swap"])
def test_both_ways_to_draw_subsets_agree(z_update):
    Y, _ = planted(n_rows=400)
    model = gibbs(z_update=z_update, n_draws=150, chain_starts="init").fit(Y)
    probability = AdaptivePPCA(4, 2, random_state=0).fit(Y).inclusion_probabilities(Y)
    drawn = model.posterior_["Z_mean"].mean(axis=0)
    # columns of the chains are in the order of their start; compare sorted rows
    difference = np.sort(drawn, axis=1) - np.sort(probability, axis=1)
    assert np.abs(difference).mean() < 0.05


@pytest.mark.thorough
def test_map_within_gibbs_is_too_sure():
    Y, _ = planted(n_rows=400)
    together = {"chain_starts": "init"}
    sampled = gibbs(n_draws=200, **together).fit(Y).posterior_["log_likelihood"]
    for w_update in ("polar", "pymanopt"):
        n_draws = 200 if w_update == "polar" else 10
        paper = gibbs(n_draws=n_draws, w_update=w_update, **together).fit(Y)
        # W at its maximum keeps the likelihood nats above where the posterior has its mass
        assert paper.posterior_["log_likelihood"].mean() > sampled.mean() + 5


@pytest.mark.parametrize("latent_variance", ["shared", "component", 4.0])
def test_latent_variances_are_drawn_as_asked(latent_variance):
    Y, _ = planted()
    draws = gibbs(latent_variance=latent_variance).fit(Y).posterior_["latent_variance"]
    equal = (draws == draws[..., :1]).all()
    assert equal == (latent_variance != "component")
    assert (np.ptp(draws[..., 0]) == 0) == (latent_variance == 4.0)


def test_means_are_drawn_or_kept():
    Y, _ = planted()
    np.testing.assert_array_equal(gibbs(mean="zero").fit(Y).mean_, 0.0)
    np.testing.assert_allclose(gibbs(mean="sample").fit(Y).mean_, Y.mean(axis=0))
    assert np.ptp(gibbs().fit(Y).posterior_["mean"][..., 0]) > 0


def test_all_components_active_is_sampled_too():
    Y, _ = planted()
    model = AdaptivePPCA(3, 3, inference="gibbs", **SHORT).fit(Y)
    assert model.allocate(Y).all()
    best = AdaptivePPCA(3, 3).fit(Y).score(Y)
    assert best - 0.3 < model.published().score(Y) <= best
    assert best - 0.3 < model.score(Y) < best + 0.1  # on average over draws the rows may gain


def test_as_many_components_as_features_are_sampled_too():
    Y, _ = planted(n_features=4)
    draws = gibbs(n_draws=60).fit(Y).posterior_["components"][0]
    turned = np.abs(np.einsum("skd,kd->sk", draws, draws[0]))
    assert turned.min() < 0.9999  # columns alone would only flip signs


def test_chains_start_where_they_are_asked_to():
    Y, _ = planted()

    def overlap(**parameters):
        draws = gibbs(burn_in=0, n_draws=1, **parameters).fit(Y).posterior_["components"]
        return np.abs(np.einsum("kd,kd->k", draws[0, 0], draws[1, 0])).min()

    assert overlap(chain_starts="init") > 0.95
    assert overlap(chain_starts="init", init="random") < 0.95
    assert overlap() < 0.95


@pytest.mark.thorough
def test_chains_from_one_start_agree_where_others_find_other_peaks():
    Y = load_digits().data[:200] / 4
    long = {"n_chains": 4, "burn_in": 60, "n_draws": 60, "random_state": 2}
    together = (
        gibbs(chain_starts="init", init="quartimax", **long).fit(Y).posterior_["log_likelihood"]
    )
    apart = gibbs(**long).fit(Y).posterior_["log_likelihood"].mean(axis=1)
    spread = together.std(axis=1).max()
    assert np.ptp(together.mean(axis=1)) < spread
    assert np.ptp(apart) > 4 * spread
    assert apart.max() > together.mean(axis=1).max() + spread / 2


def test_single_precision_stays_single():
    Y, _ = planted()
    model = gibbs().fit(Y.astype(np.float32))
    assert model.components_.dtype == model.transform(Y.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(("stage", "kept"), [("fit", 1), ("burn-in", 1), ("draws", 1)])
def test_a_stop_at_any_stage_keeps_what_there_is(stage, kept):
    Y, _ = planted()

    def callback(progress):
        if progress.stage == stage:
            raise StopIteration

    model = gibbs(callback=callback).fit(Y)
    assert model.stop_reason_ == "stopped by the callback"
    assert model.posterior_["noise_variance"].shape == (2, kept)


def test_the_callback_hears_of_the_start_and_of_every_sweep():
    Y, _ = planted()
    heard = []
    gibbs(callback=heard.append).fit(Y)
    stages = [p.stage for p in heard]
    assert stages[-30:] == ["burn-in"] * 10 + ["draws"] * 20
    assert "fit" in stages[:-30]


def test_a_stop_in_one_of_several_starts_is_the_last_that_is_heard():
    Y, _ = planted()
    heard = []

    def stop(progress):
        heard.append(progress.stage)
        if progress.stage == "chain 2 of 3: fit":
            raise StopIteration

    model = gibbs(init="random", n_chains=3, callback=stop, chain_starts="init").fit(Y)
    assert heard[0].startswith("chain 1 of 3: screening 1")
    assert heard.count("chain 2 of 3: fit") == 1
    assert heard[-1] == "chain 2 of 3: fit"
    assert model.stop_reason_ == "stopped by the callback"
    assert model.posterior_["noise_variance"].shape == (3, 1)


@pytest.mark.parametrize("model", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_a_fit_by_em_forgets_the_draws_of_the_fit_before(model):
    X = np.random.default_rng(0).normal(size=(60, 5))
    estimator = model(3, 1, inference="gibbs", **SHORT).fit(X)
    assert len(estimator.posterior_["noise_variance"]) == 2
    estimator.set_params(inference="em").fit(X)
    assert not hasattr(estimator, "posterior_")
    with pytest.raises(NotFittedError):
        estimator.to_arviz()
