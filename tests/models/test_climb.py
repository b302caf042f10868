"""Tests of multi-start EM: starts, stopping rules, samples, and choice of the best run."""

import math
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from sklearn.datasets import load_digits

import appca
from appca import AdaptiveFactorAnalysis, AdaptivePPCA
from appca.models import climb, stiefel
from appca.models import rows as blocks_of_rows
from appca.models.climb import EMControl
from appca.models.em import EMMap, EMSettings, expect, floor_of
from appca.models.loop import STOPPED, EMResult, Progress, iterate, nesterov, watcher
from appca.models.rows import about, centre_of, project
from tests.models.synthetic import matched_cosines, planted, principal_cosines

NAMES = ["quartimax", "annealed PCA", "PCA", "annealed quartimax"]


def settings(rows, k, n_active, *, learn_mean=True):
    return EMSettings(k, n_active, "shared", learn_mean, False, stiefel.polar, floor_of(rows))


def rows_of(X):
    return about(X, centre_of(X))


def searched(rng, rows, chosen, seen, candidates, *, max_iter=500, tol=1e-4):
    call = seen if callable(seen) else seen.append
    control = EMControl(chosen, call, max_iter, tol, True, rows.n)
    return climb.screen(rng, EMMap(rows, chosen), candidates, control)


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 50)
    monkeypatch.setattr(climb, "SAMPLE_ROWS_PER_COMPONENT", 1)


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("learn_mean", [True, False])
def test_long_data_are_screened_on_a_sample_about_the_right_origin(learn_mean, rng, seed):
    rows = rows_of(planted(400, 10, 4, 2, seed=seed, offset=3.0).X)
    drawn = climb.draw_screening_sample(rng, rows, settings(rows, 4, 2, learn_mean=learn_mean))
    assert drawn.rows.X.shape == (50, 8)
    assert drawn.basis.shape == (10, 10)
    turned = climb.Rows((rows.X - rows.origin) @ drawn.basis, None, rows.squares + 1.0, 11)
    more = climb.some_rows(rng, turned, 100, learn_mean=learn_mean)
    centred = more.X - (0.0 if more.origin is None else more.origin)
    close(more.squares, (centred**2).sum(axis=1) + 1.0)
    for part in (drawn.rows.X, centred):
        assert np.allclose(part.mean(axis=0), 0.0, atol=1e-12) == learn_mean
    few = rows_of(rows.X[:40])  # are all taken, in all coordinates
    drawn = climb.draw_screening_sample(rng, few, settings(few, 10, 2))
    assert drawn.rows.X.shape == (40, 10)
    close(drawn.rows.X @ drawn.basis.T, few.X - few.origin, atol=1e-10)


def test_wide_data_are_screened_in_leading_coordinates_that_keep_norms_and_likelihoods(
    rng, seed, monkeypatch
):
    monkeypatch.setattr(climb, "MIN_COORDINATES", 1)
    monkeypatch.setattr(climb, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(200, 30, 4, 2, seed=seed, noise=1.0).X)
    chosen = settings(rows, 4, 2)
    drawn = climb.draw_screening_sample(rng, rows, chosen)
    assert drawn.rows.X.shape == (200, 8)
    equal(drawn.rows.squares, rows.squares)
    leading = np.linalg.svd(rows.X - rows.origin, full_matrices=False)[2][:8]
    close(principal_cosines(leading, drawn.basis), 1.0, atol=1e-8)
    inside = climb.first_state(drawn.rows, np.eye(8, 4), chosen)
    outside = inside._replace(W=drawn.basis @ inside.W)
    found = expect(inside, drawn.rows, chosen).log_likelihood
    assert found == pytest.approx(expect(outside, rows, chosen).log_likelihood, rel=1e-10)


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize(
    ("k", "most", "wanted"),
    [(7, 2**29, 50), (9, 2**29, 81), (9, 70 * 9 * 8, 70), (20, 2**29, 150)],
    ids=["the sample", "K squared", "what memory allows", "all"],
)
def test_independent_components_see_scores_of_k_squared_rows(k, most, wanted, rng, monkeypatch):
    monkeypatch.setattr(climb, "MAX_SCORES_BYTES", most)
    monkeypatch.setattr(blocks_of_rows, "MIN_BLOCK_ROWS", 16)
    monkeypatch.setattr(blocks_of_rows, "MAX_BLOCK_ROWS", 32)
    draw, samples, seen = climb.draw_screening_sample, [], []

    def kept(*given):
        samples.append(draw(*given))
        return samples[-1]

    def rotation(rng, P):
        seen.append(P)
        return climb.independent(rng, P)

    monkeypatch.setattr(climb, "draw_screening_sample", kept)
    rows = rows_of(planted(150, 30, k, 3, seed=1, offset=3.0).X)
    searched(rng, rows, settings(rows, k, 3), [], [climb.ICA._replace(rotation=rotation)])
    (P,), (drawn,) = seen, samples
    assert P.shape == (wanted, k)
    if wanted == 50:
        equal(P, drawn.rows.X[:, :k])
    else:  # of as many rows of the data
        scores = (rows.X - rows.origin) @ drawn.basis[:, :k]
        apart = np.abs(P[:, None] - scores).max(axis=2)
        assert len(np.unique(apart.argmin(axis=1))) == wanted
        assert apart.min(axis=1).max() < 1e-10


