"""Fits of aPPCA with noise per feature, row scales or learned sizes, by EM and Gibbs sampling.

Gibbs sampling for aPPCA with a scale of each row, or sizes, that are learned.

    u_n ~ omega over a grid,  z_n ~ rho_l / C(K, l) with l = |z_n|,  omega and rho uniform

The row (y_n - mu) / sqrt(u_n) follows the paper's model, and its scores are x_n / sqrt(u_n). So
(u_n, z_n, x_n) is drawn as one block, each given the ones before it and with the others integrated
out; then the paper's conditionals hold for the scaled rows.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from appca.models import conditionals, gibbs, numerics, polynomials, starts
from appca.models import variant_em as variants
from appca.models.chains import Chains, Draws, Measures, Sampler
from appca.models.climb import (
    FEW_NUMBERS,
    FEW_SUMS,
    FIRST_TOL,
    LARGER_SAMPLE,
    REFINEMENT_ITERATIONS,
    SCREENING_TOL,
    EMControl,
    fit_by_em,
    fit_in_closed_form,
    halt,
    sample_size,
    some_rows,
)
from appca.models.em import EMSettings, SubspaceState, floor_of, sums_a_pass
from appca.models.gibbs import (
    DIRECTIONS,
    Beginnings,
    Plan,
    SubspaceCrossProducts,
    SubspaceGibbsState,
    SubspacePrior,
    UpdateDirections,
    prior_of,
    run_chains,
)
from appca.models.loop import (
    CONVERGED,
    STOPPED,
    WINDOW,
    Callback,
    EMResult,
    Momentum,
    Progress,
    iterate,
    nesterov,
    plain,
    watcher,
)
from appca.models.numerics import Array
from appca.models.products import ChainData, products, projections, row_squares
from appca.models.rows import Observations, Rows, about
from appca.models.sparse_rows import ShiftedSparse
from appca.models.spectrum import principal
from appca.models.starts import Candidate, random_rotation
from appca.models.variant_em import (
    RowModel,
    VariantSettings,
    VariantState,
    Weighed,
    settings_for,
    weigh,
)

# Nats a row over ten iterations on samples, which cost a fifteenth or a fifth of all rows.
SAMPLE_TOL = 3e-2
# On the larger sample, which all rows follow. With a tenth of it solids take up to 30 iterations
# more there, and end where they end now.
LARGER_TOL = 0.3
# Times tol, of the gain of one iteration over all rows after a climb on samples. With 50 a fit of
# rendered solids takes up to three times the iterations for 0.2 nats of 1,200 a row; starts are 1
# apart.
LAST_SHARE = 200.0
# Iterations that momentum is said to have behind it where a climb goes on with other rows. Without,
# all rows take two or three iterations more.
LATER_AGE = 6


class VariantFit(NamedTuple):
    """A fitted state in the features of the data, and how it was reached."""

    state: VariantState
    settings: VariantSettings
    log_likelihoods: list[float]  # after each iteration, total, nats
    stop_reason: str


def fit_variant(
    rng: np.random.Generator,
    rows: Observations,
    start: Array | list[Candidate] | VariantState,
    control: EMControl,
    settings: VariantSettings,
) -> VariantFit:
    """Fit by EM, from a state or from where directions or the best of candidates lead.

    Many rows, and those that are not in memory, are climbed by a sample first.
    """
    stopped, window = False, WINDOW
    if isinstance(start, VariantState):
        start = start._replace(scale=_scale_from(start.scale, settings))
    else:
        sample = _sample(rng, rows, settings.em)
        at = settings if sample is rows else _settings_on(sample, settings)
        others = _other_starts(start, sample, settings.em) if sample is rows else 0
        start, stopped = _first_state(rng, sample, start, control, at)
        if others and not stopped:
            start, stopped = _highest(rng, sample, start, others, control, at)
        if sample.n < rows.n and not stopped:
            window = 1
            start, stopped = _climb_sample(start, sample, control, at, later=False)
            size = LARGER_SAMPLE * sample.n
            if size * LARGER_SAMPLE <= rows.n and not stopped:
                larger = some_rows(rng, rows, size, learn_mean=settings.em.learn_mean)
                at = _settings_on(larger, settings)
                start = _on_other_rows(start, sample, larger, at)
                start, stopped = _climb_sample(start, larger, control, at, later=True)
                sample = larger
        start = _on_other_rows(start, sample, rows, settings)
    if stopped:  # a single step, so that the fit is complete
        run = _climb(start, rows, control._replace(max_iter=1, callback=None), settings, window)
        run = run._replace(stop_reason=STOPPED)
    else:
        run = _climb(start, rows, control, settings, window)
    return VariantFit(run.state, settings, run.log_likelihoods, run.stop_reason)


def _sample(rng: np.random.Generator, rows: Observations, em: EMSettings) -> Rows:
    size = sample_size(rows, em.n_components)
    if size == rows.n and isinstance(rows, Rows):
        return rows
    return some_rows(rng, rows, size, learn_mean=em.learn_mean)


def _settings_on(sample: Rows, settings: VariantSettings) -> VariantSettings:
    """Return the settings of EM on some of the rows, with the floors of noise of all rows."""
    at = settings_for(settings.em, settings.variant, sample)
    return at._replace(most=np.where(at.most > 0.0, settings.most, 0.0))


def _first_state(
    rng: np.random.Generator,
    rows: Rows,
    start: Array | list[Candidate],
    control: EMControl,
    settings: VariantSettings,
) -> tuple[VariantState, bool]:
    """Fit the paper's model, to features of unit variance where each has its own noise."""
    unit, by_feature = settings.unit, settings.variant.by_feature
    varies = unit > 0.0
    if by_feature:
        c = unit[varies].astype(rows.dtype)
        origin = None if rows.origin is None else rows.origin[varies] * c
        start = start if isinstance(start, list) else start[varies] * c[:, None]
        X: Any = rows.X
        sparse = isinstance(X, ShiftedSparse)
        X = X.scaled(columns=unit, kept=varies) if sparse else X[:, varies] * c
        rows = about(X, origin, rows.weights)
    em = settings.em._replace(floor=floor_of(rows))
    tol = max(FIRST_TOL, control.tol)
    heard = None if control.callback is None else partial(_of_start, callback=control.callback)
    first = control._replace(settings=em, tol=tol, mass=rows.mass, callback=heard)
    if em.n_active == em.n_components and isinstance(em.latent, str):
        fit = fit_in_closed_form(rng, rows, first)
    else:
        fit = fit_by_em(rng, rows, start, first)
    W, shift, latent, noise = fit.state
    V = np.zeros((len(unit), W.shape[1]))
    V[varies] = W
    by, K, J = noise if by_feature else 1.0, len(latent), len(settings.grid)
    state = VariantState(
        V,
        shift / np.sqrt(by),
        np.zeros(len(unit)),
        latent / by,
        noise / by,
        np.minimum(unit / np.sqrt(by), settings.most),
        np.full(J, 1.0 / J),
        np.full(K + 1, 1.0 / (K + 1)),
    )
    return state, fit.stop_reason == STOPPED


