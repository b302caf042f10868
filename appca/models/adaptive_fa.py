"""Adaptive factor analysis: every row uses exactly L of K factors of any direction and length."""

import math
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from appca.models import data_checks, factor_em, gibbs
from appca.models.climb import EMControl
from appca.models.em import NOISE_FLOOR, SubspaceStatistics, floor_of
from appca.models.estimator import Criteria, generator
from appca.models.gibbs import GibbsState
from appca.models.independent_components import NAMED
from appca.models.loop import Callback, spoken
from appca.models.numerics import Array
from appca.models.partial_fit import EMSteps, InBatches, LastFit
from appca.models.posterior import SupportPosterior, publish_factors
from appca.models.products import data_of
from appca.models.rows import Rows, about, centre_of, distinct
from appca.models.settings import MOST_SETS
from appca.models.supports import ANNEALED, SETS_IN_PASSING, draw_seeds, indicators
from appca.models.threads import single_threaded_blas

SCREENING_COST, RANDOM_STARTS = 10_000_000, 24  # rows x supports x L^2 take about a second
ROTATED = "random rotation"


@dataclass(eq=False, repr=False)
class AdaptiveFactorAnalysis(InBatches, Criteria):
    """Adaptive factor analysis (aFA).

    y_n = W (x_n * z_n) + mu + e_n with any D x K matrix W, x_nk ~ N(0, 1), e_n ~ N(0, sigma2 I)
    and z_n uniform over the supports of exactly L of the K factors. x is integrated out. EM sums
    over all supports if they are few, and otherwise searches for the best support of each row.

    Parameters
    ----------
    n_components : int
        Total number K of factors, at most N - 1; K may exceed D.
    n_active : int
        Number L of factors that a row uses, at most K.
    inference : {"em", "gibbs"}
        "gibbs" samples the posterior, starting from EM.
    init : {"auto", "ica", "pca", "dictionary", "random"} or array (K, D)
        Start of W: independent components, principal components (the paper's start, from which EM
        does not find the factors), rows of the data, random, or an array. If K exceeds
        min(N - 1, D), "dictionary" replaces "ica". "auto" is "ica"; if supports are few, it screens
        "ica", "pca" and up to 24 random starts on at most 2,500 rows, or 400 per factor.
    allocation : {"auto", "exact", "best"}
        "exact": the E step sums over all supports, and EM maximizes the likelihood. "best": each
        row takes its best support, and EM maximizes log p(Y, Z) (classification EM, the paper).
        "auto" is exact up to 256 supports.
    loading_variance : float or None
        Prior variance sigma2_W of the entries of W. If None, EM has no prior and "gibbs" learns it.
    n_init : int
        Number of starts; the fit with the highest likelihood is kept. 1 if `init` is an array.
    mean : {"learned", "sample", "zero"}
        The mean as a parameter, fixed at the sample mean (the paper), or at zero.
    annealing : int
        Number of iterations with randomly drawn supports before the iterations with the best
        supports; at least 30 with init="dictionary".
    max_iter : int
        Maximum number of EM iterations after annealing, and on each sample of many rows.
    tol : float
        EM has converged if ten iterations gain less than this, in nats per row.
    least_change : float
        EM with best supports also stops, after ten iterations, if an iteration changes less than
        this fraction of the N L members of supports.
    n_paths : int
        Number of importance paths per row for `score_samples` and `inclusion_probabilities` with
        more than 12,870 supports; the error decreases as 1 / sqrt(n_paths).
    n_chains, burn_in, n_draws, thin : int
        For "gibbs", the numbers of chains, discarded sweeps, draws per chain, and sweeps per draw.
    chain_starts : {"overdispersed", "init"}
        The first chain of "gibbs" starts from EM. The others start from random rotations of the
        principal components; with "init", each chain starts from its own EM fit from `init`.
    warm_start : bool
        Start EM from the previous fit instead of `init`, as in `AdaptivePPCA`.
    noise_shape, noise_scale : float
        For "gibbs": the prior sigma2 ~ InvGamma(noise_shape, noise_scale v), with v the mean
        variance of the features and density proportional to s^(-shape - 1) exp(-scale v / s).
    loading_shape, loading_scale : float
        The same for sigma2_W, unless `loading_variance` fixes it.
    random_state : int, Generator, RandomState or None
        Seed of starts, draws and `sample`. Random numbers in queries depend only on the row.
    verbose : bool or int
        Print a line for each iteration.
    callback : callable or None
        Called with a `Progress` in each iteration. StopIteration ends the fit and keeps its state;
        any other exception propagates and leaves the estimator unchanged.
    whiten : bool
        Divide scores by their root mean square over the rows that use the component.

    Attributes
    ----------
    components_ : (K, D) columns of W, of any lengths and angles, sorted by explained variance, with
        the largest entry positive. `partial_fit` and warm starts keep order and signs.
    mean_ : (D,).
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) ones: W carries the scale.
    explained_variance_ : (K,) mean over rows of |w_k|^2 E[(x z)^2].
    scale_ : (K,) root mean square of the training scores of rows that use the component.
    log_likelihoods_ : (n_iter_,) nats, after each iteration: log p(Y) ("exact") or log p(Y, Z)
        ("best"); with "gibbs" the mean over chains after each sweep.
    n_iter_ : int.
    stop_reason_ : str.
    posterior_ : dict of arrays (chain, draw, ...), with "gibbs" only; see `to_arviz`.

    References
    ----------
    A. Farooq, Y. P. Raykov, P. Raykov, M. A. Little, arXiv 2006.12369, section 3 and algorithm 1,
    with corrections to the score (docs/mathematics.md 3.2) and the start (3.4).

    Examples
    --------
    >>> import numpy as np
    >>> from appca import AdaptiveFactorAnalysis
    >>> X = np.random.default_rng(0).standard_normal((200, 10))
    >>> model = AdaptiveFactorAnalysis(n_components=4, n_active=2, random_state=0).fit(X)
    >>> model.transform(X).shape
    (200, 4)
    """

    _model: ClassVar[str] = "aFA"

    _pairs: ClassVar[bool] = True
    _estimates: ClassVar[bool] = True

    n_active: int = 2
    _: KW_ONLY
    allocation: str = "auto"
    loading_variance: float | None = None
    annealing: int = 3
    least_change: float = 3e-3
    n_paths: int = 16
    loading_shape: float = 1.0
    loading_scale: float = 0.01

    def _n_loadings(self) -> int:
        K, D = map(int, self.components_.shape)
        return D * K - (K * (K - 1) // 2 if self.n_active_ == K else 0)

    def _n_variances(self) -> int:
        return 1  # the loadings carry the scale of scores

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to X (N, D), float32 or float64, and return the estimator.

        `sample_weight` (N,) weights each row as if it were repeated, for "em".
        """
        del y
        X, weights = data_checks.counted_rows(self._validated(X, reset=True), sample_weight)
        K, L = self.n_components, self.n_active
        why = f", one less than the rows of X, which has {X.shape[1]} feature(s)"
        data_checks.refuse_components(K, len(X) - 1, why)
        data_checks.refuse_settings(self, L)
        if self.allocation == "exact" and math.comb(K, L) > MOST_SETS:
            msg = f"allocation must be 'auto' or 'best' above {MOST_SETS} sets of components; "
            msg += f"{L} of {K} make {math.comb(K, L)}."
            raise ValueError(msg)
        rows, sampled = self._rows(X, weights), self.inference == "gibbs"
        data_checks.refuse_constant(rows)
        if sampled:
            data_checks.refuse_weights(sample_weight, "inference='gibbs'")
        elif len(X) <= factor_em.sample_size(K):
            rows = self._rows(*distinct(X, weights))
        rng = generator(self.random_state)
        with single_threaded_blas():
            begins, control = self._begins(rows), self._control(rows)
            self._forget_fit()
            self.n_active_ = L
            if sampled:
                return self._fit_gibbs(rng, rows, begins, control)
            return self._fit_em(factor_em.fit(rng, rows, begins, control), rows)

    def _rows(self, X: Array, weights: Array | None) -> Rows:
        return about(X, None if self.mean == "zero" else centre_of(X, weights), weights)

    def _fit_em(self, done: factor_em.FactorFit, rows: Rows) -> Self:
        second = np.diagonal(done.sums.second) / rows.mass
        at = rows, done.state, second, done.members
        order = publish_factors(self, *at, same_order=done.same_order)
        mean = done.sums.s / rows.mass * (self.mean == "learned")
        H = done.sums.second - rows.mass * np.outer(mean, mean)
        if self.loading_variance is not None:
            H = H + done.state.noise / self.loading_variance * np.eye(len(H))
        size, sums = (rows.mass, rows.total, rows.origin), done.sums._replace(A=H)
        self._last_fit = LastFit(*size, done.state.W, sums, order)
        data_checks.warn_of_unused(sums.used[order] / rows.mass)
        data_checks.warn_of_end(done.stop_reason, self.max_iter)
        return self._ended(done.log_likelihoods, done.stop_reason)

    def _fit_gibbs(self, rng: Generator, rows: Rows, begins: Any, control: EMControl) -> Self:
        data, variance = data_of(rows), self.loading_variance
        K, L = self.n_components, self.n_active
        learned = ["loading"] * (variance is None)
        prior = gibbs.prior_of(self, control.settings.floor / NOISE_FLOOR, *learned)

        def start(rng: Generator, heard: Callback | None, far: bool) -> tuple[GibbsState, str]:
            at, ways = control._replace(callback=heard), begins
            if far:
                at, ways = at._replace(annealing=0, max_iter=1), [("", self._begun_by(ROTATED))]
            climbed = factor_em.fit(rng, rows, ways, at)
            W = np.asarray(climbed.state.W, dtype=np.float64)
            seen = factor_em.coefficients(climbed.state, rows, L)
            if climbed.members is None:
                Z = seen._replace(seeds=draw_seeds(rng, rows.n)).best()[0]
            else:
                Z = indicators(climbed.members, K)
            begun = W, seen.means(Z), Z, -(W @ climbed.state.shift), climbed.state.noise, np.ones(K)
            v = float(np.mean(np.square(W))) if variance is None else variance
            return GibbsState(*begun, sigma2_W=v, sizes=L), climbed.stop_reason

        sampling = prior, gibbs.PRIORS[gibbs.FIXED]
        chains = gibbs.run_chains(rng, data, self, sampling, start, control.callback)
        W, X, _, mean, sigma2, *_ = chains.best.state
        origin = mean if rows.origin is None else rows.origin + mean
        state = factor_em.FactorState(W, np.zeros(W.shape[1]), sigma2)
        second = np.square(X).sum(axis=0) / rows.mass
        publish_factors(self, rows._replace(origin=origin), state, second)
        return self._keep_draws(chains)

    def _posterior(self) -> SupportPosterior:
        fitted = self.components_, self.mean_, self.noise_variance_, self.latent_variance_
        return SupportPosterior(*fitted, self.n_paths, 0, self.n_active_)

    def _control(self, rows: Rows) -> EMControl:
        few = math.comb(self.n_components, self.n_active) <= SETS_IN_PASSING
        exact = few if self.allocation == "auto" else self.allocation == "exact"
        automatic = isinstance(self.init, str) and self.init == "auto"
        variance = math.inf if self.loading_variance is None else float(self.loading_variance)
        learn = self.mean == "learned"
        settings = factor_em.FactorSettings(self.n_active, variance, learn, floor_of(rows))
        callback = spoken(self.callback, rows.mass) if self.verbose else self.callback
        how = self.max_iter, self.tol, True, rows.mass, exact, self.annealing, self.least_change
        screened = factor_em.sample_size(self.n_components) * automatic
        return EMControl(settings, callback, *how, screened)

    def _begins(self, rows: Rows) -> factor_em.Begins:
        K, L, start = self.n_components, self.n_active, factor_em.given_start
        W = self._continued(rows) if self.warm_start else None
        if W is not None:
            shift = self._state_about(rows.origin).shift * (self.mean == "learned")
            return [("warm", partial(start, W, self.noise_variance_, rows, shift=shift))]
        if not isinstance(self.init, str):
            directions = data_checks.given_directions(self.init, K, rows.d)
            return [("given", partial(start, directions, None, rows))]
        names = ["ica" if self.init == "auto" else self.init] * self.n_init
        if self.init == "auto" and self._control(rows).exact and K != L:  # add cheap starts
            cost = min(rows.n, factor_em.sample_size(K)) * math.comb(K, L) * L * L
            most = min(RANDOM_STARTS, SCREENING_COST // cost)
            names += (["pca"] + [ROTATED, "random"] * RANDOM_STARTS)[: most + (most > 0)]
        return [(name, self._begun_by(name)) for name in names]

    def _begun_by(self, name: str) -> Any:
        K, L, begin = self.n_components, self.n_active, NAMED[name]
        return lambda rng, rows, _space: begin(rng, rows, K, L)

    def _state(self) -> factor_em.FactorState:
        W = self.components_.T.astype(np.float64)
        return factor_em.FactorState(W, np.zeros(W.shape[1]), self.noise_variance_)

    def _steps(self, rows: Rows) -> EMSteps:
        control, rng = self._control(rows), generator(self.random_state)
        settings = control.settings

        def expected(rows: Rows, state: factor_em.FactorState, _: Array) -> SubspaceStatistics:
            if control.exact:
                return factor_em.expect_all(state, rows, settings)
            none = np.full((rows.n, self.n_active), -1, dtype=np.int64), None
            return factor_em.expect_sets(rng, state, rows, settings, none, ANNEALED)[0]

        return EMSteps(expected, partial(factor_em.maximise, settings=settings))
