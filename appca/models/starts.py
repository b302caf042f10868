"""Where EM starts: principal directions, rotated; a short race between the candidates.

No single start wins on real data (table in model.md 1.2), so a few are tried. They race on a
sample of the rows in the leading principal coordinates, where a pass costs a fraction of one over
all data; the winner's state then starts the fit proper, which alone decides where EM ends.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from appca.models import subsets
from appca.models.em import Settings, State, step
from appca.models.gaussian import Array
from appca.models.loop import STOPPED, Callback, Climb, Watch, accelerated, iterate, plain, watcher
from appca.models.rows import Rows, about, centre_of, project
from appca.models.spectrum import principal
from appca.models.squarem import extrapolate
from appca.models.stiefel import polar

__all__ = ["Arena", "Candidate", "arena", "candidates", "first_state", "race"]

ANNEALED_PASSES = 30  # beta from 0.001 to 1, geometrically (model.md 1.2)
FIRST_BETA = 0.001
RACE_PASSES = 30  # of each candidate, after annealing
SETTLE_PASSES = 200  # most of the winner, still on the sample
SETTLE_TOL = 1e-3  # nats a row over ten passes; the fit proper keeps the caller's rule
MIN_SAMPLE_ROWS = 5000
SAMPLE_ROWS_PER_COMPONENT = 100
MIN_COORDINATES = 64


class Candidate(NamedTuple):
    """A named start: principal directions times a rotation, with or without annealing."""

    name: str
    rotation: Callable[[np.random.Generator, Array], Array]  # (rng, scores (N, K)) -> (K, K)
    annealed: bool = False


class Arena(NamedTuple):
    """A sample of the rows in leading principal coordinates; basis @ W leads back."""

    rows: Rows
    basis: Array  # (d, q)
    n_components: int
    scale: float  # rows in all over rows in the sample


def quartimax(_rng: np.random.Generator, P: Array) -> Array:
    """Rotation of scores P (N, K) with the largest sum of fourth powers.

    Fixed point R <- polar(P'(PR)^3), monotone because the criterion is convex in R.
    """
    P = P.astype(np.float64) / np.sqrt(np.mean(np.square(P, dtype=np.float64)))
    R = np.eye(P.shape[1])
    for _ in range(200):
        before = R
        R = polar(P.T @ (P @ R) ** 3, before)
        if np.max(np.abs(R - before)) < 1e-4:
            break
    return R


def unrotated(_rng: np.random.Generator, P: Array) -> Array:
    """Leave the principal directions as they are."""
    return np.eye(P.shape[1])


def random_rotation(rng: np.random.Generator, P: Array) -> Array:
    """Uniform over the orthogonal matrices: the polar factor of a Gaussian matrix."""
    return polar(rng.standard_normal((P.shape[1],) * 2))


NAMED: dict[str, tuple[Candidate, ...]] = {
    "quartimax": (Candidate("quartimax", quartimax),),
    "annealed": (Candidate("annealed PCA", unrotated, annealed=True),),
    "pca": (Candidate("PCA", unrotated),),
    "random": (Candidate("random rotation", random_rotation),),
}
NAMED["auto"] = NAMED["quartimax"] + NAMED["annealed"]


def candidates(init: str, n_init: int) -> list[Candidate]:
    """List the starts that `init` names, and n_init - 1 random rotations more."""
    return [*NAMED[init], *NAMED["random"] * (n_init - 1)]


def arena(rng: np.random.Generator, rows: Rows, n_components: int, learn_mean: bool) -> Arena:
    """Draw the sample of rows and turn it into its leading principal coordinates.

    A learned mean has the form origin - W shift only about the mean of the rows at hand, so the
    sample is then taken about its own.
    """
    n, d = rows.X.shape
    size = min(n, max(MIN_SAMPLE_ROWS, SAMPLE_ROWS_PER_COMPONENT * n_components))
    q = min(size, d, max(2 * n_components, MIN_COORDINATES))
    if size == n:
        drawn = rows
    else:
        sample = rows.X[np.sort(rng.choice(n, size, replace=False))]
        origin = centre_of(sample) if learn_mean else rows.origin
        drawn = about(sample, origin)._replace(n_features=rows.n_features)
    in_thin_coordinates = rows.n_features != d
    basis = np.eye(d, q) if in_thin_coordinates else principal(rng, drawn, q).V
    coordinates = Rows(project(drawn, basis), None, drawn.squares, rows.n_features)
    return Arena(coordinates, basis, n_components, n / size)


def first_state(rows: Rows, W: Array, settings: Settings) -> State:
    """Variances from the hard assignment of rows to their L largest projections on W.

    sigma2 is what the assignment leaves, per feature; tau2 what it captures, less sigma2. At
    L = K and W the leading eigenvectors this is the maximum of the likelihood in closed form.
    """
    K, L, n = W.shape[1], settings.n_active, len(rows.X)
    power = np.square(project(rows, W), dtype=np.float64)
    active = subsets.top(power, L)
    captured, count = np.where(active, power, 0.0).sum(axis=0), active.sum(axis=0)
    left = float(rows.squares.sum() - captured.sum())
    spare = n * (rows.n_features - L)
    noise = max(left / spare if spare else 0.0, settings.floor)
    if settings.latent == "shared":
        tau2 = np.full(K, captured.sum() / (n * L) - noise)
    elif settings.latent == "component":
        tau2 = captured / np.maximum(count, 1) - noise
    else:
        tau2 = np.full(K, settings.latent)
    return State(W, np.zeros(K), np.maximum(tau2, settings.floor), noise)


def annealed(start: State, rows: Rows, settings: Settings) -> Iterator[tuple[float, State]]:
    """EM with logits times beta rising to 1: early passes hardly tell subsets apart.

    The values it yields are tempered, so they may fall.
    """
    yield -math.inf, start
    state = start
    for beta in np.geomspace(FIRST_BETA, 1.0, ANNEALED_PASSES):
        value, state = step(state, rows, settings, float(beta))
        yield value, state


def ascent(
    start: State, rows: Rows, settings: Settings, *, accelerate: bool = True
) -> Iterator[tuple[float, State]]:
    """EM on `rows` from `start`, with SQUAREM leaps or plain."""
    advance = partial(step, rows=rows, settings=settings)
    if not accelerate:
        return plain(advance, start)
    return accelerated(advance, start, partial(extrapolate, settings=settings))


def race(
    rng: np.random.Generator,
    ring: Arena,
    field: list[Candidate],
    settings: Settings,
    callback: Callback | None,
) -> Climb[State]:
    """Run every candidate for some passes; the one with the highest likelihood settles.

    The climb returned is in the arena's coordinates; if its reason to stop is the callback's, the
    fit should stop too.
    """
    P = ring.rows.X[:, : ring.n_components]
    runs: list[Climb[State]] = []
    for i, candidate in enumerate(field, start=1):
        W = np.eye(ring.rows.X.shape[1], ring.n_components) @ candidate.rotation(rng, P)
        stage = f"race {i} of {len(field)}: {candidate.name}"
        runs.append(_heat(candidate, W, ring, settings, partial(watcher, callback, stage)))
        if runs[-1].stop_reason == STOPPED:
            break
    leader = max(runs, key=lambda run: run.log_likelihood)
    if runs[-1].stop_reason == STOPPED:
        return leader._replace(stop_reason=STOPPED)
    return iterate(
        ascent(leader.state, ring.rows, settings),
        tol=SETTLE_TOL * len(ring.rows.X),
        max_iter=SETTLE_PASSES,
        watch=watcher(callback, "settle", SETTLE_PASSES, ring.scale),
    )


def _heat(
    candidate: Candidate,
    W: Array,
    ring: Arena,
    settings: Settings,
    watch: Callable[[int, float], Watch],
) -> Climb[State]:
    state = first_state(ring.rows, W, settings)
    if candidate.annealed:
        cooled = iterate(
            annealed(state, ring.rows, settings),
            tol=-math.inf,
            max_iter=ANNEALED_PASSES,
            watch=watch(ANNEALED_PASSES, ring.scale),
        )
        if cooled.stop_reason == STOPPED:
            return cooled
        state = cooled.state
    return iterate(
        ascent(state, ring.rows, settings),
        tol=SETTLE_TOL * len(ring.rows.X),
        max_iter=RACE_PASSES,
        watch=watch(RACE_PASSES, ring.scale),
    )