def _other_starts(start: Array | list[Candidate], rows: Rows, em: EMSettings) -> int:
    """Count the random rotations that rows as few as these are climbed from, too."""
    sums = sums_a_pass(rows.n, em.n_components, em.n_active)
    few = 0 < sums <= FEW_SUMS and rows.n * rows.d <= FEW_NUMBERS
    if isinstance(start, list) and few:
        return sum(c.rotation is random_rotation and not c.extra for c in start)
    return 0


def _highest(
    rng: np.random.Generator,
    rows: Rows,
    first: VariantState,
    others: int,
    control: EMControl,
    settings: VariantSettings,
) -> tuple[VariantState, bool]:
    """Climb from a first state and from random rotations of its directions; return the highest."""
    runs, unit = list[EMResult[VariantState]](), settings.unit[:, None]
    for number in range(others + 1):
        start, stopped = first, False
        if number:
            V = first.V @ random_rotation(rng, first.V)
            W = np.divide(V, unit, out=np.zeros_like(V), where=unit > 0.0)
            start, stopped = _first_state(rng, rows, W, control, settings)
        if not stopped:
            path = _path(start, rows, settings, age=0)
            stage = f"start {number + 1} of {others + 1}"
            runs.append(control.run(stage, path, rows, REFINEMENT_ITERATIONS, SCREENING_TOL))
        stopped = stopped or runs[-1].stop_reason == STOPPED
        if stopped:
            break
    return max(runs, key=lambda run: run.log_likelihood).state, stopped


