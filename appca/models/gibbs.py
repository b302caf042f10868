"""Gibbs sampling of all models, with orthonormal columns or with any W.

    y_n = W (x_n * z_n) + mu + e_n,  x_nk ~ N(0, u_n tau2_k),  e_n ~ N(0, u_n sigma2 I)

Models differ in W, in the prior of Z, and in how Z is drawn (`PRIORS`). If W'W = I, X can be
integrated out for each component separately. Learned scales have the prior u_n ~ omega over a grid,
learned sizes l ~ rho, with omega and rho uniform. Rows divided by sqrt(u_n) follow the model with
u = 1, so (u_n, z_n, x_n) is drawn as a block. A free W has w_dk ~ N(0, sigma2_W), tau2 = 1, u = 1
(the paper's sections 2 and 3; docs/mathematics.md 3.6). A sweep reads the rows twice.

Adaptive PPCA is the paper's algorithm 3, corrected; its algorithm 2 is not a valid kernel
(docs/mathematics.md). Z has K_max columns. Its prior is the Indian buffet conditioned on at most
K_max used columns, or the finite Beta-Bernoulli prior.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from appca.models import climb, conditionals, em, polynomials, set_tree, stiefel, supports
from appca.models.chains import Chains, Draws, DrawStore, Measures, row_pairs
from appca.models.climb import EMControl
from appca.models.conditionals import Gamma, Indicators, InverseGamma
from appca.models.em import PAPER, RowModel, RowPosterior, SubspaceState, evenly, weigh
from appca.models.factor_em import DRAW, PRIOR
from appca.models.loop import STOPPED, Callback, watcher
from appca.models.numerics import Array
from appca.models.products import ChainData, data_of, products, projections
from appca.models.rows import Rows
from appca.models.set_tree import CollapsedModel
from appca.models.settings import OVERDISPERSED
from appca.models.stiefel import principal
from appca.models.supports import SETS_IN_PASSING, RowSupports

FIXED, FINITE, INFINITE = "fixed", "finite", "infinite"  # priors of Z if W is any matrix
TAU2 = 1.0 / PRIOR  # variance of scores with such W


class GibbsState(NamedTuple):
    """Variables that a sweep reads and writes."""

    W: Array  # (D, K), orthonormal or any; an unused column of the infinite model is zero
    X: Array  # (N, K), scores over sqrt(u), zero where inactive
    Z: Indicators  # (N, K)
    mu: Array  # (D,) about the origin of the rows
    sigma2: float
    tau2: Array  # (K,), all equal unless each component has its own
    sigma2_W: float = 1.0  # variance of loadings, if W is any matrix
    alpha: float = 1.0  # parameter of the prior of Z, if it has one
    sizes: int | Array = 0  # L, or rho_l (K + 1,); unused with other priors of Z
    u: Array | None = None  # (N,) scales of rows from the grid, if scales or sizes are learned
    weights: Array = np.ones(1)  # (J,) omega_j


class Prior(NamedTuple):
    """Hyperparameters; quantities with None, or mean_variance 0, are fixed."""

    noise: InverseGamma
    mean_variance: float  # infinite is flat
    latent: InverseGamma | None = None
    each: bool = False  # whether each component has its own tau2
    loading: InverseGamma | None = None
    alpha: Gamma | None = None
    unit: float = 1.0  # densities of W / unit do not depend on data units


class CrossProducts(NamedTuple):
    """Sums of the rows with their scores x, both divided by sqrt(u)."""

    products: Array  # (D, K), sum of y x'
    total: Array  # (K,), sum of x / sqrt(u)
    second: Any  # (K, K), sum of x x', or only its trace if W is orthonormal


class CachedState(NamedTuple):
    """A state and its products with the data."""

    state: GibbsState
    P: Array  # (N, K), (y_n - mu)' W
    squares: float  # sum of |y - mu - W x|^2 / u
    row: RowPosterior | None  # given the parameters, if scales or sizes are learned


class IndicatorPrior(NamedTuple):
    """A prior of Z; without a density, supports of equal size are equally probable."""

    draw: Callable[[Generator, ChainData, CachedState], GibbsState]  # redraws u, Z and X
    draw_alpha: Any = None  # (rng, prior, alpha, Z) -> alpha
    expected: Any = None  # (Z, alpha) -> probabilities (K,) with which a new row uses columns
    log_density: Any = None  # (Z, alpha) -> nats
    any_W: bool = False
    births: bool = False  # whether columns are created and deleted


# (rng, F (D, K), W (D, K)) -> a draw of W with density exp(tr(F'W)), or the density's maximum for
# the paper's MAP-within-Gibbs
DIRECTIONS: dict[str, Callable[[Generator, Array, Array], Array]] = {
    "auto": stiefel.draw,
    "sample": stiefel.draw,
    "polar": lambda _rng, F, W: stiefel.polar(F, W),
    "pymanopt": lambda _rng, F, W: stiefel.maximise(F, W),
}


def look(data: ChainData, state: GibbsState, squares: float | None = None) -> CachedState:
    """Compute a state's products with the data in one pass, or in two if `squares` are unknown."""
    W, mu = state.W, state.mu
    if squares is None:
        squares = residual_squares(*weighted_sums(data, state.X, state.u, pairs=True), W, mu)
    if data.grid is None:
        return CachedState(state, projections(data.rows, W) - mu @ W, squares, None)
    P = projections(data.rows, np.column_stack([W, mu]))
    away = np.maximum(data.each - 2.0 * P[:, -1] + mu @ mu, 0.0)
    P, variances = P[:, :-1] - mu @ W, (state.sigma2, state.tau2)
    model = RowModel(*variances, data.rows.d, 0.0, state.sizes, data.grid, state.weights)
    return CachedState(state, P, squares, weigh(P, away, model))


