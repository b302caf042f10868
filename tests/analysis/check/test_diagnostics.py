"""Diagnoses of chains, the verdict in words, and the alignment of draws."""

import numpy as np
import pytest

from appca import AdaptivePPCA, FiniteSparseFA
from appca.analysis.components import identification, summarise
from appca.analysis.diagnostics import (
    Diagnosis,
    diagnose,
    failures,
    invariants,
    of_chains,
    of_climb,
    of_draws,
    of_rows,
    required,
    starts_apart,
    worst,
)
from appca.models.draws import match
from appca.runs.run import RunConfig


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


def test_chains_that_agree_are_trusted(seed):
    found = diagnose(posterior(np.random.default_rng(seed)))
    names = [d.name for d in found]
    assert names == [
        "noise variance",
        "rows of the most used component",
        "rows of the 2nd most used component",
        "components shared by pairs of rows",
    ]  # alpha never moves
    assert all(d.r_hat < 1.02 for d in found)
    assert all(d.ess_bulk > 1000 for d in found)
    said = of_chains([d._replace(r_hat=min(d.r_hat, 1.009)) for d in found], 4)
    assert [check.label for check in said] == ["Chains agree", "Enough draws"]
    assert worst(said) == "good"


def test_a_chain_apart_is_named(seed):
    said, *_ = of_chains(diagnose(posterior(np.random.default_rng(seed), shift=2.0)), 4)
    assert (said.level, said.label) == ("bad", "Chains disagree")
    assert said.why.startswith("The chains disagree about the noise variance")


def test_slow_chains_are_doubtful_or_worse(seed):
    said = of_chains(diagnose(posterior(np.random.default_rng(seed), memory=0.98)), 4)
    assert worst(said) in ("doubtful", "bad")
    assert any("noise variance" in check.why for check in said)


def test_one_chain_alone_is_never_good(seed):
    found = diagnose(posterior(np.random.default_rng(seed), n_chains=1))
    said = of_chains([d._replace(r_hat=1.0) for d in found], 1)
    assert worst(said) == "doubtful"
    assert "One chain" in [check.label for check in said]


def test_agreement_says_which_question_was_asked(seed):
    found = [d._replace(r_hat=1.0) for d in diagnose(posterior(np.random.default_rng(seed)))]
    said = of_chains(found, 4, apart=True)
    assert (worst(said), said[-1].label) == ("good", "Started apart")
    said = of_chains(found, 4, apart=False)
    assert (worst(said), said[-1].label) == ("doubtful", "One start")


def test_runs_say_where_their_chains_started():
    today = RunConfig("d" * 64, {}, "aPPCA", {"inference": "gibbs"})
    before = RunConfig.from_dict(
        {"dataset": "d" * 64, "preprocessing": {}, "model": "isFA", "parameters": {}}
    )
    assert starts_apart("aPPCA", today.parameters)
    assert not starts_apart("isFA", before.parameters)
    assert starts_apart("isFA", before.parameters | {"init": "random"})
    assert starts_apart("NPPCA", {})


def test_a_bound_and_a_chain_on_a_lower_peak_are_found(seed):
    rng = np.random.default_rng(seed)
    density = rng.normal(size=(3, 50)) - np.array([[0.0], [40.0], [1.0]])
    numbers = np.full((3, 50), 6)
    rare = {"occupancy": np.tile([30, 20, 5, 4, 1, 1], (3, 50, 1)), "Z_mean": np.zeros((3, 100, 6))}
    drawn = {"n_components": numbers, "log_posterior": density} | rare
    bound, lower = of_draws(drawn, 6)
    assert (bound.level, bound.label) == ("doubtful", "All 6 used")
    assert (lower.level, lower.label) == ("doubtful", "2 of 3 chains count")
    assert lower.why.startswith("Averages use 2 of 3 chains: chain 2 had")
    found, every = of_draws(drawn | {"log_posterior": density[::2]}, 7)
    assert found.why == "3 components are used by at least 5% of rows, in most draws."
    assert (found.level, found.label) == ("good", "K found")
    assert (every.level, every.label) == ("good", "All 2 chains count")
    assert len(of_draws(drawn | {"log_posterior": density[:1]}, 7)) == 1