def _of_start(progress: Progress, callback: Callback) -> None:
    callback(progress._replace(stage=f"start: {progress.stage}"))


def _climb_sample(
    start: VariantState, sample: Rows, control: EMControl, settings: VariantSettings, *, later: bool
) -> tuple[VariantState, bool]:
    path = _path(start, sample, settings, age=LATER_AGE if later else 0)
    stage = f"refinement on {sample.n:,} rows"
    tol = LARGER_TOL if later else SAMPLE_TOL
    run = control.run(stage, path, sample, REFINEMENT_ITERATIONS, tol)
    return run.state, run.stop_reason == STOPPED


def _on_other_rows(
    state: VariantState, sample: Rows, rows: Observations, settings: VariantSettings
) -> VariantState:
    """Take a state about the origin of a sample to that of other rows."""
    away = np.zeros(rows.d)
    if rows.origin is not None and sample.origin is not None:
        away = sample.origin.astype(np.float64) - rows.origin
    return state._replace(offset=state.offset + away, scale=_scale_from(state.scale, settings))


def _scale_from(scale: Array, settings: VariantSettings) -> Array:
    """Scales (d,) of other rows; where they had a constant feature, all its variance is noise."""
    return np.asarray(np.minimum(np.where(scale > 0.0, scale, settings.unit), settings.most))


def _path(
    start: VariantState, rows: Observations, settings: VariantSettings, *, age: int
) -> Iterator[tuple[float, VariantState]]:
    advance = partial(variants.step, rows=rows, settings=settings)
    extend = partial(variants.extend, settings=settings)
    return nesterov(advance, start, extend, Momentum(age=age))


def _climb(
    start: VariantState,
    rows: Observations,
    control: EMControl,
    settings: VariantSettings,
    window: int,
) -> EMResult[VariantState]:
    last = window == 1
    if control.accelerate:
        path = _path(start, rows, settings, age=LATER_AGE if last else 0)
    else:
        path = plain(partial(variants.step, rows=rows, settings=settings), start)
    each = LAST_SHARE * WINDOW if last else 1.0
    run = iterate(
        path,
        tol=each * control.tol * rows.mass,
        max_iter=control.max_iter,
        window=window,
        watch=watcher(control.callback, "fit", control.max_iter),
        halt=partial(halt, floor=0.0 if settings.variant.by_feature else settings.em.floor),
    )
    if not last or not run.stop_reason.startswith(CONVERGED):
        return run
    words = f"the last iteration gained below {LAST_SHARE:g} times tol"
    return run._replace(stop_reason=f"{CONVERGED}: {words}")


class VariantGibbsState(NamedTuple):
    """Everything one sweep reads and writes."""

    scaled: SubspaceGibbsState  # of the paper's model; its scores X are x_n / sqrt(u_n)
    u: Array  # (N,) scales of rows, from the grid
    weights: Array  # (J,) omega_j
    sizes: int | Array  # L, or rho_l (K + 1,)

    def row_model(self, n_features: int, grid: Array) -> RowModel:
        """Return what decides about a row."""
        sigma2, tau2 = self.scaled.sigma2, self.scaled.tau2
        return RowModel(sigma2, tau2, n_features, 0.0, self.sizes, grid, self.weights)


class VariantData(NamedTuple):
    """The rows, and what no sweep changes."""

    rows: Rows
    squares: Array  # (N,) |y_n - origin|^2
    grid: Array  # (J,) scales of rows


class CachedVariantState(NamedTuple):
    """A state, its products with the rows, and the posterior of rows given its parameters."""

    state: VariantGibbsState
    P: Array  # (N, K), (y_n - mu)' W
    row: Weighed
    log_joint: float  # of scaled rows, their scores and supports; 0 before the first sweep


def data_of(rows: Rows, grid: Array) -> VariantData:
    """Return the rows with their squared distances from the origin."""
    return VariantData(rows, row_squares(rows), grid)