def weighted_sums(
    data: ChainData, X: Array, u: Any, pairs: bool = False
) -> tuple[ChainData, CrossProducts]:
    """Return the sum of the rows over sqrt(u), and their products with X (N, K) over sqrt(u)."""
    second = X.T @ X if pairs else float(np.square(X).sum())
    if u is None:
        return data, CrossProducts(products(data.rows, X), X.sum(axis=0), second)
    inverse = 1.0 / u
    S = X * np.sqrt(inverse)[:, None]
    sums = products(data.rows, np.column_stack([S, inverse]))
    squares, mass = float(inverse @ data.each), float(inverse.sum())
    scaled = data._replace(total=sums[:, -1], squares=squares, mass=mass)
    return scaled, CrossProducts(sums[:, :-1], S.sum(axis=0), second)


def residual_squares(data: ChainData, cross: CrossProducts, W: Array, mu: Array) -> float:
    """Return the sum of |y - mu - W x|^2 from the sums, not below 0."""
    fit = np.vdot(W, cross.products) - mu @ (W @ cross.total)
    power = np.vdot(W.T @ W, cross.second) if np.ndim(cross.second) else cross.second
    return max(float(data.squares_about(mu) - 2.0 * fit + power), 0.0)


def sweep(
    rng: Generator,
    data: ChainData,
    seen: CachedState,
    prior: Prior,
    indicators: IndicatorPrior,
    update_directions: Callable[[Generator, Array, Array], Array] = stiefel.draw,
) -> CachedState:
    """Redraw the block (u, Z, X), then W, mu, sigma2, tau2 or sigma2_W, alpha, omega and rho."""
    state = indicators.draw(rng, data, seen)
    new: dict[str, Any] = {}
    if indicators.any_W:
        state, used = draw_scales(rng, state), state.Z.any(axis=0) | (not indicators.births)
        scaled, cross = weighted_sums(data, state.X, None, pairs=True)
        left = cross.products - np.outer(state.mu, cross.total)
        pairs, sigma2_W = cross.second[np.ix_(used, used)], state.sigma2_W
        loadings = conditionals.loadings(left[:, used], pairs, state.sigma2, sigma2_W)
        W = np.zeros_like(state.W)
        W[:, used] = conditionals.draw_rows(rng, loadings)
    else:
        scaled, cross = weighted_sums(data, state.X, state.u)
        W = update_directions(rng, concentration(cross, state.mu, state.sigma2), state.W)
    Z, mu = state.Z, state.mu
    if prior.mean_variance > 0:
        left = scaled.total - W @ cross.total
        conditional = conditionals.mean(left, scaled.mass, state.sigma2, prior.mean_variance)
        mu = conditionals.draw_normal(rng, conditional)
    squares = residual_squares(scaled, cross, W, mu)
    noise = conditionals.noise_variance(prior.noise, data.size, squares)
    new |= {"W": W, "mu": mu, "sigma2": float(conditionals.draw_inverse_gamma(rng, noise))}
    if prior.latent is not None:
        latent = conditionals.latent_variance(prior.latent, state.X, Z, prior.each)
        drawn = conditionals.draw_inverse_gamma(rng, latent)
        new["tau2"] = np.broadcast_to(drawn, state.tau2.shape).copy()
    if prior.loading is not None:
        power = float(np.square(W[:, used]).sum())
        loading = conditionals.noise_variance(prior.loading, W[:, used].size, power)
        new["sigma2_W"] = float(conditionals.draw_inverse_gamma(rng, loading))
    if prior.alpha is not None and indicators.draw_alpha is not None:
        new["alpha"] = indicators.draw_alpha(rng, prior.alpha, state.alpha, Z)
    if data.grid is not None and state.u is not None and len(state.weights) > 1:
        counts = np.bincount(np.searchsorted(data.grid, state.u), minlength=len(state.weights))
        new["weights"] = rng.dirichlet(conditionals.shares(counts))
    if not isinstance(state.sizes, int):
        counts = np.bincount(Z.sum(axis=1), minlength=len(state.sizes))
        new["sizes"] = rng.dirichlet(conditionals.shares(counts))
    return look(data, state._replace(**new), squares)