def test_unsure_choices_and_repeated_rows_are_told():
    sure, whole = of_rows(np.full(10, 0.9), 0)
    assert (sure.level, whole.level) == ("good", "good")
    unsure, repeated = of_rows(np.array([0.4, 0.9]), 3)
    assert unsure.why.startswith("50% of rows")
    assert (unsure.level, repeated.label) == ("doubtful", "3 repeated")


def test_too_few_draws_are_said_to_be_too_few(seed):
    short = posterior(np.random.default_rng(seed), n_draws=3)
    (said,) = of_chains(diagnose(short), 4)
    assert (said.level, said.label) == ("bad", "Too few draws")


def test_chains_that_do_not_move_at_different_places_are_not_trusted():
    stuck = {"noise_variance": np.tile([[1.0], [2.0]], (1, 100))}
    (found,) = diagnose(stuck)
    assert found.raftery_lewis is None
    assert worst(of_chains([found], 2)) == "bad"


def test_two_values_half_of_the_time_each_can_be_judged():
    halves = np.tile([4.0, 5.0], (2, 100))
    (found,) = diagnose({"n_components": halves})
    assert found.r_hat == pytest.approx(1.0, abs=0.01)


def test_a_sampled_model_can_be_diagnosed():
    rng = np.random.default_rng(0)
    Y = (rng.normal(size=(80, 2)) * (rng.random((80, 2)) < 0.5)) @ rng.normal(size=(2, 5)) * 2
    model = FiniteSparseFA(3, burn_in=50, n_draws=100, random_state=0)
    sampled = model.fit(Y + 0.3 * rng.normal(size=Y.shape)).posterior_
    names = set(invariants(sampled))
    assert {"joint log-density", "collapsed log-likelihood", "loading variance", "alpha"} <= names
    found = diagnose(sampled)
    assert all(d.raftery_lewis.least == 3746 for d in found if d.raftery_lewis)
    assert not any(d.raftery_lewis.enough for d in found if d.raftery_lewis)


def test_an_unused_component_matches_nothing():
    reference = np.eye(3)[:2]
    _, order, sign, cosine = match(reference, np.array([[0, 0, 0], [0, -2.0, 0], [1.0, 0, 0]]))
    np.testing.assert_array_equal(order, [2, 1])
    np.testing.assert_array_equal(sign, [1.0, -1.0])
    np.testing.assert_allclose(cosine, 1.0)


def test_a_variance_that_components_share_is_one_quantity(seed):
    each = np.random.default_rng(seed).random((2, 20, 3))
    names = list(invariants({"latent_variance": each}))
    assert names == ["smallest factor variance", "largest factor variance"]
    shared = np.broadcast_to(each[..., :1], each.shape)
    assert list(invariants({"latent_variance": shared})) == ["factor variance"]
    ranks = list(invariants({"occupancy": np.ones((1, 2, 23))}))
    assert [ranks[k].split()[3] for k in (1, 2, 3, 10, 20, 21, 22)] == [
        *("2nd", "3rd", "4th", "11th", "21st", "22nd", "23rd"),
    ]


def test_marks_name_what_falls_short():
    asked = required(0.05, 0.05, 500)
    fine = Diagnosis("alpha", 1.0, 0.1, 1.004, 450.0, 410.0, asked._replace(dependence=2.0))
    assert failures(fine, 4) == set()
    assert failures(fine, 5) == {"ess_bulk", "ess_tail"}
    assert failures(fine, 4, burn_in=asked.burn_in - 1) == {"burn_in"}
    assert failures(fine._replace(r_hat=1.011), 4) == {"r_hat"}
    assert failures(fine._replace(r_hat=np.nan), 4) == {"r_hat"}
    assert failures(fine._replace(raftery_lewis=asked._replace(dependence=5.1)), 4) == {
        "dependence"
    }


def climb(reason, n=40, gain=1e-6, tol=1e-4, n_rows=50):
    """What is said of a curve whose last ten passes gain `gain` nats per row."""
    values = np.linspace(0.0, gain * n_rows * (n - 1) / 10, n)
    return of_climb(values, n_rows, reason, tol)


