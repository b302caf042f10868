import numpy as np
import pytest

from appca.models import climb, starts, stiefel
from appca.models import rows as blocks_of_rows
from appca.models.climb import EMControl
from appca.models.em import EMMap, EMSettings, expect, floor_of
from appca.models.loop import STOPPED, EMResult
from appca.models.rows import about, centre_of
from tests.models.synthetic import planted, principal_cosines


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


def test_small_data_are_screened_on_all_rows_in_all_coordinates(rng, seed):
    rows = rows_of(planted(200, 10, 4, 2, seed=seed, offset=3.0).X)
    drawn = climb.draw_screening_sample(rng, rows, settings(rows, 4, 2))
    assert drawn.rows.X.shape == (200, 10)
    back = drawn.rows.X @ drawn.basis.T
    np.testing.assert_allclose(back, rows.X - rows.origin, atol=1e-10)


def test_a_sample_of_wide_rows_is_bounded_by_its_bytes(rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MIN_SAMPLE_ROWS", 20)
    monkeypatch.setattr(climb, "MAX_SAMPLE_BYTES", 100 * 12 * 8)
    rows = rows_of(planted(800, 12, 4, 2, seed=seed).X)
    drawn = climb.draw_screening_sample(rng, rows, settings(rows, 4, 2))
    assert len(drawn.rows.X) == 100


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("learn_mean", [True, False])
def test_long_data_are_screened_on_a_sample_about_the_right_origin(learn_mean, rng, seed):
    rows = rows_of(planted(400, 10, 4, 2, seed=seed, offset=3.0).X)
    chosen = settings(rows, 4, 2, learn_mean=learn_mean)
    drawn = climb.draw_screening_sample(rng, rows, chosen)
    assert drawn.rows.X.shape == (50, 8)
    assert drawn.basis.shape == (10, 10)
    more = climb._some(rng, rows._replace(X=rows.X - rows.origin, origin=None), 100, chosen)
    np.testing.assert_allclose(more.squares, (more.X**2).sum(axis=1))
    for part in (drawn.rows, more):
        assert np.allclose(part.X.mean(axis=0), 0.0, atol=1e-12) == learn_mean


def test_wide_data_are_screened_in_leading_coordinates_that_keep_all_squared_norms(
    rng, seed, monkeypatch
):
    monkeypatch.setattr(climb, "MIN_COORDINATES", 1)
    monkeypatch.setattr(climb, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(200, 30, 4, 2, seed=seed, noise=1.0).X)
    drawn = climb.draw_screening_sample(rng, rows, settings(rows, 4, 2))
    assert drawn.rows.X.shape == (200, 8)
    np.testing.assert_array_equal(drawn.rows.squares, rows.squares)
    leading = np.linalg.svd(rows.X - rows.origin, full_matrices=False)[2][:8]
    np.testing.assert_allclose(principal_cosines(leading, drawn.basis), 1.0, atol=1e-8)


def test_a_state_has_the_same_likelihood_in_leading_coordinates_and_outside(rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MIN_COORDINATES", 1)
    monkeypatch.setattr(climb, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(200, 30, 4, 2, seed=seed, noise=1.0).X)
    chosen = settings(rows, 4, 2)
    drawn = climb.draw_screening_sample(rng, rows, chosen)
    inside = starts.first_state(drawn.rows, np.eye(8, 4), chosen)
    outside = inside._replace(W=drawn.basis @ inside.W)
    assert expect(inside, drawn.rows, chosen).log_likelihood == pytest.approx(
        expect(outside, rows, chosen).log_likelihood, rel=1e-10
    )


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
        return starts.independent(rng, P)

    monkeypatch.setattr(climb, "draw_screening_sample", kept)
    rows = rows_of(planted(150, 30, k, 3, seed=1, offset=3.0).X)
    searched(rng, rows, settings(rows, k, 3), [], [starts.ICA._replace(rotation=rotation)])
    (P,), (drawn,) = seen, samples
    assert P.shape == (wanted, k)
    if wanted == 50:
        np.testing.assert_array_equal(P, drawn.rows.X[:, :k])
    else:  # of as many rows of the data
        scores = (rows.X - rows.origin) @ drawn.basis[:, :k]
        apart = np.abs(P[:, None] - scores).max(axis=2)
        assert len(np.unique(apart.argmin(axis=1))) == wanted
        assert apart.min(axis=1).max() < 1e-10


@pytest.mark.usefixtures("small_sample")
def test_the_best_start_of_the_sample_is_refined_on_all_rows(rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MIN_COORDINATES", 1)
    monkeypatch.setattr(climb, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(150, 30, 4, 2, seed=seed).X)
    chosen = settings(rows, 4, 2)
    seen = []
    run, sampled = searched(rng, rows, chosen, seen, starts.candidates("auto", 1, 4))
    assert run.state.W.shape == (30, 4)
    inside = expect(run.state, rows, chosen).log_likelihood
    assert run.log_likelihood == pytest.approx(inside, rel=1e-10)
    assert seen[-1].stage == "refinement on 150 rows"
    ends = [p.log_likelihood for p in seen if p.stage == seen[-1].stage]
    assert max(ends) == pytest.approx(run.log_likelihood)
    assert sampled


@pytest.mark.usefixtures("small_sample")
def test_many_rows_are_climbed_on_more_and_more_of_them(rng, seed, monkeypatch):
    rows = rows_of(planted(400, 30, 4, 2, seed=seed).X)
    stages = []
    for most in (2**28, 200 * 30 * 8):
        monkeypatch.setattr(climb, "MAX_COORDINATE_BYTES", most)
        seen = []
        run, _ = searched(rng, rows, settings(rows, 4, 2), seen, starts.candidates("auto", 1, 4))
        stages.append([s for s in dict.fromkeys(p.stage for p in seen) if "refinement" in s])
        np.testing.assert_allclose(run.state.W.T @ run.state.W, np.eye(4), atol=1e-10)
    assert stages[0] == ["refinement on 150 rows", "refinement on 400 rows"]
    assert stages[1] == ["refinement on 150 rows", "refinement on 200 rows"]


def test_finalists_are_the_best_that_differ():
    runs = [EMResult(None, value, [], "") for value in (-5.0, -1.0, -1.5, -9.0, -3.0, -1.9)]
    best = climb._best(runs, 3, 1.0 / climb.DIFFERENT)
    assert [run.log_likelihood for run in best] == [-1.0, -3.0, -5.0]


def test_every_start_climbs_to_its_end_and_the_highest_goes_on(rng, seed):
    rows = rows_of(planted(600, 15, 6, 3, seed=seed).X)
    chosen = settings(rows, 6, 3)
    seen = []
    run, _ = searched(rng, rows, chosen, seen, starts.candidates("auto", 2, 6))
    names = ["quartimax", "annealed PCA", "PCA", "annealed quartimax", *["random rotation"] * 31]
    stages = [f"screening {i} of 35: {name}" for i, name in enumerate(names, start=1)]
    assert list(dict.fromkeys(p.stage for p in seen))[:35] == stages
    ends = {p.stage: p.log_likelihood for p in seen}
    assert run.log_likelihood >= max(ends[stage] for stage in stages)


def test_the_first_start_goes_on_beside_the_best_of_the_sample(seed):
    rows = rows_of(planted(600, 15, 6, 3, seed=seed).X)
    chosen = settings(rows, 6, 3)
    ends = []
    for candidates in (starts.candidates("auto", 1, 6), [starts.QUARTIMAX]):
        run, _ = searched(np.random.default_rng(seed), rows, chosen, [], candidates)
        ends.append(run.log_likelihood)
    assert ends[0] >= ends[1] - 1e-4 * 600


@pytest.mark.parametrize("dear", [False, True])
def test_spare_starts_are_left_out_where_climbs_are_dear(dear, rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MOST_SUMS", 0 if dear else 10**9)
    monkeypatch.setattr(climb, "FEW_SUMS", 0 if dear else 10**9)
    rows = rows_of(planted(300, 10, 4, 2, seed=seed).X)
    seen = []
    searched(rng, rows, settings(rows, 4, 2), seen, starts.candidates("auto", 2, 4))
    tried = [stage for stage in dict.fromkeys(p.stage for p in seen) if "random" in stage]
    assert len(tried) == (1 if dear else 1 + starts.SPARE_STARTS + starts.EXTRA_STARTS)
    longest = max(p.max_iter for p in seen if "screening" in p.stage)
    assert longest == (starts.ANNEALED_ITERATIONS if dear else climb.REFINEMENT_ITERATIONS)


def test_no_stage_is_longer_than_the_iterations_allowed(rng, seed):
    rows = rows_of(planted(300, 10, 4, 2, seed=seed).X)
    seen = []
    chosen = settings(rows, 4, 2)
    searched(rng, rows, chosen, seen, starts.candidates("quartimax", 2, 4), max_iter=3)
    assert max(p.iteration for p in seen) == 3
    assert {p.max_iter for p in seen} == {3}


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("where", ["quartimax", "annealed PCA", "on 150", "on 300"])
def test_a_callback_may_stop_the_screening_anywhere(where, rng, seed, monkeypatch):
    monkeypatch.setattr(climb, "MIN_COORDINATES", 1)
    monkeypatch.setattr(climb, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(300, 30, 4, 2, seed=seed).X)

    def callback(progress):
        if where in progress.stage:
            raise StopIteration

    chosen = settings(rows, 4, 2)
    run, _ = searched(rng, rows, chosen, callback, starts.candidates("auto", 1, 4))
    assert run.stop_reason == STOPPED
    np.testing.assert_allclose(run.state.W.T @ run.state.W, np.eye(4), atol=1e-10)