@pytest.mark.usefixtures("small_sample")
def test_many_rows_are_climbed_on_more_and_more_of_them(rng, seed, monkeypatch):
    rows, stages = rows_of(planted(400, 30, 4, 2, seed=seed).X), []
    for most in (2**28, 200 * 30 * 8):
        monkeypatch.setattr(climb, "MAX_COORDINATE_BYTES", most)
        seen = []
        run, _ = searched(rng, rows, settings(rows, 4, 2), seen, climb.candidates("auto", 1, 4))
        stages.append([s for s in dict.fromkeys(p.stage for p in seen) if "refinement" in s])
        close(run.state.W.T @ run.state.W, np.eye(4), atol=1e-10)
    assert stages[0] == ["refinement on 150 rows", "refinement on 400 rows"]
    assert stages[1] == ["refinement on 150 rows", "refinement on 200 rows"]


def test_finalists_are_the_best_that_differ():
    runs = [EMResult(None, value, [], "") for value in (-5.0, -1.0, -1.5, -9.0, -3.0, -1.9)]
    best = climb._best(runs, 3, 1.0 / climb.DIFFERENT)
    assert [run.log_likelihood for run in best] == [-1.0, -3.0, -5.0]


def test_every_start_climbs_to_its_end_and_the_highest_goes_on(rng, seed):
    rows = rows_of(planted(600, 15, 6, 3, seed=seed).X)
    chosen, seen = settings(rows, 6, 3), []
    run, _ = searched(rng, rows, chosen, seen, climb.candidates("auto", 2, 6))
    names = [*NAMES, *["random rotation"] * 31]
    stages = [f"screening {i} of 35: {name}" for i, name in enumerate(names, start=1)]
    assert list(dict.fromkeys(p.stage for p in seen))[:35] == stages
    ends = {p.stage: p.log_likelihood for p in seen}
    assert run.log_likelihood >= max(ends[stage] for stage in stages)