def concentration(cross: CrossProducts, mu: Array, sigma2: float) -> Array:
    """Return F (D, K) of the density exp(tr(F'W)): F = sum_n (y_n - mu)(x_n * z_n)' / sigma2."""
    F = np.outer(cross.total, -mu).T  # column-major, as draws of W need
    F += cross.products
    F /= sigma2
    return F


def draw_scales(rng: Generator, state: GibbsState) -> GibbsState:
    """Rescale used columns, w_k -> c w_k and x_k -> x_k / c, which preserves the likelihood."""
    W, X, Z = state[:3]
    used = np.asarray(Z.any(axis=0))
    conditional = conditionals.scales(W[:, used], X[:, used], Z[:, used], state.sigma2_W, TAU2)
    scale = np.ones(len(used))
    scale[used] = np.exp(conditionals.draw_log_scales(rng, conditional) / 2)
    return state._replace(W=W * scale, X=X / scale)


def draw_block(rng: Generator, data: ChainData, seen: CachedState, *, how: str) -> GibbsState:
    """Redraw u if rows have scales, then Z by its logits, then X; for orthonormal columns."""
    if how != "block":
        from appca.models import gibbs_kernels as kernels
    state, P, (N, K) = seen.state, seen.P, seen.P.shape
    if seen.row is not None and data.grid is not None:
        u = data.grid[conditionals.draw_categories(rng, seen.row.scales)]
        state, P = state._replace(u=u), P / np.sqrt(u)[:, None]
    a, Z = em.logits(P, state.sigma2, state.tau2), state.Z.copy()
    if how == "block":  # each row's support as a whole, independent of the last one
        Z = polynomials.draw(rng, a, state.sizes)
    elif how == "swap":  # members in random order; the paper's order is not valid
        shape = N, int(state.sizes)
        order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
        kernels.scan_swaps(Z, a, order, rng.random(shape))
    else:
        births = how == INFINITE
        pseudo, log_rate = 0.0 if births else state.alpha / K, float(np.log(state.alpha / N))
        kernels.scan_columns(Z, a, pseudo, log_rate, rng.random((N, K + births)))
    X = draw_scores(rng, P, Z, state.sigma2, state.tau2)
    return state._replace(X=X, Z=Z)


