"""Estimators fitted only by sampling: finite and infinite sparse FA, nonparametric PPCA."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from appca.models import climb, stiefel
from appca.models.chains import IN_USE, in_use
from appca.models.conditionals import LEAST_WEIGHT
from appca.models.data_checks import refuse_constant
from appca.models.draws import number_band
from appca.models.em import SubspaceState, logits
from appca.models.estimator import Queries, generator
from appca.models.gibbs import FINITE, INFINITE, PRIORS, TAU2, GibbsState, prior_of, run_chains
from appca.models.independent_components import NAMED
from appca.models.loop import Callback, spoken
from appca.models.numerics import Array
from appca.models.posterior import SupportPosterior, publish_factors
from appca.models.products import data_of
from appca.models.rows import Rows, about, centre_of, project
from appca.models.settings import OVERDISPERSED
from appca.models.stiefel import principal
from appca.models.threads import single_threaded_blas

ACTIVE = 0.5  # minimum of scores that start as active, relative to their column's root mean square
LEAST_NOISE = 0.01  # minimum share of the mean feature variance, if W spans the data

SHARED = {  # paragraphs in the documentation of several models, by their marks
    "sparse": """init : {"ica", "pca", "random"}
        Where chains start: independent components, principal components, or a random rotation of
        principal components. If there is little noise, only "ica" leads to the true columns.
    n_paths : int
        Importance paths per row for `score_samples` and `inclusion_probabilities` with more than 16
        factors; the error decreases as 1 / sqrt(n_paths).
    chain_starts : {"overdispersed", "init"}
        With "overdispersed", all chains but the first start from random rotations of the principal
        components, so if they agree, they have found the same posterior. With "init", all start
        like the first.
    loading_shape, loading_scale : float
        The prior of sigma2_W, of the same form as that of sigma2.""",
    "common": """alpha : "infer" or float
        Mass parameter of the prior of Z; the Indian buffet process has alpha H_N components on
        average. "infer" learns it.
    mean : {"learned", "sample", "zero"}
        The mean as a parameter, fixed at the sample mean, or at zero.
    n_chains, burn_in, n_draws, thin : int
        Numbers of chains, discarded sweeps, draws per chain, and sweeps per draw.
    noise_shape, noise_scale : float
        The prior sigma2 ~ InvGamma(noise_shape, noise_scale v), with v the mean variance of the
        features and density proportional to s^(-shape - 1) exp(-scale v / s).
    alpha_shape, alpha_rate : float
        For alpha="infer": the prior alpha ~ Gamma(alpha_shape, alpha_rate), whose mean is
        alpha_shape / alpha_rate.
    random_state : int, Generator, RandomState or None
        Seed of starts, draws and `sample`.
    verbose : bool or int
        Print a line for each iteration.
    callback : callable or None
        Called with a `Progress` after each sweep of all chains. StopIteration ends the fit and
        keeps its draws; any other exception propagates and leaves the estimator unchanged.
    whiten : bool
        Divide scores by their root mean square over the rows that use the component.

    Attributes
    ----------
    components_ : (K, D) columns of W that rows use in the published draw, sorted by explained
        variance, with the largest entry positive; orthonormal in nonparametric PPCA, else of any
        lengths and angles. The published draw has the largest posterior density; in sparse factor
        analysis, among the draws with the most frequent number of factors.
    n_components_ : int, K.
    n_components_in_use_ : int, most frequent number of components that at least 5% of rows use.
    weights_ : (K,) probability that a new row uses a component.
    mean_ : (D,).
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) tau2, all equal; ones in sparse factor analysis: W carries the scale.
    alpha_ : float.
    explained_variance_ : (K,) mean over rows of |w_k|^2 (x z)^2.
    scale_ : (K,) root mean square of the training scores when active.
    posterior_ : dict of arrays (chain, draw, ...), components in the dtype of the data; running
        means of Z and X are (chain, N, max_components).
    log_likelihoods_ : (n_iter_,) log p(Y | Z) after each sweep, X integrated out, mean over chains.
    n_iter_ : int, sweeps.
    stop_reason_ : str.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import [name]
    >>> X = np.random.default_rng(0).standard_normal((60, 5)) * [5, 4, 1, 1, 1]
    >>> model = [name](3, n_chains=1, burn_in=20, n_draws=20, random_state=0).fit(X)
    >>> model.posterior_["components"].shape
    (1, 20, 3, 5)""",
}


@dataclass(eq=False, repr=False)
class FreeModel(Queries):
    """Sampled models whose rows use any number of components."""

    max_components: int
    _: KW_ONLY
    alpha: Any = "infer"
    mean: str = "learned"
    n_chains: int = 2
    burn_in: int = 200
    n_draws: int = 500
    thin: int = 1
    noise_shape: float = 1.0
    noise_scale: float = 0.01
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    random_state: Any = None
    callback: Callback | None = None
    whiten: bool = False
    verbose: bool | int = False

    _estimates: ClassVar[bool] = True
    _fitted = (*Queries._fitted[:-1], "n_components_", "weights_", "alpha_")

    _orthonormal: ClassVar[bool] = False
    _kind: ClassVar[Any]  # key of `PRIORS`
    _first: ClassVar[Any]  # (rng, rows, whether far from where the first chain starts) -> its state

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        for mark, text in (*SHARED.items(), ("name", cls.__name__)):
            cls.__doc__ = (cls.__doc__ or "").replace(f"[{mark}]", text)

    @single_threaded_blas()
    def fit(self, X: Any, y: Any = None) -> Self:
        """Sample the posterior given X (N, D); return the estimator at the published draw."""
        del y
        X = self._validated(X, reset=True)
        rows = about(X, None if self.mean == "zero" else centre_of(X))
        refuse_constant(rows)
        rng, data = generator(self.random_state), data_of(rows)
        self._forget_fit()
        learned = ["latent" if self._orthonormal else "loading"]
        learned *= isinstance(getattr(self, "latent_variance", "shared"), str)
        variance, kind = data.squares / data.size, PRIORS[self._kind]
        prior = prior_of(self, variance, *learned, unit=math.sqrt(variance))
        alpha = 1.0 if self.alpha == "infer" else float(self.alpha)

        def start(rng: Generator, _heard: Any, far: bool) -> tuple[GibbsState, str]:
            return self._first(rng, rows, far)._replace(alpha=alpha), ""

        callback = spoken(self.callback, rows.mass) if self.verbose else self.callback
        chains = run_chains(rng, data, self, (prior, kind), start, callback)
        draw, most = chains.best.state, self.max_components
        second = np.square(draw.X).mean(axis=0)
        power = second * np.square(draw.W).sum(axis=0)
        used = np.flatnonzero(power > 0.0) if power.any() else np.array([0])
        state = SubspaceState(draw.W[:, used], np.zeros(len(used)), draw.tau2[used], draw.sigma2)
        rows = rows._replace(origin=draw.mu if rows.origin is None else rows.origin + draw.mu)
        self.n_components_, self.alpha_ = len(used), draw.alpha
        weights = np.maximum(kind.expected(draw.Z, draw.alpha)[used], LEAST_WEIGHT)
        publish_factors(self, rows, state, second[used], weights=weights)
        if (chains.posterior["n_components"] == most).all():
            msg = f"max_components={most} is reached in every draw, so the number of components is "
            msg += "set by the bound: raise max_components."
            warnings.warn(msg, stacklevel=3)
        return self._keep_draws(chains)

    def _posterior(self) -> SupportPosterior:
        fitted = self.components_, self.mean_, self.noise_variance_, self.latent_variance_
        n_paths = getattr(self, "n_paths", 0)
        return SupportPosterior(*fitted, n_paths, 0, self.weights_, self._orthonormal)

    @property
    def n_components_in_use_(self) -> int:
        """The most frequent number of components that at least 5% of rows use."""
        return int(np.bincount(self._numbers(IN_USE).ravel()).argmax())

    def n_components_band(self, level: float = 0.9, share: float = 0.0) -> tuple[int, int]:
        """Return the credible band of the number of components that a `share` of rows uses."""
        return number_band(self._numbers(share), level)

    def _numbers(self, share: float) -> Array:
        counts, draws = self.chain_levels_.counts, self.posterior_
        return in_use(draws["occupancy"], draws["Z_mean"].shape[1], share)[counts]


@dataclass(eq=False, repr=False)
class SparseFA(FreeModel):
    """Sparse factor analysis with either prior of Z."""

    _: KW_ONLY
    init: str = "ica"
    n_paths: int = 16
    chain_starts: str = OVERDISPERSED
    loading_shape: float = 1.0
    loading_scale: float = 0.01

    def _first(self, rng: Generator, rows: Rows, far: bool) -> GibbsState:
        """Start from `init`; large scores are active, and further directions unused."""
        (N, D), K = rows.X.shape, self.max_components
        q = min(K, N - 1, D)
        begin = NAMED["random rotation" if far or self.init == "random" else self.init]
        start = begin(rng, rows, q, math.ceil(q / 2))
        W, Z = np.zeros((D, K)), np.zeros((N, K), dtype=bool)
        W[:, :q] = start.W
        scores = project(rows, np.linalg.pinv(W[:, :q]).T).astype(np.float64)
        Z[:, :q] = np.abs(scores) > ACTIVE * np.sqrt(np.square(scores).mean(axis=0))
        loading = float(np.square(W[:, :q]).mean())
        if self._kind == FINITE:
            W[:, q:] = np.sqrt(loading) * rng.standard_normal((D, K - q))
        begun = W, np.zeros((N, K)), Z, np.zeros(D), start.noise, np.full(K, TAU2)
        return GibbsState(*begun, sigma2_W=loading)


@dataclass(eq=False, repr=False)
class FiniteSparseFA(SparseFA):
    """Finite sparse factor analysis (fsFA), by Gibbs sampling.

    y_n = W (x_n * z_n) + mu + e_n with w_dk ~ N(0, sigma2_W), x_nk ~ N(0, 1), e_n ~ N(0, sigma2 I),
    z_nk ~ Bernoulli(pi_k) and pi_k ~ Beta(alpha / K, 1), with K = `max_components`. z is drawn with
    pi and all x of its row integrated out. Section 2 of A. Farooq, Y. P. Raykov, P. Raykov,
    M. A. Little, arXiv 2006.12369.

    Parameters
    ----------
    max_components : int
        Number K of factors of the model; factors that no row uses are not published.
    [sparse]
    [common]
    """

    _kind: ClassVar[str] = FINITE
    _model: ClassVar[str] = "fsFA"

    max_components: int = 10


@dataclass(eq=False, repr=False)
class InfiniteSparseFA(SparseFA):
    """Infinite sparse factor analysis (isFA), by Gibbs sampling.

    y_n = W (x_n * z_n) + mu + e_n with w_dk ~ N(0, sigma2_W), x_nk ~ N(0, 1), e_n ~ N(0, sigma2 I)
    and Z from the Indian buffet process. z is drawn, and factors of a single row are created and
    deleted, with all x of the row integrated out. D. Knowles, Z. Ghahramani, Nonparametric Bayesian
    sparse factor models, Annals of Applied Statistics 5 (2011); section 2 of A. Farooq,
    Y. P. Raykov, P. Raykov, M. A. Little, arXiv 2006.12369.

    Parameters
    ----------
    max_components : int
        Maximum number of factors, on which the process is conditioned.
    [sparse]
    [common]
    """

    _kind: ClassVar[str] = INFINITE
    _model: ClassVar[str] = "isFA"

    max_components: int = 20


@dataclass(eq=False, repr=False)
class NonparametricPPCA(FreeModel):
    """Nonparametric probabilistic PCA, by Gibbs sampling.

    y_n = W (x_n * z_n) + mu + e_n with orthonormal columns, x_nk ~ N(0, tau2), e_n ~ N(0, sigma2 I)
    and Z from the Indian buffet process conditioned on at most `max_components` columns. Z is
    drawn with X integrated out, a whole row at once. The first chain starts from the principal
    directions, each other chain from a random rotation of them. The model is described in section
    4.1.1 of A. Farooq, Y. P. Raykov, P. Raykov, M. A. Little, arXiv 2006.12369, but algorithm 2
    of that paper does not sample from it.

    Parameters
    ----------
    max_components : int
        Maximum number of components, which is also at most D and N - 1.
    prior : {"ibp", "beta-bernoulli"}
        The Indian buffet process, or pi_k ~ Beta(alpha / max_components, 1) for each column.
    latent_variance : "shared" or float
        tau2 of all components, learned, or fixed in squared data units.
    latent_shape, latent_scale : float
        The prior of tau2, of the same form as that of sigma2, unless `latent_variance` fixes it.
    [common]
    """

    _model: ClassVar[str] = "NPPCA"
    _kind: ClassVar[Any] = property(lambda model: model.prior)
    _orthonormal: ClassVar[bool] = True

    max_components: int = 10
    _: KW_ONLY
    prior: str = "ibp"
    latent_variance: Any = "shared"
    latent_shape: float = 1.0
    latent_scale: float = 0.01

    def _first(self, rng: Generator, rows: Rows, far: bool) -> GibbsState:
        """Start from PPCA or its random rotation, with columns active where they gain."""
        K = min(self.max_components, rows.n - 1, rows.n_features)
        lead, variance = principal(rng, rows, K), float(rows.squares.mean()) / rows.n_features
        start = climb.closed_form(rows, lead, LEAST_NOISE * variance)
        W = lead.V @ stiefel.random(rng, K, K) if far else lead.V
        learned = isinstance(self.latent_variance, str)
        latent = np.full(K, start.latent.mean() if learned else float(self.latent_variance))
        Z = logits(project(rows, W), start.noise, latent) > 0
        return GibbsState(W, np.zeros(Z.shape), Z, np.zeros(len(W)), start.noise, latent)