@pytest.mark.parametrize("dear", [False, True])
def test_spare_starts_are_left_out_where_climbs_are_dear(dear, rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MOST_SUMS", 0 if dear else 10**9)
    monkeypatch.setattr(climb, "FEW_SUMS", 0 if dear else 10**9)
    rows, seen = rows_of(planted(300, 10, 4, 2, seed=seed).X), []
    searched(rng, rows, settings(rows, 4, 2), seen, climb.candidates("auto", 2, 4))
    tried = [stage for stage in dict.fromkeys(p.stage for p in seen) if "random" in stage]
    assert len(tried) == (1 if dear else 1 + climb.SPARE_STARTS + climb.EXTRA_STARTS)
    longest = max(p.max_iter for p in seen if "screening" in p.stage)
    assert longest == (climb.ANNEALED_ITERATIONS if dear else climb.REFINEMENT_ITERATIONS)


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("where", ["quartimax", "annealed PCA", "on 150", "on 300"])
def test_a_callback_may_stop_the_screening_anywhere(where, rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MIN_COORDINATES", 1)
    monkeypatch.setattr(climb, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(300, 30, 4, 2, seed=seed).X)

    def callback(progress):
        if where in progress.stage:
            raise StopIteration

    run, _ = searched(rng, rows, settings(rows, 4, 2), callback, climb.candidates("auto", 1, 4))
    assert run.stop_reason == STOPPED
    close(run.state.W.T @ run.state.W, np.eye(4), atol=1e-10)


@pytest.mark.parametrize("rotation", [climb.quartimax, climb.independent])
def test_rotations_turn_sparse_scores_back_to_their_axes(rotation, seed):
    data = planted(2000, 6, 6, 2, seed=seed, noise=0.01)
    R = rotation(np.random.default_rng(seed), data.X)
    close(R.T @ R, np.eye(6), atol=1e-12)
    assert matched_cosines(R.T, data.W).min() > 0.99


def test_candidates_are_the_named_starts_and_then_random_rotations():
    def names(init, n_init, n_components=10):
        return [c.name for c in climb.candidates(init, n_init, n_components)]

    all_of_them = [*NAMES, *["random rotation"] * 30]
    assert names("auto", 1) == all_of_them
    assert names("auto", 3) == [*all_of_them, "random rotation", "random rotation"]
    assert names("pca", 2) == ["PCA", "random rotation"]
    assert names("random", 2) == ["random rotation", "random rotation"]
    assert names("auto", 1, 100) == all_of_them
    many = ["independent components", "annealed PCA", "PCA"]
    assert names("auto", 2, 101) == [*many, "random rotation"]
    assert names("quartimax", 1, 101) == ["quartimax"]


@pytest.mark.parametrize("latent", ["shared", "component", 1.0])
def test_first_variances_split_the_mean_square_into_captured_and_left(latent, seed):
    data = planted(500, 12, 4, 2, seed=seed)
    rows = rows_of(data.X)
    state = climb.first_state(rows, data.W, settings(rows, 4, 2)._replace(latent=latent))
    kept = np.sort(project(rows, data.W) ** 2, axis=1)[:, 2:].sum()
    assert state.noise == pytest.approx((rows.squares.sum() - kept) / (500 * 10))
    if latent == "shared":
        assert np.all(state.latent == pytest.approx(kept / 1000 - state.noise))
    elif latent == 1.0:
        assert np.all(state.latent == 1.0)
    else:
        assert state.latent == pytest.approx(np.ones(4), rel=0.3)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize(
    ("kind", "n", "k", "n_active"), [(AdaptivePPCA, 200, 8, 2), (AdaptiveFactorAnalysis, 300, 6, 3)]
)
def test_default_fits_of_few_rows_lose_nothing_to_random_starts(kind, n, k, n_active):
    X = load_digits().data[:n] / 16.0
    default = kind(k, n_active, random_state=0).fit(X).score(X)
    random = [
        kind(k, n_active, init="random", random_state=s).fit(X).score(X) for s in range(1, 11)
    ]
    assert default > max(random) - 0.02


def test_factors_are_screened_from_several_starts_and_the_best_goes_on():
    X, seen = load_digits().data[:300] / 16.0, []
    model = AdaptiveFactorAnalysis(6, 3, random_state=0, callback=seen.append).fit(X)
    stages = list(dict.fromkeys(progress.stage for progress in seen))
    assert [stage.partition(" of 26: ")[2] for stage in stages[:3]] == [
        "ica",
        "pca",
        "random rotation",
    ]
    assert stages[-2:] == ["screening 26 of 26: random", "fit"]
    ends = {progress.stage: progress.log_likelihood for progress in seen}
    assert ends["fit"] >= max(ends.values()) - 1e-9
    assert (np.diff(model.explained_variance_) <= 0).all()

    def stop(progress):
        if progress.stage.startswith("screening 3"):
            raise StopIteration

    model.set_params(callback=stop).fit(X)
    assert model.stop_reason_ == STOPPED
    assert model.n_iter_ == 1
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("kind", [AdaptivePPCA, AdaptiveFactorAnalysis])
def test_a_component_that_hardly_any_row_uses_is_warned_of(kind):
    """One row of 3,000 lies far out along a feature of its own, and gets a component for it."""
    rng = np.random.default_rng(0)
    X = 0.1 * rng.standard_normal((3000, 6))
    X[np.arange(3000), np.arange(3000) % 2] += rng.choice([-5.0, 5.0], 3000)
    X[0] = [0.0, 0.0, 0.0, 0.0, 0.0, 20.0]
    init = np.eye(6)[[0, 1, 5]] * 5.0
    with pytest.warns(UserWarning, match="less than 0.1% of rows: [123] of 3"):
        model = kind(3, 1, init=init, mean="zero", random_state=0).fit(X)
    assert (model.inclusion_probabilities(X).mean(axis=0) < 1e-3).sum() == 1


WIDE = {"noise": "feature", "row_scale": "learned"}


def stages_of(X, **settings):
    """Fit, and return the model with the stages of climbs from several starts and their ends."""
    ends = {}

    def hear(progress):
        if progress.stage.startswith("start ") and ": " not in progress.stage:
            ends[progress.stage] = progress.log_likelihood

    return AdaptivePPCA(callback=hear, random_state=0, **settings).fit(X), ends


@pytest.mark.parametrize(
    ("init", "n_init", "starts"), [("auto", 2, 7), ("quartimax", 1, 0), ("pca", 3, 3)]
)
def test_as_many_starts_as_there_are_random_rotations(init, n_init, starts):
    X = planted(80, 6, 4, 2, seed=3, noise=0.4).X
    settings = {"n_components": 4, "n_active": 2, "init": init, "n_init": n_init, "max_iter": 20}
    with pytest.warns(match="max_iter"):
        ends = stages_of(X, **settings, **WIDE)[1]
    assert list(ends) == [f"start {i + 1} of {starts}" for i in range(starts)]


def halving(state):
    """Log-likelihood -x^2; every step halves x."""
    return -(state**2), state / 2.0


def test_plain_iteration_reports_the_likelihood_of_the_state_it_returns():
    climb = iterate(nesterov(halving, 8.0), tol=0.0, max_iter=3)
    assert climb.state == 1.0
    assert climb.log_likelihoods == [-16.0, -4.0, -1.0]
    assert climb.log_likelihood == -1.0
    assert climb.stop_reason == "reached max_iter=3 before it converged"


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (1, "improvement below tol over the last iteration"),
        (3, "improvement below tol over the last 3 iterations"),
        (10, "improvement below tol over the last 10 iterations"),
    ],
)
def test_it_stops_when_so_many_iterations_together_gain_less_than_their_share(window, words):
    climb = iterate(nesterov(halving, 1.0), tol=1e-6, max_iter=500, window=window)
    values, least = [-1.0, *climb.log_likelihoods], 1e-7 * window
    gains = np.subtract(values[window:], values[:-window])
    assert gains[-1] < least
    assert np.all(gains[:-1] >= least)
    assert climb.stop_reason == f"converged: {words}"


