"""Tests of diagnostics: Raftery and Lewis' published values, messages, aligned draws."""

import numpy as np
import pytest
from scipy import signal

from appca import AdaptivePPCA
from appca.analysis.components import identification, summarise
from appca.analysis.diagnostics import (
    INDEPENDENT_DRAWS,
    Diagnosis,
    Requirement,
    diagnose,
    failures,
    invariants,
    of_chains,
    of_climb,
    of_draws,
    raftery_lewis,
    required,
    starts_apart,
    thinning,
    worst,
)
from appca.models.chains import load_arviz, netcdf_bytes
from appca.runs.run import RunConfig


def test_burn_in_and_length_agree_with_the_paper_and_a_calculation_by_hand():
    assert INDEPENDENT_DRAWS == 3746  # Raftery and Lewis (1992), q = 0.025, r = 0.005, s = 0.95
    # alpha = 0.01, beta = 0.39: state 1 has probability 0.01 / 0.4 = 0.025.
    # burn-in: log(0.001 * 0.4 / 0.39) / log(0.6) = 6.8824 / 0.51083 = 13.47
    # length: 0.01 * 0.39 * 1.6 / 0.064 * (1.959964 / 0.005)^2 = 0.0975 * 153658.4 = 14981.7
    assert required(0.01, 0.39) == (14, 14982, pytest.approx(14996 / 3746))
    assert required(0.01, 0.39, thin=3)[:2] == (42, 44946)
    assert required(0.025, 0.975) == (0, 3746, pytest.approx(1.0))


def two_state_chain(rng, alpha, beta, n):
    """Simulate from stationarity: runs in each state are geometric."""
    runs = np.stack([rng.geometric(alpha, n), rng.geometric(beta, n)], axis=1)
    if rng.random() < alpha / (alpha + beta):
        runs = runs[:, ::-1]
        return np.repeat(np.tile([1, 0], n), runs.ravel())[:n].astype(bool)
    return np.repeat(np.tile([0, 1], n), runs.ravel())[:n].astype(bool)


def test_a_chain_of_the_required_length_reaches_the_goal(seed):
    rng, n = np.random.default_rng(seed), required(0.01, 0.39).total
    shares = [two_state_chain(rng, 0.01, 0.39, n).mean() for _ in range(200)]
    within = np.mean(np.abs(np.array(shares) - 0.025) < 0.005)
    assert within == pytest.approx(0.95, abs=0.06)  # 200 trials: standard error 0.015


def test_rates_are_recovered_without_thinning_and_a_longer_memory_asks_for_more(seed):
    rng = np.random.default_rng(seed)
    z = two_state_chain(rng, 0.05, 0.3, 40_000)
    assert thinning(z) == 1
    total = required(0.3, 0.05).total
    assert raftery_lewis((~z).astype(float)).total == pytest.approx(total, rel=0.15)
    held = np.repeat(two_state_chain(rng, 0.1, 0.3, 8000), 3)  # every state stays for three steps
    assert thinning(held) > 1
    noise = rng.normal(size=20_000)
    slow = signal.lfilter([np.sqrt(1 - 0.95**2)], [1, -0.95], noise)
    assert raftery_lewis(noise).dependence < 1.3
    assert raftery_lewis(slow).dependence > 5
    assert raftery_lewis(np.repeat([0.0, 1.0], 500)).total > 1000, "a chain stuck in a step"


def posterior(rng, n_chains=4, n_draws=500, shift=0.0, memory=0.0):
    """Chains of a variance; `shift` sets the last one apart, `memory` makes all of them slow."""
    noise = rng.normal(size=(n_chains, n_draws))
    for i in range(1, n_draws):
        noise[:, i] = memory * noise[:, i - 1] + np.sqrt(1 - memory**2) * noise[:, i]
    noise[-1] += shift
    return {
        "noise_variance": 3 + noise / 10,
        "alpha": np.ones((n_chains, n_draws)),
        "occupancy": rng.integers(5, 9, (n_chains, n_draws, 2)),
        "shared": rng.integers(0, 3, (n_chains, n_draws, 6)),
    }


