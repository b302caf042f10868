"""Where EM may start: principal directions under a rotation, with variances to match."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import polynomials
from appca.models.em import EMMap, EMSettings, SubspaceState, extend, step
from appca.models.independent_components import fast_ica
from appca.models.loop import nesterov, plain
from appca.models.numerics import Array
from appca.models.rows import Block, Observations
from appca.models.spectrum import Principal
from appca.models.stiefel import polar

ANNEALED_ITERATIONS = 30  # beta from 0.001 to 1, geometrically
FIRST_BETA = 0.001
MAX_QUARTIMAX_STEPS = 200
MAX_ICA_STEPS = 80  # K = 500 takes 45; a step costs two products
QUARTIMAX_PRECISION = 1e-4  # of the last change of the rotation


def closed_form(rows: Observations, leading: Principal, floor: float) -> SubspaceState:
    """Maximum of the likelihood of PPCA, R = I: Tipping and Bishop (1999), equations 7 and 8."""
    n, q = rows.mass, len(leading.values)
    total, spare = rows.total / n, rows.n_features - q
    noise = max((total - leading.values.sum()) / spare if spare else 0.0, floor)
    return SubspaceState(leading.V, np.zeros(q), np.maximum(leading.values - noise, floor), noise)


class Candidate(NamedTuple):
    """A named start: principal directions times a rotation, with or without annealing."""

    name: str
    rotation: Callable[[Generator, Array], Array]  # (rng, scores (N, K)) -> (K, K)
    annealed: bool = False
    needs_many_rows: bool = False  # scores of K^2 rows
    spare: bool = False  # left out where climbs to the end cost too much
    extra: bool = False  # taken only where all of them cost less than a second


def quartimax(_rng: Generator, P: Array) -> Array:
    """Rotation of scores P (N, K) with the largest sum of fourth powers: R <- polar(P'(PR)^3)."""
    if not P.any():  # a sample of rows that are all the same
        return np.eye(P.shape[1])
    lines = np.ascontiguousarray(P.T / np.sqrt(np.mean(P**2)))  # half the time of rows
    R, cubes = np.eye(len(lines)), np.empty_like(lines)
    for _ in range(MAX_QUARTIMAX_STEPS):
        before, Q = R, R.T.astype(lines.dtype) @ lines
        np.multiply(Q, Q, out=cubes)
        cubes *= Q
        R = polar(lines @ cubes.T, before)
        if np.max(np.abs(R - before)) < QUARTIMAX_PRECISION:
            break
    return R


independent = partial(fast_ica, most=MAX_ICA_STEPS)  # components as independent as they can be


def unrotated(_rng: Generator, P: Array) -> Array:
    """Leave the principal directions as they are."""
    return np.eye(P.shape[1])


def random_rotation(rng: Generator, P: Array) -> Array:
    """Draw uniformly from the orthogonal matrices: the polar factor of a Gaussian matrix."""
    return polar(rng.standard_normal((P.shape[1],) * 2))


QUARTIMAX, PCA = Candidate("quartimax", quartimax), Candidate("PCA", unrotated)
ANNEALED_PCA = Candidate("annealed PCA", unrotated, annealed=True)
ANNEALED_QUARTIMAX = Candidate("annealed quartimax", quartimax, annealed=True)
ICA = Candidate("independent components", independent, needs_many_rows=True)

RANDOM = Candidate("random rotation", random_rotation)
SPARE_STARTS, EXTRA_STARTS = 5, 25  # one of these mostly ends highest on handwritten digits
SPARE = [RANDOM._replace(spare=True)] * SPARE_STARTS + [RANDOM._replace(extra=True)] * EXTRA_STARTS

NAMED: dict[str, tuple[Candidate, ...]] = {
    "auto": (QUARTIMAX, ANNEALED_PCA, PCA, ANNEALED_QUARTIMAX, *SPARE),
    "quartimax": (QUARTIMAX,),
    "annealed": (ANNEALED_PCA,),
    "pca": (PCA,),
    "ica": (ICA,),
    "random": (RANDOM,),
}
MANY_COMPONENTS = 100  # above which quartimax on the sample finds nothing
FOR_MANY = (ICA, ANNEALED_PCA, PCA)


def candidates(init: str, n_init: int, n_components: int) -> list[Candidate]:
    """List the starts that `init` names, and n_init - 1 random rotations more."""
    many = init == "auto" and n_components > MANY_COMPONENTS
    return [*(FOR_MANY if many else NAMED[init]), *[RANDOM] * (n_init - 1)]


def first_state(rows: Observations, W: Array, settings: EMSettings) -> SubspaceState:
    """Variances from the hard assignment of rows to their L largest projections on W."""
    K, L, n = settings.n_components, settings.n_active, rows.mass

    def top_power(block: Block) -> tuple[Array, Array]:
        power = np.square(block.times(W), dtype=np.float64)
        active = block.weighted(polynomials.top(power, L).astype(np.float64))
        return np.einsum("nk,nk->k", power, active), np.ones(len(active)) @ active

    captured, used = rows.summed(top_power, (np.zeros(K), np.zeros(K)))
    left, spare = rows.total - float(captured.sum()), n * (rows.n_features - L)
    noise = max(left / spare if spare else captured.sum() / (2 * n * L), settings.floor)
    if settings.latent == "shared":
        tau2 = np.full(K, captured.sum() / (n * L) - noise)
    elif settings.latent == "component":
        tau2 = captured / np.where(used > 0.0, used, 1.0) - noise
    else:
        tau2 = np.full(K, settings.latent)
    return SubspaceState(W, np.zeros(K), np.maximum(tau2, settings.floor), noise)


def annealed(
    start: SubspaceState, rows: Observations, settings: EMSettings
) -> Iterator[tuple[float, SubspaceState]]:
    """EM with logits times beta rising to 1; values it yields are tempered, so they may fall."""
    yield -math.inf, start
    state = start
    for beta in np.geomspace(FIRST_BETA, 1.0, ANNEALED_ITERATIONS):
        value, state = step(state, rows, settings, float(beta))
        yield value, state


def ascent(
    start: SubspaceState, em_map: EMMap, *, accelerate: bool = True, age: int = 0
) -> Iterator[tuple[float, SubspaceState]]:
    """EM from `start`, plain or with momentum of an age."""
    step_ahead = partial(extend, settings=em_map.settings)
    return nesterov(em_map, start, step_ahead, age) if accelerate else plain(em_map, start)
