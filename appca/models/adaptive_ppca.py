"""Adaptive probabilistic PCA: every row uses exactly L of K orthonormal components."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from tempfile import TemporaryFile
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from appca.models import climb, data_checks, em, stiefel
from appca.models.blocks import Blocks, Mapped, NamedBlocks, dask_rows, lazily, spooled, stream
from appca.models.climb import EMControl
from appca.models.draws import AveragedPosterior
from appca.models.estimator import Criteria, generator
from appca.models.gaps import PosteriorWithGaps, fit_incomplete, imputed, initial_imputation
from appca.models.gibbs import drawn_parameters, fit_by_gibbs
from appca.models.loop import spoken
from appca.models.numerics import Array
from appca.models.partial_fit import EMSteps, InBatches, LastFit
from appca.models.posterior import LEARNED_ARRAYS, posterior_of, publish_subspace, state_of
from appca.models.rows import Observations, Parts, Rows, about, centre_of, is_incomplete
from appca.models.settings import LEARNED, refuse_parameters
from appca.models.threads import single_threaded_blas

MOST_WITH_SIZES = 500  # maximum K for learned sizes, whose table has K^2 numbers per row


def first_size(model: Any) -> int:
    """Return L; if it is learned, the L of the fit that provides the start."""
    return (model.n_components + 1) // 2 if model.n_active == LEARNED else int(model.n_active)


def refuse_conflicts(model: Any, rows: Observations) -> None:
    """Raise ValueError if parameters exclude each other or do not suit the data."""
    variant, inference, K = model._variant, model.inference, model.n_components
    L, new = first_size(model), zip(("noise", "row_scale", "n_active"), variant, strict=True)
    learned = " and ".join(f"{name}={getattr(model, name)!r}" for name, is_new in new if is_new)
    others = "'em'" if variant.by_feature else "'em' or 'gibbs'"
    sampled = inference == "gibbs" and not variant.by_feature
    wrong = {
        f"inference must be {others} with {learned}; got {inference!r}: "
        "set inference='em', or use the paper's model.": (
            bool(learned) and inference != "em" and not sampled
        ),
        f"z_update must be 'block' with {learned}; got {model.z_update!r}: set "
        "z_update='block', which draws scale and support of a row together.": (
            bool(learned) and sampled and model.z_update != "block"
        ),
        "latent_variance must be 'shared' or 'component' with noise='feature', where it is "
        f"relative to the noise; got {model.latent_variance!r}: choose one of these.": (
            variant.by_feature and not isinstance(model.latent_variance, str)
        ),
        f"n_components must be at most {MOST_WITH_SIZES} with n_active='learned'; got {K}: "
        "choose fewer components, or set n_active to a number.": (
            variant.learn_sizes and K > MOST_WITH_SIZES
        ),
        f"w_update must not be 'sample' with inference={inference!r}, which maximizes: set "
        "w_update='auto' or "
        "inference='gibbs'.": model.w_update == "sample" and inference != "gibbs",
    }
    why = f", because X has {rows.n} rows and {rows.d} feature(s)"
    data_checks.refuse_components(K, min(rows.n - 1, rows.d), why)
    data_checks.refuse_where(wrong)
    data_checks.refuse_settings(model, L)


class SubspaceModel(Criteria):
    """Fits of a model whose rows use `n_active` of K orthonormal components."""

    _takes_gaps: ClassVar[bool] = True
    _posterior = posterior_of
    n_components: Any
    n_active: Any
    noise: Any = "shared"
    row_scale: Any = "none"
    latent_variance: Any = "component"
    inference: Any = "em"
    init: Any = "pca"
    n_init: Any = 1
    mean: Any = "learned"
    max_iter: Any = 500
    tol: Any = 1e-4  # nats per row over ten iterations
    accelerate: Any = True
    w_update: Any = "auto"
    z_update: Any = "block"
    warm_start: Any = False
    callback: Any = None
    verbose: Any = False

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to X (N, D), array-like or sparse matrix, and return the estimator.

        X is float32 or float64, NaN where missing. A sparse matrix of SciPy stays sparse.
        `sample_weight` (N,) weights each row as if it were repeated. Neither can be combined with
        NaN or "gibbs".

        Data larger than memory must not contain NaN. The chunks of a Dask array are processed by
        threads, or by the workers of the current Client. An iterator of blocks of rows is copied
        to a temporary file (TMPDIR). A large `numpy.memmap` is read in each pass.
        """
        del y
        if data_checks.is_dask(X) or isinstance(X, Iterator):
            data_checks.refuse_weights(sample_weight, "rows that come in blocks")
            if data_checks.is_dask(X):
                return self._fit_parts(partial(dask_rows, X))
            with TemporaryFile() as file:
                return self._fit_parts(lambda **how: stream(spooled(X, file), **how))
        if data_checks.is_large_map(X) and self.inference != "gibbs" and sample_weight is None:
            return self.fit_blocks(Mapped(X))
        X, weights = data_checks.counted_rows(self._validated(X, reset=True), sample_weight)
        with single_threaded_blas():
            incomplete = is_incomplete(X)
            if self.inference == "gibbs" or incomplete:
                data_checks.refuse_weights(sample_weight, "inference='gibbs' or missing entries")
            if incomplete:
                return self._fit_incomplete(X)
            origin = None if self.mean == "zero" else centre_of(X, weights)
            return self._fit_rows(about(X, origin, weights))

    @property
    def _variant(self) -> em.Variant:
        learned = self.row_scale == LEARNED, self.n_active == LEARNED
        return em.Variant(self.noise == "feature", *learned)

    def _refuse_gaps(self) -> None:
        needs = "noise='shared', row_scale='none' and a number as n_active"
        if self.inference != "em":
            needs = f"inference='em'; got {self.inference!r}"
        msg = f"X has missing entries (NaN), which need {needs}: change these settings, or "
        msg += "fill or drop those cells."
        data_checks.refuse_where({msg: self.inference != "em" or any(self._variant)})

    def _fit_incomplete(self, X: Array) -> Self:
        rows = initial_imputation(X, zero_mean=self.mean == "zero")
        refuse_conflicts(self, rows)
        self._refuse_gaps()
        data_checks.refuse_constant(rows)
        rng, control = generator(self.random_state), self._control(rows)
        start, before = self._warm(rows, control.settings), getattr(self, "mean_", None)
        fitted = fit_incomplete(rng, X, rows, start, control, before)
        self._forget_fit()
        mean = fitted.state.offset + (0.0 if rows.origin is None else rows.origin)
        full = Rows(imputed(X, mean), mean, np.empty(0), X.shape[1], careful=True)
        state, same = fitted.state._replace(offset=np.zeros(())), fitted.same_order
        publish_subspace(self, full, state, first_size(self), fitted.second, same_order=same)
        seen = PosteriorWithGaps(posterior_of(self)).description(X)
        power = np.square(seen.scores, dtype=np.float64).sum(axis=0)
        scale: Array = np.sqrt(power / np.maximum(seen.active.sum(axis=0), 1))
        self.scale_ = np.where(scale > 0.0, scale, 1.0)
        self._last_fit = LastFit(rows.mass)
        data_checks.warn_of_end(fitted.stop_reason, self.max_iter)
        return self._ended(fitted.log_likelihoods, fitted.stop_reason)

    def fit_blocks(self, blocks: Blocks) -> Self:
        """Fit to blocks of rows that may exceed memory; equals `fit` up to rounding.

        `blocks` is an iterable of arrays or sparse matrices (n_i, D), or a function that returns a
        new iterator. It is read once per iteration; blocks of a few thousand rows are best. The
        first block determines the precision, float32 or float64.
        """
        return self._fit_parts(partial(stream, NamedBlocks(blocks)))

    def _fit_parts(self, look: Callable[..., Parts]) -> Self:
        """Fit to rows that are never all in memory."""
        refuse_parameters(self._model, self.get_params(deep=False))
        msg = "inference must be 'em' or 'hard' to fit blocks, because the sampler needs all "
        msg += "rows; got 'gibbs': change it, or pass all rows to fit."
        data_checks.refuse_where({msg: self.inference == "gibbs"})
        with single_threaded_blas():
            rows = look(zero_mean=self.mean == "zero")
            self.n_features_in_ = rows.d
            self.__dict__.pop("feature_names_in_", None)  # left by an earlier fit
            if rows.names is not None:
                self.feature_names_in_ = np.array(rows.names, dtype=object)
            return self._fit_rows(rows)

    def _fit_rows(self, rows: Observations) -> Self:
        refuse_conflicts(self, rows)
        data_checks.refuse_constant(rows)
        control, L = self._control(rows), first_size(self)
        settings = em.settings_on(rows, control.settings)
        if settings.variant.by_feature:
            data_checks.check_varying(self.n_components, settings.most)
        control, start = control._replace(settings=settings), self._warm(rows, settings)
        rng, begin = generator(self.random_state), partial(climb.fit_state, rows=rows, start=start)
        self._forget_fit()
        if self.inference == "gibbs" and isinstance(rows, Rows):
            chains = fit_by_gibbs(rng, rows, begin, control, self)
            publish_subspace(self, rows, drawn_parameters(chains.best.state), L)
            return self._keep_draws(chains)
        fit = begin(rng, control)
        order = publish_subspace(self, rows, fit.state, L, fit.second, same_order=fit.same_order)
        if fit.sums is not None:
            size = rows.mass, rows.total, rows.origin
            self._last_fit = LastFit(*size, fit.state.W, fit.sums, order)
            data_checks.warn_of_unused(fit.sums.used[order] / rows.mass)
        data_checks.warn_of_end(fit.stop_reason, self.max_iter)
        return self._ended(fit.log_likelihoods, fit.stop_reason)

    def _warm(
        self, rows: Observations, settings: em.EMSettings
    ) -> Array | em.SubspaceState | list[climb.Candidate]:
        """Return the start of EM: directions, candidates, or a state of the same kind."""
        W: Array | None = self._continued(rows) if self.warm_start else None
        if W is None:
            if isinstance(self.init, str):
                return climb.candidates(self.init, self.n_init, self.n_components)
            return data_checks.given_directions(self.init, self.n_components, rows.d)
        fitted = posterior_of(self)
        if fitted.variant != settings.variant:
            return W
        if settings.variant != em.PAPER:
            return state_of(fitted, rows, settings)
        return em.resumed(self._state_about(rows.origin), settings)

    def _control(self, rows: Observations) -> EMControl:
        L, variance = first_size(self), self.latent_variance
        latent: Any = variance if isinstance(variance, str) else float(variance)
        weighted = isinstance(rows, Rows) and rows.weights is not None
        settings = em.EMSettings(
            n_components=self.n_components,
            n_active=L,
            latent=latent,
            learn_mean=self.mean == "learned",
            hard=self.inference == "hard",
            update=stiefel.maximise if self.w_update == "pymanopt" else stiefel.polar,
            floor=em.floor_of(rows),
            compiled=not weighted and em.worth_compiling(rows.n, self.n_components, L),
            variant=self._variant,
        )
        callback = spoken(self.callback, rows.mass) if self.verbose else self.callback
        return EMControl(settings, callback, self.max_iter, self.tol, self.accelerate, rows.mass)