@pytest.mark.parametrize(
    ("n_chains", "apart", "level", "last"),
    [
        (4, None, "good", "Enough draws"),
        (4, True, "good", "Started apart"),
        (4, False, "doubtful", "One start"),
        (1, None, "doubtful", "One chain"),
    ],
)
def test_chains_that_agree_are_trusted_as_far_as_they_were_asked(
    seed, n_chains, apart, level, last
):
    diagnoses = diagnose(posterior(np.random.default_rng(seed), n_chains))
    assert [d.name for d in diagnoses] == [
        "noise variance",
        "number of rows with the component ranked 1 by use",
        "number of rows with the component ranked 2 by use",
        "mean number of components that two rows share",
    ]  # alpha never moves
    if n_chains > 1:
        assert all(d.r_hat < 1.02 and d.ess_bulk > 1000 for d in diagnoses)
    said = of_chains([d._replace(r_hat=1.0) for d in diagnoses], n_chains, apart=apart)
    labels = [check.label for check in said]
    assert (labels[:2], labels[-1]) == (["Chains agree", "Enough draws"], last)
    assert worst(said) == level
    for parameters, starts in (({}, False), ({"init": "random"}, True)):
        assert starts_apart("isFA", parameters) == starts
    assert starts_apart("NPPCA", {})
    assert starts_apart(
        "aPPCA", RunConfig("d" * 64, {}, "aPPCA", {"inference": "gibbs"}).parameters
    )


def test_chains_apart_slow_short_or_stuck_are_named(seed):
    def checks(**how):
        return of_chains(diagnose(posterior(np.random.default_rng(seed), **how)), 4)

    for how, label, said in (
        ({"shift": 2.0}, "Chains disagree", "The chains disagree about the noise variance"),
        ({"n_draws": 3}, "Too few draws", "Raise the number of draws."),
    ):
        found = checks(**how)
        assert (found[0].label, worst(found)) == (label, "bad")
        assert any(check.why.startswith(said) for check in found)
    slow = checks(memory=0.98)
    assert worst(slow) != "good"
    assert any("noise variance" in check.why for check in slow)
    (found,) = diagnose({"noise_variance": np.tile([[1.0], [2.0]], (1, 100))})
    assert (found.raftery_lewis, worst(of_chains([found], 2))) == (None, "bad")
    (halves,) = diagnose({"n_components": np.tile([4.0, 5.0], (2, 100))})
    assert halves.r_hat == pytest.approx(1.0, abs=0.01), "two values half of the time each"
    each = np.random.default_rng(seed).random((2, 20, 3))
    names = list(invariants({"latent_variance": each}))
    assert names == ["smallest factor variance", "largest factor variance"]
    shared = np.broadcast_to(each[..., :1], each.shape)
    assert list(invariants({"latent_variance": shared})) == ["factor variance"]


def test_a_bound_and_a_chain_on_a_lower_peak_are_found(seed):
    density = np.random.default_rng(seed).normal(size=(3, 50)) - np.array([[0.0], [40.0], [1.0]])
    numbers = np.full((3, 50), 6)
    rare = {"occupancy": np.tile([30, 20, 5, 4, 1, 1], (3, 50, 1)), "Z_mean": np.zeros((3, 100, 6))}
    drawn = {"n_components": numbers, "log_posterior": density} | rare
    bound, lower = of_draws(drawn, 6)
    assert (bound.level, bound.label) == ("doubtful", "All 6 used")
    assert (lower.level, lower.label) == ("doubtful", "2 of 3 chains used")
    assert lower.why.startswith("Averages use 2 of 3 chains: chain 2 had")
    drawn["occupancy"][:, :10, 3] = 5
    found, every = of_draws(drawn | {"log_posterior": density[::2]}, 7)
    some = "most often 3, between 3 and 4 in 95% of the draws."
    assert found.why == f"Components used by at least 5% of rows: {some}"
    assert (found.level, found.label) == ("good", "K found")
    assert (every.level, every.label) == ("good", "All 2 chains used")
    assert len(of_draws(drawn | {"log_posterior": density[:1]}, 7)) == 1


@pytest.mark.parametrize(
    ("change", "chains", "burn_in", "short"),
    [
        ({}, 4, np.inf, set()),
        ({}, 5, np.inf, {"ess_bulk", "ess_tail"}),
        ({}, 4, 99, {"burn_in"}),
        ({"r_hat": 1.011}, 4, np.inf, {"r_hat"}),
        ({"r_hat": np.nan, "raftery_lewis": None}, 4, 0, {"r_hat"}),
        ({"raftery_lewis": Requirement(100, 9, 5.1)}, 4, 100, {"dependence"}),
    ],
)
def test_marks_name_what_falls_short(change, chains, burn_in, short):
    fine = Diagnosis("alpha", 1.0, 0.1, 1.004, 450.0, 410.0, Requirement(100, 9, 2.0))
    assert failures(fine._replace(**change), chains, burn_in=burn_in) == short