def test_a_plateau_shorter_than_ten_iterations_does_not_stop_it():
    path = ((height, i) for i, height in enumerate([0.0, *[1.0] * 9, 6.0, *[6.0] * 20]))
    assert iterate(path, tol=1e-3, max_iter=30).log_likelihood == 6.0


def onwards(before, now, beta):
    return now + beta * (now - before)


def creeping(state):
    """Log-likelihood -x^2; every step takes a hundredth off x."""
    return -(state**2), 0.99 * state


def test_momentum_begins_anew_where_the_likelihood_falls():
    seen = []

    def extend(before, now, beta):
        seen.append(beta)
        return onwards(before, now, beta)

    values = iterate(nesterov(creeping, 1.0, extend), tol=-1.0, max_iter=200).log_likelihoods
    assert all(b >= a for a, b in pairwise(values))
    rises = [b - a for a, b in pairwise(seen)]
    assert min(rises) < 0.0  # it did begin anew
    seen.clear()
    iterate(nesterov(creeping, 1.0, extend, age=500), tol=-1.0, max_iter=1)
    assert seen == [0.98]  # at most, whatever the age


@pytest.mark.parametrize("value", [-1e9, math.nan], ids=["lower", "not a number"])
def test_momentum_that_hurts_is_refused(value):
    def advance(state):
        return (value, state) if state > 100.0 else halving(state)

    path = nesterov(advance, 8.0, lambda _before, _now, _beta: 1000.0)
    climb = iterate(path, tol=-math.inf, max_iter=6)
    assert climb.log_likelihoods == [-(4.0**2 / 4.0**i) for i in range(6)]


def test_halt_turns_its_sentence_into_the_reason():
    climb = iterate(
        nesterov(halving, 8.0),
        tol=0.0,
        max_iter=50,
        halt=lambda state: "small enough" if state < 2.0 else None,
    )
    assert climb.state == 1.0
    assert climb.stop_reason == "small enough"


def test_the_callback_learns_stage_and_scaled_likelihood_and_may_stop():
    seen = []

    def callback(progress):
        seen.append(progress)
        if progress.iteration == 2:
            raise StopIteration

    watch = watcher(callback, "fit", 9, scale=10.0)
    climb = iterate(nesterov(halving, 8.0), tol=0.0, max_iter=9, watch=watch)
    assert seen == [Progress(1, 9, -160.0, "fit"), Progress(2, 9, -40.0, "fit")]
    assert climb.stop_reason == STOPPED == "stopped by the callback"
    assert climb.state == 2.0


def walk(ask):
    """Run `ask`; give the files of its functions, each by its first call, without lambdas."""
    home, seen = str(Path(appca.__file__).parent), {}

    def hear(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home) and code.co_name[0] != "<":
            seen.setdefault((code.co_filename, code.co_qualname))

    sys.setprofile(hear)
    try:
        ask()
    finally:
        sys.setprofile(None)
    files = [file for file, _ in seen]
    return [file for file, last in zip(files, [None, *files], strict=False) if file != last]


def test_a_fit_and_a_query_open_few_files():
    X = np.random.default_rng(0).standard_normal((600, 64))
    AdaptivePPCA(random_state=0, max_iter=1).fit(X)  # what is done once a process is no part of it
    model = AdaptivePPCA(random_state=0)
    stages = walk(lambda: model.fit(X))
    assert len(set(stages)) <= 14
    assert len(stages) - len(set(stages)) <= 30  # returns to a file
    assert len(set(walk(lambda: model.score_samples(X)))) <= 7