def draw_scores(rng: Generator, P: Array, Z: Array, sigma2: float, tau2: Array) -> Array:
    """Draw x_nk ~ N(m_nk, v_k) where z_nk = 1, zero elsewhere."""
    shrink, variance = em.posterior(sigma2, tau2)
    draws = rng.standard_normal(P.shape)
    draws *= np.sqrt(variance)
    draws += P * shrink
    draws[~Z] = 0.0
    return draws


def scan_fixed(rng: Generator, _data: ChainData, seen: CachedState) -> GibbsState:
    """Redraw Z, each slot of each row once in a new random order, and X, under any W."""
    state, (c, model) = seen.state, projected(seen)
    rows = RowSupports(c, supports.members_of(state.Z), supports.draw_seeds(rng, len(c)))
    Z = supports.indicators(supports.search(rows, DRAW, model)[0], c.shape[1])
    return state._replace(X=supports.scores_given(c, Z, model, rng)[0], Z=Z)


def scan_free(rng: Generator, data: ChainData, seen: CachedState, *, births: bool) -> GibbsState:
    """Redraw Z with X integrated out, then X, row by row; `births` create and delete columns."""
    from appca.models.gibbs_kernels import scan

    state, (N, K) = seen.state, seen.P.shape
    Z, X, Wt = state.Z.copy(), np.zeros_like(state.X), np.ascontiguousarray(state.W.T)
    kappa = rng.poisson(births * state.alpha / N, N)
    columns = np.sqrt(state.sigma2_W) * rng.standard_normal((kappa.sum(), data.rows.d))
    order = rng.permuted(np.tile(np.arange(K), (N, 1)), axis=1)
    numbers = rng.random((N, K + 1)), rng.standard_normal((N, K)), order
    Y, pseudo = np.ascontiguousarray(data.rows.X).view(), 0.0 if births else state.alpha / K
    Y.flags.writeable = False  # avoids a second kernel, which takes seconds to compile
    origin = 0.0 if data.rows.origin is None else data.rows.origin
    centred = Y, np.asarray(origin + state.mu, np.float64), seen.P.copy()
    scan(Z, X, Wt, centred, (state.sigma2, TAU2), pseudo, (kappa, columns), numbers)
    return state._replace(W=Wt.T * (Z.any(axis=0) | (not births)), X=X, Z=Z)


def projected(seen: CachedState) -> tuple[Array, CollapsedModel]:
    """Return c = W'(y - mu) / sigma2 (N, K) and A = W'W / sigma2."""
    state = seen.state
    return seen.P / state.sigma2, CollapsedModel(state.W.T @ state.W / state.sigma2, PRIOR)


_FINITE = (
    conditionals.draw_alpha_finite,
    conditionals.expected_beta_bernoulli,
    conditionals.log_beta_bernoulli,
)
_BUFFET = conditionals.draw_alpha_truncated, conditionals.expected_buffet
_labelled, _unordered = (partial(conditionals.log_buffet, labelled=yes) for yes in (True, False))
PRIORS = {
    "block": IndicatorPrior(partial(draw_block, how="block")),
    "swap": IndicatorPrior(partial(draw_block, how="swap")),
    "ibp": IndicatorPrior(partial(draw_block, how=INFINITE), *_BUFFET, _labelled),
    "beta-bernoulli": IndicatorPrior(partial(draw_block, how=FINITE), *_FINITE),
    FIXED: IndicatorPrior(scan_fixed, any_W=True),
    FINITE: IndicatorPrior(partial(scan_free, births=False), *_FINITE, any_W=True),
    INFINITE: IndicatorPrior(partial(scan_free, births=True), *_BUFFET, _unordered, True, True),
}


