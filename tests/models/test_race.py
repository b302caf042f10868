import numpy as np
import pytest

from appca.models import race, starts, stiefel
from appca.models.em import Settings, expect, floor_of
from appca.models.loop import STOPPED
from appca.models.race import Course
from appca.models.rows import about, centre_of
from tests.models.synthetic import planted, principal_cosines


def settings(rows, k, n_active, *, learn_mean=True):
    return Settings(k, n_active, "shared", learn_mean, False, stiefel.polar, floor_of(rows))


def rows_of(X):
    return about(X, centre_of(X))


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(race, "MIN_SAMPLE_ROWS", 50)
    monkeypatch.setattr(race, "SAMPLE_ROWS_PER_COMPONENT", 1)


def test_small_data_race_on_all_rows_in_all_coordinates(rng, seed):
    rows = rows_of(planted(200, 10, 4, 2, seed=seed, offset=3.0).X)
    ring = race.arena(rng, rows, settings(rows, 4, 2))
    assert ring.sample.X.shape == (200, 10)
    assert ring.settling == []
    back = ring.sample.X @ ring.basis.T
    np.testing.assert_allclose(back, rows.X - rows.origin, atol=1e-10)


@pytest.mark.usefixtures("small_sample")
@pytest.mark.parametrize("learn_mean", [True, False])
def test_long_data_race_on_a_sample_about_the_right_origin(learn_mean, rng, seed):
    rows = rows_of(planted(400, 10, 4, 2, seed=seed, offset=3.0).X)
    ring = race.arena(rng, rows, settings(rows, 4, 2, learn_mean=learn_mean))
    assert ring.sample.X.shape == (50, 10)
    assert len(ring.settling) == 1
    mean = ring.sample.X.mean(axis=0)
    assert np.allclose(mean, 0.0, atol=1e-12) == learn_mean
    np.testing.assert_allclose(ring.sample.squares, np.sum(ring.sample.X**2, axis=1), rtol=1e-10)


def test_wide_data_race_in_leading_coordinates_that_keep_all_squared_norms(rng, seed, monkeypatch):
    monkeypatch.setattr(race, "MIN_COORDINATES", 1)
    monkeypatch.setattr(race, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(200, 30, 4, 2, seed=seed, noise=1.0).X)
    ring = race.arena(rng, rows, settings(rows, 4, 2))
    assert ring.sample.X.shape == (200, 8)
    assert ring.settling == [ring.sample]
    np.testing.assert_array_equal(ring.sample.squares, rows.squares)
    leading = np.linalg.svd(rows.X - rows.origin, full_matrices=False)[2][:8]
    np.testing.assert_allclose(principal_cosines(leading, ring.basis), 1.0, atol=1e-8)


def test_a_state_has_the_same_likelihood_in_the_arena_and_outside(rng, seed, monkeypatch):
    monkeypatch.setattr(race, "MIN_COORDINATES", 1)
    monkeypatch.setattr(race, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(200, 30, 4, 2, seed=seed, noise=1.0).X)
    chosen = settings(rows, 4, 2)
    ring = race.arena(rng, rows, chosen)
    inside = starts.first_state(ring.sample, np.eye(8, 4), chosen)
    outside = inside._replace(W=ring.basis @ inside.W)
    assert expect(inside, ring.sample, chosen).log_likelihood == pytest.approx(
        expect(outside, rows, chosen).log_likelihood, rel=1e-10
    )


@pytest.mark.usefixtures("small_sample")
def test_the_winner_settles_on_the_sample_and_then_on_all_rows(rng, seed, monkeypatch):
    monkeypatch.setattr(race, "MIN_COORDINATES", 1)
    monkeypatch.setattr(race, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(400, 30, 4, 2, seed=seed).X)
    chosen = settings(rows, 4, 2)
    ring = race.arena(rng, rows, chosen)
    assert [len(part.X) for part in ring.settling] == [50, 400]
    seen = []
    run = race.search(
        rng, rows, starts.candidates("auto", 1), Course(chosen, seen.append, 500, 1e-4, True, 400)
    )
    assert run.state.W.shape == (30, 4)
    inside = expect(run.state, rows, chosen).log_likelihood
    assert run.log_likelihood == pytest.approx(inside, rel=1e-10)
    assert seen[-1].stage == "settle on 400 rows"
    assert seen[-1].log_likelihood == pytest.approx(run.log_likelihood)


def test_the_race_is_won_by_the_highest_likelihood(rng, seed):
    rows = rows_of(planted(600, 15, 6, 3, seed=seed).X)
    chosen = settings(rows, 6, 3)
    ring = race.arena(rng, rows, chosen)
    seen = []
    course = Course(chosen, seen.append, 500, 1e-4, True, 600)
    run = race.race(rng, ring.sample, starts.candidates("auto", 2), course)
    names = ["quartimax", "annealed PCA", "PCA", "annealed quartimax", "random rotation"]
    stages = [f"race {i} of 5: {name}" for i, name in enumerate(names, start=1)]
    assert list(dict.fromkeys(p.stage for p in seen)) == stages
    last = {p.stage: p.log_likelihood for p in seen}
    assert run.log_likelihood == max(last.values())


def test_no_stage_is_longer_than_the_iterations_allowed(rng, seed):
    rows = rows_of(planted(300, 10, 4, 2, seed=seed).X)
    seen = []
    course = Course(settings(rows, 4, 2), seen.append, 3, 1e-4, True, 300)
    race.search(rng, rows, starts.candidates("quartimax", 2), course)
    assert max(p.iteration for p in seen) == 3
    assert {p.max_iter for p in seen} == {3}


@pytest.mark.parametrize("where", ["quartimax", "annealed PCA", "settle"])
def test_a_callback_may_stop_the_search_anywhere(where, rng, seed, monkeypatch):
    monkeypatch.setattr(race, "MIN_COORDINATES", 1)
    monkeypatch.setattr(race, "COORDINATES_PER_COMPONENT", 2)
    rows = rows_of(planted(300, 30, 4, 2, seed=seed).X)

    def callback(progress):
        if where in progress.stage:
            raise StopIteration

    course = Course(settings(rows, 4, 2), callback, 500, 1e-4, True, 300)
    run = race.search(rng, rows, starts.candidates("auto", 1), course)
    assert run.stop_reason == STOPPED
    np.testing.assert_allclose(run.state.W.T @ run.state.W, np.eye(4), atol=1e-10)