@pytest.mark.parametrize(
    ("reason", "level", "said"),
    [
        (
            "converged: the last 10 iterations gained less than tol",
            "good",
            "gained 0.000001 nats per row",
        ),
        ("closed form, because n_active equals n_components", "good", "Solved exactly"),
        ("reached max_iter=40 before it converged", "bad", "Not converged"),
        ("stopped by the callback", "doubtful", "Stopped early"),
        ("the noise variance reached its floor, 1e-8 of the ...", "doubtful", "Noise at its floor"),
        ("something new", "doubtful", "something new"),
    ],
)
def test_a_fit_by_em_is_judged_by_why_it_ended(reason, level, said):
    found = climb(reason)
    assert worst(found) == level
    assert said in f"{found[0].label} {found[0].why}"


def test_the_gain_of_the_last_ten_passes_is_by_the_row():
    values = np.concatenate([[-1e9], -100.0 + 3.0 * np.arange(11)])
    assert "gained 6 nats per row." in of_climb(values, 5, "converged", None)[0].why
    short = of_climb(values[:10], 5, "stopped by the callback", 1e-4)
    assert "too few to see" in short[0].why


def test_the_stop_reasons_judged_are_those_the_estimators_give():
    """A reason that is worded anew must not fall through to "not judged here"."""
    Y = np.random.default_rng(1).normal(size=(60, 5))

    def ended(**settings):
        model = AdaptivePPCA(random_state=0, **settings).fit(Y)
        tol = settings.get("tol", 1e-4)
        return of_climb(model.log_likelihoods_, 60, model.stop_reason_, tol)[0]

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


def test_a_summary_is_of_what_the_view_shows(seed):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.normal(size=(6, 3)))[0].T
    draws, turn = shuffled(rng, W, 0.1), rng.normal(size=(6, 11))
    seen = summarise(draws, W, lambda A: A @ turn)
    found = [match(W, draw) for chain in draws for draw in chain]
    own = draws.reshape(-1, *draws.shape[2:])
    aligned = np.array(
        [
            draw[order] * sign[:, None] @ turn
            for draw, (_, order, sign, _) in zip(own, found, strict=True)
        ]
    )
    np.testing.assert_allclose(seen.mean, aligned.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(seen.sd, aligned.std(axis=0), atol=1e-12)


def test_a_component_that_draws_lack_is_averaged_over_the_others(seed):
    rng = np.random.default_rng(seed)
    W = np.eye(8)[:3]
    draws = shuffled(rng, W, 0.02)
    where = np.abs(draws[..., 1]).argmax(axis=2)  # of the second component in each draw
    lacking = draws[:, 10:]
    np.put_along_axis(lacking, where[:, 10:, None, None], 0.0, axis=2)  # only every fifth has it
    found = summarise(draws, W)
    np.testing.assert_allclose(found.present, [1.0, 0.2, 1.0])
    np.testing.assert_allclose(found.mean, W, atol=0.05)  # zeros do not enter the mean
    words = [identification(*pair) for pair in zip(found.cosine, found.present, strict=True)]
    assert words == ["identified", "in few draws", "identified"]


def test_a_component_that_chains_dispute_is_not_identified(seed):
    rng = np.random.default_rng(seed)
    draws = shuffled(rng, np.eye(8)[:3], 0.02)
    draws[1, ..., [2, 7]] = draws[1, ..., [7, 2]]  # the other chain has another direction
    found = summarise(draws, np.eye(8)[:3])
    assert [identification(c) for c in found.cosine] == ["identified"] * 2 + ["not identified"]
    assert found.by_chain[0, 2] > 0.99
    assert found.by_chain[1, 2] < 0.1


def test_very_many_draws_are_selected_evenly(seed):
    rng = np.random.default_rng(seed)
    draws = np.tile(np.eye(4)[:2], (2, 3000, 1, 1)) * (1 + np.arange(3000))[:, None, None]
    found = summarise(draws + 1e-9 * rng.normal(size=draws.shape), np.eye(4)[:2])
    assert found.mean[0, 0] == pytest.approx(1500, rel=0.01)


def test_a_summary_refuses_axes_that_do_not_fit():
    with pytest.raises(ValueError, match="must have the axes"):
        summarise(np.zeros((2, 3, 4, 5)), np.zeros((4, 6)))