def log_normal(squares: float, n: int, variance: float) -> float:
    """Return the log density of n normal numbers around 0, given the sum of their squares."""
    return -0.5 * n * math.log(2.0 * math.pi * variance) - squares / (2.0 * variance)


def log_priors(state: GibbsState, prior: Prior, indicators: IndicatorPrior) -> tuple[float, float]:
    """Return log P(Z | alpha) or log P(Z | rho), and for any W, log p(W / unit | sigma2_W)."""
    (N, K), of_W = state.Z.shape, 0.0
    if indicators.log_density is not None:
        of_Z = float(indicators.log_density(state.Z, state.alpha))
    elif isinstance(state.sizes, int):
        of_Z = -float(N * polynomials.log_binomial(K, state.sizes))
    else:
        each = np.log(state.sizes) - polynomials.log_counts(K)
        of_Z = float(each[state.Z.sum(axis=1)].sum())
    if indicators.any_W:  # with births, only columns in use count
        n = len(state.W) * int(state.Z.any(axis=0).sum() if indicators.births else K)
        of_W = log_normal(float(np.square(state.W).sum()), n, state.sigma2_W)
        of_W += n * math.log(prior.unit)
    return of_Z, of_W


def row_gains(seen: CachedState, indicators: IndicatorPrior) -> Array:
    """Return log p(y | Z) - log p(y | none), with Z summed out if supports are few."""
    state, unbounded = seen.state, indicators.log_density is not None
    if not indicators.any_W:
        a = em.logits(seen.P, state.sigma2, state.tau2)
        if unbounded:
            return np.asarray(a.sum(axis=1, where=state.Z))
        return polynomials.inclusion(a, int(state.sizes), wanted=False)[0]
    if unbounded:
        from appca.models.gibbs_kernels import support_increments

        G, v = state.W.T @ state.W, (state.sigma2, TAU2)
        return np.asarray(support_increments(state.Z, G, seen.P, v))
    (c, model), L = projected(seen), int(state.sizes)
    if math.comb(c.shape[1], L) <= SETS_IN_PASSING:
        return set_tree.sums(c, model, L, moments=False).log_sum
    return supports.scores_given(c, state.Z, model)[1]


def measure(data: ChainData, prior: Prior, indicators: IndicatorPrior, at: CachedState) -> Measures:
    """Return exact measures with X, and if possible u and Z, integrated out."""
    state, bounded = at.state, indicators.log_density is None
    of_Z, of_W = log_priors(state, prior, indicators)
    if at.row is not None:
        likelihood, of_Z = float(at.row.log_density.sum()), 0.0
    else:
        # log density of all rows without components
        likelihood = log_normal(data.squares_about(state.mu), data.size, state.sigma2)
        likelihood += float(row_gains(at, indicators).sum())
        likelihood, of_Z = (likelihood + of_Z, 0.0) if bounded else (likelihood, of_Z)
    total = likelihood + of_Z + conditionals.log_density(prior.noise, state.sigma2) + of_W
    number = int(state.Z.any(axis=0).sum()) if indicators.any_W and not bounded else 0
    if prior.latent is not None:
        learned = state.tau2 if prior.each else float(state.tau2[0])
        total += conditionals.log_density(prior.latent, learned)
    if prior.loading is not None:
        total += conditionals.log_density(prior.loading, state.sigma2_W)
    if prior.alpha is not None:
        total += conditionals.log_gamma_density(prior.alpha, state.alpha)
    return Measures(likelihood, total, number)