@pytest.mark.parametrize(
    ("reason", "at_floor", "level", "said"),
    [
        ("converged: the last 10 iterations gained", None, "good", "Converged in 40 iterations"),
        ("closed form", None, "good", "Solved exactly"),
        ("reached max_iter=40 before it converged", None, "bad", "Not converged"),
        ("stopped by the callback", None, "doubtful", "Stopped early"),
        ("the noise variance reached its floor, 1e-8", None, "doubtful", "Noise at its floor"),
        ("something new", None, "doubtful", "something new"),
        ("converged", 0.04, "good", "hardly affects"),
        ("converged", 0.3, "doubtful", "30% of the features is at its floor"),
    ],
)
def test_a_fit_by_em_is_judged_by_why_it_ended(reason, at_floor, level, said):
    given = () if at_floor is None else (at_floor,)
    found = of_climb(range(40), reason, *given)
    assert worst(found) == level
    assert said in " ".join(f"{check.label} {check.why}" for check in found)


def test_the_stop_reasons_judged_are_those_the_estimators_give():
    """A reason that is worded anew must not fall through to "not judged here"."""
    Y = np.random.default_rng(1).normal(size=(60, 5))

    def ended(**settings):
        model = AdaptivePPCA(init="pca", random_state=0, **settings).fit(Y)
        return of_climb(model.log_likelihoods_, model.stop_reason_)[0]

    assert ended(n_components=3, n_active=1).label.startswith("Converged in")
    assert ended(n_components=2, n_active=2).label == "Solved exactly"
    assert ended(n_components=3, n_active=1, max_iter=3, tol=0.0).label == "Not converged"

    def halt(progress):
        if progress.stage == "fit" and progress.iteration == 2:
            raise StopIteration

    assert ended(n_components=3, n_active=1, callback=halt, tol=0.0).label == "Stopped early"


def shuffled(rng, W, noise):
    """Draws (2, 50, K, D) of W in any order and sign."""
    K, D = W.shape
    order = rng.permuted(np.tile(np.arange(K), (2, 50, 1)), axis=2)
    sign = rng.choice([-1.0, 1.0], (2, 50, K))
    return W[order] * sign[..., None] + noise * rng.normal(size=(2, 50, K, D))


def test_a_summary_of_shuffled_draws_has_their_mean_and_spread(seed):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(9, 4)))[0].T
    found = summarise(shuffled(rng, W, 0.05), W)
    np.testing.assert_allclose(found.mean, W, atol=0.03)
    np.testing.assert_allclose(found.sd, 0.05, rtol=0.45)
    np.testing.assert_allclose(found.sd.mean(), 0.05, rtol=0.1)
    # noise e at a right angle to a unit vector: cos = 1 / sqrt(1 + |e|^2), D - 1 = 8 directions
    np.testing.assert_allclose(found.cosine, 1 / np.sqrt(1 + 8 * 0.05**2), atol=0.01)
    np.testing.assert_array_equal(found.present, 1.0)
    assert {identification(c) for c in found.cosine} == {"identified"}


def test_a_component_that_draws_lack_is_averaged_over_the_others(seed):
    rng, W = np.random.default_rng(seed), np.eye(8)[:3]
    draws = shuffled(rng, W, 0.02)
    where = np.abs(draws[..., 1]).argmax(axis=2)  # of the second component in each draw
    lacking = draws[:, 10:]
    np.put_along_axis(lacking, where[:, 10:, None, None], 0.0, axis=2)  # only every fifth has it
    found = summarise(draws, W)
    np.testing.assert_allclose(found.present, [1.0, 0.2, 1.0])
    np.testing.assert_allclose(found.mean, W, atol=0.05)  # zeros do not enter the mean
    words = [identification(*pair) for pair in zip(found.cosine, found.present, strict=True)]
    assert words == ["identified", "in few draws", "identified"]


@pytest.mark.parametrize("n_kept", [30, 6])
def test_draws_come_back_from_the_file_and_thinned_components_have_an_axis(seed, n_kept, tmp_path):
    rng, file = np.random.default_rng(seed), tmp_path / "draws.nc"
    scalars = ("log_likelihood", "log_posterior", "log_joint", "noise_variance")
    draws = {name: rng.normal(size=(2, 30)) for name in scalars}
    draws |= {"components": rng.normal(size=(2, n_kept, 3, 5)).astype(np.float32)}
    draws |= {"mean": rng.normal(size=(2, 30, 5)), "Z_mean": rng.random((2, 7, 3))}
    file.write_bytes(netcdf_bytes(draws | {"X_mean": draws["Z_mean"]}))
    data, thinned = load_arviz().from_netcdf(str(file)), n_kept == 6
    group = data.constant_data if thinned else data.posterior
    axis = "thinned_draw" if thinned else "draw"
    assert ("components" in data.posterior) != thinned
    assert group["components"].dims == ("chain", axis, "component", "feature")
    names = {"mean": data.posterior, "noise_variance": data.posterior, "log_joint": data.posterior}
    names |= {"components": group, "Z_mean": data.constant_data}
    for name, place in names.items():
        np.testing.assert_array_equal(place[name].values, draws[name])
    np.testing.assert_array_equal(data.sample_stats["lp"].values, draws["log_posterior"])