def look_at_variant(
    data: VariantData, state: VariantGibbsState, log_joint: float = 0.0
) -> CachedVariantState:
    """Project the rows, and weigh their scales, sizes and supports."""
    paper, K = state.scaled, state.scaled.W.shape[1]
    P = projections(data.rows, np.column_stack([paper.W, paper.mu]))
    about_mu = data.squares - 2.0 * P[:, K] + paper.mu @ paper.mu
    P = P[:, :K] - paper.mu @ paper.W
    row = weigh(P, np.maximum(about_mu, 0.0), state.row_model(data.rows.d, data.grid))
    return CachedVariantState(state, P, row, log_joint)


def sweep(
    rng: np.random.Generator,
    data: VariantData,
    seen: CachedVariantState,
    prior: SubspacePrior,
    update_directions: UpdateDirections,
) -> CachedVariantState:
    """Redraw scales, supports and scores of rows, then the parameters given these."""
    state, J = seen.state, len(data.grid)
    at = conditionals.draw_categories(rng, seen.row.scales)
    u, paper = data.grid[at], state.scaled
    P = seen.P / np.sqrt(u)[:, None]
    Z = draw_supports(rng, numerics.logits(P, paper.sigma2, paper.tau2), state.sizes)
    X = gibbs.draw_scores(rng, P, Z, paper.sigma2, paper.tau2)
    scaled, cross = weighted_sums(data, X, u)
    paper = paper._replace(X=X, Z=Z)
    paper = gibbs.redraw_parameters(rng, scaled, cross, paper, prior, update_directions)
    weights, sizes = state.weights, state.sizes
    if J > 1:
        weights = draw_shares(rng, np.bincount(at, minlength=J))
    if not isinstance(sizes, int):
        sizes = draw_shares(rng, np.bincount(Z.sum(axis=1), minlength=len(sizes)))
    moved = VariantGibbsState(paper, u, weights, sizes)
    return look_at_variant(data, moved, complete_density(data, moved, scaled, cross))


def draw_supports(rng: np.random.Generator, logits: Array, sizes: int | Array) -> Array:
    """Draw the support of each row as a whole, of L components or of any number."""
    if isinstance(sizes, int):
        return np.asarray(polynomials.draw(rng, logits, sizes))
    return np.asarray(polynomials.draw_sized(rng, logits, sizes))


def draw_shares(rng: np.random.Generator, counts: Array) -> Array:
    """Draw the probabilities of values that occurred so often."""
    return np.asarray(rng.dirichlet(conditionals.shares(counts).a))


def weighted_sums(data: VariantData, X: Array, u: Array) -> tuple[ChainData, SubspaceCrossProducts]:
    """Sum up the rows over sqrt(u) (N,), and with scores X (N, K) over sqrt(u); one pass."""
    inverse, K = 1.0 / u, X.shape[1]
    S = X * np.sqrt(inverse)[:, None]
    sums = products(data.rows, np.column_stack([S, inverse]))
    squares, mass = float(inverse @ data.squares), float(inverse.sum())
    scaled = ChainData(data.rows, sums[:, K], squares, mass)
    return scaled, SubspaceCrossProducts(sums[:, :K], S.sum(axis=0))


def complete_density(
    data: VariantData, state: VariantGibbsState, scaled: ChainData, cross: SubspaceCrossProducts
) -> float:
    """Give log p(Y, X, Z, u | parameters), x_n the scores in the unit of the data."""
    paper, u, weights, sizes = state
    total = gibbs.complete_density(scaled, gibbs.CachedSubspaceState(paper, np.empty(0), cross))
    used = paper.Z.sum(axis=1)
    total -= 0.5 * float((data.rows.d + used) @ np.log(u))
    total += float(np.log(weights[np.searchsorted(data.grid, u)]).sum())
    K = paper.Z.shape[1]
    if isinstance(sizes, int):
        return total - len(u) * numerics.log_binomial(K, sizes)
    return total + float((np.log(sizes) - polynomials.log_counts(K))[used].sum())