def record(data: ChainData, prior: Prior, indicators: IndicatorPrior, seen: CachedState) -> Draws:
    """Record a draw, with W and mu in the precision of the data, and its complete log-likelihood.

    This is the paper's log p(Y, X, Z, u | W, mu, sigma2, tau2, omega), with scores in data units.
    """
    state, dtype, unbounded = seen.state, data.rows.dtype, indicators.log_density is not None
    active = -0.5 * (np.log(2 * np.pi * state.tau2) + np.square(state.X) / state.tau2)
    joint = log_normal(seen.squares, data.size, state.sigma2) + float(active.sum(where=state.Z))
    if state.u is not None and data.grid is not None:
        joint -= 0.5 * float((data.rows.d + state.Z.sum(axis=1)) @ np.log(state.u))
        joint += float(np.log(state.weights)[np.searchsorted(data.grid, state.u)].sum())
    of_Z, of_W = log_priors(state, prior, indicators)
    joint += of_Z + (of_W if unbounded else 0.0)  # else given W
    if not indicators.any_W and (unbounded or not isinstance(state.sizes, int)):
        # Draws differ in the number of scores, so without this term the unit of the data matters.
        joint += 0.5 * int(state.Z.sum()) * float(np.log(data.squares / data.size))
    pairs = state.Z[row_pairs(len(state.Z))]  # pairs of rows, to count shared columns
    scores = state.X if state.u is None else state.X * np.sqrt(state.u)[:, None]
    kept: Draws = {
        "Z_mean": state.Z.astype(np.float64),  # averaged while running, like X_mean
        "X_mean": scores,
        "components": state.W.T.astype(dtype),
        "mean": state.mu.astype(dtype),
        "noise_variance": np.asarray(state.sigma2),
        "occupancy": np.sort(state.Z.sum(axis=0))[::-1],
        "shared": pairs.all(axis=1).sum(axis=1),
        "log_joint": np.asarray(joint),
    }
    if indicators.expected is not None:
        used = state.Z.any(axis=0)
        kept |= {"alpha": np.asarray(state.alpha), "n_components": np.asarray(used.sum())}
        kept["weights"] = np.where(used, indicators.expected(state.Z, state.alpha), 0.0)
        if not used.any():
            kept["weights"][0] = conditionals.LEAST_WEIGHT
    if indicators.any_W:
        return kept | {"loading_variance": np.asarray(state.sigma2_W)}
    kept["latent_variance"] = state.tau2
    if len(state.weights) > 1:
        kept["row_scale_probabilities"] = state.weights
    if not isinstance(state.sizes, int):
        kept["size_probabilities"] = state.sizes
    return kept


def prior_of(model: Any, variance: float, *learned: str, **more: Any) -> Prior:
    """Return the prior from an estimator's parameters, in units of the mean feature variance."""
    for name in ("noise", *learned):
        shape, scale = (getattr(model, f"{name}_{part}") for part in ("shape", "scale"))
        more[name] = InverseGamma(shape, scale * variance)
    if getattr(model, "alpha", None) == "infer":
        more["alpha"] = Gamma(model.alpha_shape, model.alpha_rate)
    return Prior(mean_variance=math.inf if model.mean == "learned" else 0.0, **more)


def _staged(callback: Callback, before: str) -> Callback:
    return lambda progress: callback(progress._replace(stage=before + progress.stage))


# (rng, callback, whether to start far from the first chain) -> state, stop reason of its fit
Start = Callable[[Generator, Callback | None, bool], tuple[GibbsState, str]]