@dataclass(eq=False, repr=False)
class AdaptivePPCA(InBatches, SubspaceModel):
    """Adaptive probabilistic PCA (aPPCA).

    y_n = W (x_n * z_n) + mu + e_n with W'W = I_K, x_nk ~ N(0, tau2_k), e_n ~ N(0, sigma2 I) and
    z_n uniform over the supports of exactly L of the K components. Sums over x and z are exact, so
    the likelihood and EM are exact. inference="em" also integrates out missing entries (NaN).

    Parameters
    ----------
    n_components : int
        Number K of components available, at most min(N - 1, D).
    n_active : int or "learned"
        Number L of components that a row uses, at most K. "learned" allows any number from 0 to K,
        with learned probabilities; supports of equal size are equally probable.
    noise : {"shared", "feature"}
        One noise variance for all features (the paper), or psi_d for each feature, as in factor
        analysis. Then W' Psi^-1 W = I, and the fit does not depend on the features' units.
    row_scale : {"none", "learned"}
        "learned" replaces sigma2 and tau2 by sigma2 u_n and tau2 u_n in row n. u_n is one of ten
        values from 0.1 to 10, whose probabilities are learned.
    inference : {"em", "gibbs", "hard"}
        "em" maximizes the likelihood. "gibbs" samples the posterior, starting from EM, and excludes
        noise="feature". "hard" assigns each row to its best support (classification EM).
    init : {"auto", "quartimax", "annealed", "ica", "pca", "random"} or array (K, D)
        Principal directions: unrotated ("pca"), rotated by quartimax, with annealed EM, rotated to
        independent components ("ica") or at random; or an array, which is made orthonormal. "auto"
        tries quartimax and PCA, plain and annealed, and five rotations (30 if rows are few) on a
        sample of rows; above K = 100, independent components and PCA, plain and annealed.
    latent_variance : {"shared", "component"} or float
        One tau2 for all components, one per component, or a fixed value in squared data units (the
        paper fixes 1.0, which makes the fit depend on the unit).
    w_update : {"auto", "polar", "pymanopt", "sample"}
        The closed-form polar factor, or conjugate gradients on the Stiefel manifold (the paper's
        appendix C), which take 16 to 300 times as long for the same maximum. "sample", only for
        "gibbs", draws W from its matrix von Mises-Fisher conditional. With "polar" or "pymanopt",
        "gibbs" is the paper's MAP-within-Gibbs. "auto" is "sample" with "gibbs", else "polar".
    z_update : {"block", "swap"}
        How "gibbs" draws the support of a row: as a whole, or one member at a time in random order
        (the paper). "swap" is not available with row scales or learned sizes.
    n_init : int
        Number of starts: the first from `init`, the others random rotations; 1 for an array.
    mean : {"learned", "sample", "zero"}
        The mean as a parameter, fixed at the sample mean (the paper), or at zero.
    max_iter : int
        Maximum number of EM iterations over all rows.
    tol : float
        EM has converged if ten iterations gain less than `tol`, in nats per row; after a search on
        samples, if an iteration gains less than twenty times `tol`.
    warm_start : bool
        Start from the previous fit with the same K. The likelihood on the same rows does not
        decrease, and components keep their order and signs.
    accelerate : bool
        Use momentum between EM iterations; the likelihood still never decreases.
    n_chains, burn_in, n_draws, thin : int
        For "gibbs", the numbers of chains, discarded sweeps, draws per chain, and sweeps per draw.
    chain_starts : {"overdispersed", "init"}
        With "overdispersed", all chains but the first start from random rotations of the principal
        directions, so if they agree, they have found the same posterior. With "init", all start
        from one EM fit (with init="random", each from its own), so if they agree, they only mix
        well around that fit.
    noise_shape, noise_scale : float
        For "gibbs": the prior sigma2 ~ InvGamma(noise_shape, noise_scale v), with v the mean
        variance of the features and density proportional to s^(-shape - 1) exp(-scale v / s).
    latent_shape, latent_scale : float
        The same for tau2, unless `latent_variance` fixes it.
    random_state : int, Generator, RandomState or None
        Seed of random rotations, of the rows on which starts are screened, and of `sample`.
    verbose : bool or int
        Print a line for each iteration.
    callback : callable or None
        Called with a `Progress` in each iteration. StopIteration ends the fit and keeps its state;
        any other exception leaves the estimator unchanged.
    whiten : bool
        Divide scores by their root mean square over the rows that use the component.

    Attributes
    ----------
    components_ : (K, D) orthonormal rows, sorted by explained variance, with the largest entry
        positive; `partial_fit` and warm starts keep order and signs. With noise="feature", rows of
        W' in data units, W' Psi^-1 W = I, sorted by the mean of E[(x z)^2].
    mean_ : (D,).
    noise_variance_ : float, sigma2; with noise="feature", (D,) psi_d, and 0 for a feature that
        hardly varies in more than one row, which the likelihood omits.
    latent_variance_ : (K,) tau2_k; with noise="feature" relative to the noise.
    explained_variance_ : (K,) mean of E[(x z)^2] times the component's squared length.
    scale_ : (K,) root mean square of the training scores of rows that use the component.
    n_active_ : int, L; K if sizes are learned.
    size_probabilities_ : (K + 1,) of 0 to K components per row, with n_active="learned".
    row_scale_values_, row_scale_probabilities_ : (10,), with row_scale="learned".
    log_likelihoods_ : (n_iter_,) total log-likelihood after each iteration, in nats; with "hard",
        log p(Y, Z) at the best supports Z; with "gibbs", the mean over chains.
    n_iter_ : int, number of EM iterations over all rows after the screening of starts.
    stop_reason_ : str.
    posterior_ : dict of arrays (chain, draw, ...), only with "gibbs"; components have the dtype of
        the data. The other attributes come from the draw with the largest posterior density.

    References
    ----------
    A. Farooq, Y. P. Raykov, P. Raykov, M. A. Little, arXiv 2006.12369, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import AdaptivePPCA
    >>> X = np.random.default_rng(0).standard_normal((200, 10))
    >>> model = AdaptivePPCA(n_components=4, n_active=2, random_state=0).fit(X)
    >>> model.allocate(X).sum(axis=1).min()
    np.int64(2)
    """

    _model: ClassVar[str] = "aPPCA"
    _extensions: ClassVar[tuple[str, ...]] = LEARNED_ARRAYS

    n_active: int | Literal["learned"] = 2
    _: KW_ONLY
    noise: Literal["shared", "feature"] = "shared"
    row_scale: Literal["none", "learned"] = "none"
    latent_variance: Literal["shared", "component"] | float = "shared"
    w_update: str = "auto"
    z_update: str = "block"
    accelerate: bool = True
    latent_shape: float = 1.0
    latent_scale: float = 0.01

    def size_probabilities(self, X: Any) -> Array:
        """Return posterior probabilities (N, K + 1) of 0 to K components per row, if learned."""
        check_is_fitted(self, "size_probabilities_")
        return self._averaged(self._asked(X)[0], lambda at, X: at.size_probabilities(X))

    def row_scales(self, X: Any) -> Any:
        """Return the posterior mean (N,) of each row's scale u_n; 1 if scales are not learned.

        A row with scale u has u times the variance of noise and scores; a large u is unusual.
        """
        if data_checks.is_dask(X):
            return lazily(self, "row_scales", X)
        check_is_fitted(self)
        X = self._asked(X)[0]
        if not hasattr(self, "row_scale_values_"):
            return np.ones(len(X))
        return self._averaged(X, lambda at, X: at.mean_scales(X))

    def _averaged(self, X: Array, ask: Callable[[Any, Array], Array]) -> Array:
        """Query the posterior of rows; after sampling, average over draws."""
        fitted = posterior_of(self)
        if not hasattr(self, "query_draws_"):
            return ask(fitted, X)
        return AveragedPosterior(fitted, self.query_draws_).mean_of(lambda p: ask(p, X))

    def _state(self) -> em.SubspaceState:
        W, latent = self.components_.T.astype(np.float64), self.latent_variance_
        return em.SubspaceState(W, np.zeros(len(latent)), latent, self.noise_variance_)

    def _steps(self, rows: Rows) -> EMSteps:
        settings = self._control(rows).settings

        def expected(rows: Rows, state: em.SubspaceState, total: Array) -> em.SubspaceStatistics:
            compiled = settings.compiled and rows.weights is None
            sums = em.expect(state, rows, settings._replace(compiled=compiled))
            # If rows do not sum to their origin, `expect` omits the cross term of
            # |y - origin + W shift|^2.
            cross = float(total @ (state.W @ state.shift)) / state.noise
            return sums._replace(log_likelihood=sums.log_likelihood - cross)

        return EMSteps(expected, partial(em.maximise, settings=settings))