def variant_sampler(
    data: VariantData, prior: SubspacePrior, update_directions: UpdateDirections
) -> Sampler[CachedVariantState]:
    """Bundle sweep, traces and records for `chains.sample`."""
    return Sampler(
        lambda rng, seen: sweep(rng, data, seen, prior, update_directions),
        partial(measure, prior),
        partial(record, data),
        average,
    )


def measure(prior: SubspacePrior, seen: CachedVariantState) -> Measures:
    """Give the exact log-likelihood, all of a row integrated out; omega and rho are uniform."""
    total = float(seen.row.log_density.sum())
    return Measures(total, total + gibbs.hyper_density(seen.state.scaled, prior))


def record(data: VariantData, seen: CachedVariantState) -> Draws:
    """Keep what a draw keeps."""
    kept = gibbs.describe(data.rows, seen.state.scaled)
    kept["log_joint"] = np.asarray(seen.log_joint)
    if len(data.grid) > 1:
        kept["row_scale_probabilities"] = seen.state.weights
    if not isinstance(seen.state.sizes, int):
        kept["size_probabilities"] = seen.state.sizes
    return kept


def average(seen: CachedVariantState) -> Draws:
    """Give what is only kept as a running mean."""
    paper, u = seen.state.scaled, seen.state.u
    scores = paper.X * np.sqrt(u)[:, None]
    return {"Z_mean": paper.Z.astype(np.float64), "X_mean": scores}


class SampledVariant(NamedTuple):
    """The published draw as a state of EM, and all chains."""

    fit: VariantFit
    chains: Chains[CachedVariantState]


def fit_variant_by_gibbs(
    rng: np.random.Generator,
    rows: Rows,
    start: Array | list[Candidate] | VariantState,
    control: EMControl,
    settings: VariantSettings,
    plan: Plan,
) -> SampledVariant:
    """Sample; publish the draw of largest density. The first chain starts from a fit by EM."""
    data = data_of(rows, settings.grid)

    def fitted(rng: np.random.Generator, heard: Callback | None) -> tuple[CachedVariantState, str]:
        fit = fit_variant(rng, rows, start, control._replace(callback=heard), settings)
        return look_at_variant(data, _first(fit.state, rows.n, settings)), fit.stop_reason

    def afar(rng: np.random.Generator) -> CachedVariantState:
        V = principal(rng, rows, settings.em.n_components).V
        V = V @ starts.random_rotation(rng, V)  # far from any mode
        begun = _about_origin(starts.first_state(rows, V, settings.em), rows.d, settings)
        return look_at_variant(data, _first(begun, rows.n, settings))

    prior = prior_of(plan, settings.em, float(data.squares.mean()) / rows.d)
    sampler = variant_sampler(data, prior, DIRECTIONS[plan.directions])
    chains = run_chains(rng, rows, plan, Beginnings(fitted, afar), sampler, control.callback)
    paper, _, weights, sizes = chains.best.state
    at = SubspaceState(paper.W, np.zeros(paper.W.shape[1]), paper.tau2, paper.sigma2)
    state = _about_origin(at, rows.d, settings)._replace(offset=paper.mu, weights=weights)
    state = state if isinstance(sizes, int) else state._replace(sizes=sizes)
    return SampledVariant(VariantFit(state, settings, [], chains.stop_reason), chains)


def _first(state: VariantState, n: int, settings: VariantSettings) -> VariantGibbsState:
    """Turn parameters into the state of a chain, whose first sweep draws all else."""
    sizes = state.sizes if settings.variant.learn_sizes else settings.em.n_active
    X = np.zeros((n, len(state.latent)))
    scaled = SubspaceGibbsState(
        state.V, X, X.astype(bool), state.displacement, state.noise, state.latent, 1.0
    )
    return VariantGibbsState(scaled, np.full(n, settings.grid[0]), state.weights, sizes)


def _about_origin(state: SubspaceState, d: int, settings: VariantSettings) -> VariantState:
    """Take a state of the paper's model without a mean; all scales and sizes as probable."""
    (W, shift, latent, noise), J = state, len(settings.grid)
    K = len(latent)
    even = np.full(J, 1.0 / J), np.full(K + 1, 1.0 / (K + 1))
    return VariantState(W, shift, np.zeros(d), latent, noise, np.ones(d), *even)