def run_chains(
    rng: Generator,
    data: ChainData,
    model: Any,
    sampling: tuple[Any, ...],
    start: Start,
    callback: Callback | None,
    *,
    apart: bool = True,
) -> Chains:
    """Run the chains of an estimator, or until the callback raises StopIteration.

    `sampling` is a `Prior`, an `IndicatorPrior` and optionally an entry of `DIRECTIONS`. Chains
    start far from the first chain, or from one fit or, with `apart`, each from its own fit. They
    advance together, so a stopped run has draws of every chain, at least the last state.
    """
    prior, indicators = sampling[:2]
    rngs = [np.random.default_rng(seed) for seed in rng.integers(2**63, size=model.n_chains)]
    far = getattr(model, "chain_starts", OVERDISPERSED) == OVERDISPERSED
    n_fits, begun, why = len(rngs) if apart and not far else 1, list[CachedState](), ""
    for i in range(len(rngs) if far else n_fits):
        stage = f"chain {i + 1} of {n_fits}: " if n_fits > 1 else ""
        hear = _staged(callback, stage) if callback and i < n_fits else None
        state, why = start(rngs[i], hear, i >= n_fits)
        begun.append(look(data, state))
        if why == STOPPED:
            break
    states, measures = [begun[i % len(begun)] for i in range(len(rngs))], list[Measures]()
    burn_in, n_draws, thin = model.burn_in, model.n_draws, model.thin
    if why == STOPPED:
        burn_in, n_draws, thin, callback = 0, 1, 1, None
    n_sweeps = burn_in + n_draws * thin
    store, trace = DrawStore(len(states), n_draws), np.empty((len(states), n_sweeps))
    watches = [watcher(callback, stage, n_sweeps) for stage in ("burn-in", "draws")]
    reason = STOPPED if why == STOPPED else f"made all {n_sweeps} sweeps of every chain"
    for i in range(1, n_sweeps + 1):
        pairs = zip(rngs, states, strict=True)
        states = [sweep(rng, data, state, *sampling) for rng, state in pairs]
        measures = [measure(data, prior, indicators, state) for state in states]
        trace[:, i - 1] = [m.log_likelihood for m in measures]
        kept = i > burn_in and (i - burn_in) % thin == 0
        stopped = watches[i > burn_in](i, float(trace[:, i - 1].mean()))
        if kept or (stopped and not store.kept):
            store.keep(states, measures, [record(data, prior, indicators, at) for at in states])
        if stopped:
            trace, reason = trace[:, :i], STOPPED
            break
    posterior = store.posterior()
    if data.rows.origin is not None:  # in place, because these draws may be large
        posterior["mean"] += data.rows.origin.astype(np.float64)
    return Chains(posterior, store.best, trace, reason)


def fit_by_gibbs(rng: Generator, rows: Rows, begin: Any, control: EMControl, model: Any) -> Chains:
    """Sample the posterior of adaptive PPCA; the first chain starts from `begin`, a fit by EM."""
    settings = control.settings
    data = data_of(rows, None if settings.variant == PAPER else settings.grid)

    def start(rng: Generator, heard: Callback | None, far: bool) -> tuple[GibbsState, str]:
        if far:
            V = principal(rng, rows, settings.n_components).V
            V = V @ climb.random_rotation(rng, V)  # no mode is preferred
            state, reason = evenly(climb.first_state(rows, V, settings), settings), ""
        else:
            fit = begin(rng, control._replace(callback=heard))
            state, reason = fit.state, fit.stop_reason
        W, mu, L = state.W, state.displacement, settings.n_active
        a = em.logits(projections(data.rows, W) - mu @ W, state.noise, state.latent)
        begun = W, np.zeros(a.shape), polynomials.top(a, L), mu, state.noise, state.latent
        sizes = L if state.sizes is None else state.sizes
        u = None if data.grid is None else np.full(len(a), data.grid[0])
        return GibbsState(*begun, sizes=sizes, u=u, weights=state.weights), reason

    learned = ["latent"] * isinstance(settings.latent, str)
    prior = prior_of(model, data.squares / data.size, *learned, each=settings.latent == "component")
    sampling = prior, PRIORS[model.z_update], DIRECTIONS[model.w_update]
    apart = isinstance(model.init, str) and model.init == "random"
    return run_chains(rng, data, model, sampling, start, control.callback, apart=apart)


def drawn_parameters(state: GibbsState) -> SubspaceState:
    """Return the parameters of a draw as a state of EM."""
    sizes = None if isinstance(state.sizes, int) else state.sizes
    at = SubspaceState(state.W, np.zeros(len(state.tau2)), state.tau2, state.sigma2, state.mu)
    return at._replace(weights=state.weights, sizes=sizes)
