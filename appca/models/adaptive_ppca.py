"""Adaptive probabilistic PCA: every row uses exactly L of K orthonormal components."""

from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_array

from appca.models import starts, stiefel
from appca.models.em import Settings, State, expect, floor_of, step
from appca.models.estimator import (
    SubspaceModel,
    generator,
    refuse_constant,
    refuse_sizes,
)
from appca.models.gaussian import Array
from appca.models.loop import STOPPED, Callback, Climb, iterate, plain, watcher
from appca.models.parameters import (
    ARRAY,
    CALLABLE,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SWITCH,
    Rule,
    either,
    one_of,
    whole,
)
from appca.models.ppca import closed_form
from appca.models.race import Course, search
from appca.models.rows import Rows, about, centre_of
from appca.models.spectrum import Thin, lift, lower, principal, thin

__all__ = ["AdaptivePPCA"]

# argmax of tr(W'A) over the orthonormal W, given (A, previous W)
W_UPDATES: dict[str, Callable[[Array, Array], Array]] = {
    "polar": stiefel.polar,
    "pymanopt": stiefel.maximise,
}
INFERENCES = ("em", "hard")
THIN_LIMIT = 2000  # rows up to which the N x N eigenproblem is cheap beside the passes it saves


class AdaptivePPCA(SubspaceModel):
    """Adaptive probabilistic PCA (aPPCA).

    y_n = W (x_n * z_n) + mu + e_n with W'W = I_K, x_nk ~ N(0, tau2_k), e_n ~ N(0, sigma2 I) and
    z_n uniform over the subsets of exactly L of the K components. Both x and z are integrated out
    exactly, so the likelihood is exact and EM climbs it without approximation.

    Parameters
    ----------
    n_components : int
        Number K of components in all, at most min(N - 1, D).
    n_active : int
        Number L of components that a row uses, at most K.
    inference : {"em", "hard"}
        "em" maximises the likelihood of the rows. "hard" gives each row wholly to its best subset
        (classification EM; with vanishing noise this is top-L assignment and Procrustes).
    init : {"auto", "quartimax", "annealed", "pca", "random"} or array (K, D)
        Start. "auto" races quartimax against annealed PCA on a sample of rows; an array is taken
        as directions and made orthonormal.
    latent_variance : {"shared", "component"} or float
        One tau2 for all components, one each, or a fixed value in the data's unit squared (the
        paper fixes 1.0, which makes the fit depend on the unit).
    w_update : {"polar", "pymanopt"}
        How W is updated: the closed-form polar factor, or conjugate gradients on the Stiefel
        manifold from the previous W (the paper's appendix C). Both maximise the same objective;
        Pymanopt is 16 to 300 times slower and may stop at a saddle.
    n_init : int
        Number of starts: the first from `init`, the others random rotations of the principal
        directions. Not with an array.
    mean : {"learned", "sample", "zero"}
        The mean as a parameter, fixed at the sample mean (the paper), or at zero.
    max_iter : int
        Most EM iterations over all rows.
    tol : float
        EM stops when ten iterations together gain less than this, in nats a row.
    accelerate : bool
        SQUAREM leaps between EM iterations; the likelihood never falls either way.
    random_state : int, Generator, RandomState or None
        For random rotations, the sample of rows that starts race on, and `sample`.
    callback : callable or None
        Called with a `Progress` once an iteration. Raising StopIteration ends the fit and keeps
        what it has; any other exception propagates and leaves the estimator unfitted.
    whiten : bool
        Divide scores by their root mean square when active.

    Attributes
    ----------
    components_ : (K, D) orthonormal rows, by explained variance, largest entry positive.
    mean_ : (D,).
    noise_variance_ : float, sigma2.
    latent_variance_ : (K,) tau2_k.
    explained_variance_ : (K,) mean over rows of E[(x z)^2].
    scale_ : (K,) root mean square of the training scores when active.
    log_likelihoods_ : (n_iter_,) total log-likelihood after each iteration, nats; with
        inference="hard" that of the rows and their best subsets together.
    n_iter_ : int, EM iterations over all rows after the race of starts.
    stop_reason_ : str.

    References
    ----------
    EM and likelihood: model.md 1.1 and 1.2 in the project's design notes; the model is the
    parametric one of the paper's section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from appca import AdaptivePPCA
    >>> X = np.random.default_rng(0).standard_normal((200, 10))
    >>> model = AdaptivePPCA(n_components=4, n_active=2, random_state=0).fit(X)
    >>> model.allocate(X).sum(axis=1).min()
    np.int64(2)
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": whole(1),
        "n_active": whole(1),
        "inference": one_of(*INFERENCES),
        "init": either(one_of(*starts.NAMED), ARRAY),
        "latent_variance": either(one_of("shared", "component"), POSITIVE),
        "w_update": one_of(*W_UPDATES),
        "n_init": whole(1),
        "mean": one_of("learned", "sample", "zero"),
        "max_iter": whole(1),
        "tol": NOT_NEGATIVE,
        "accelerate": SWITCH,
        "random_state": SEED,
        "callback": CALLABLE,
        "whiten": SWITCH,
    }

    def __init__(  # noqa: PLR0913 - an estimator's parameters are its interface
        self,
        n_components: int = 4,
        n_active: int = 2,
        *,
        inference: str = "em",
        init: Any = "auto",
        latent_variance: str | float = "shared",
        w_update: str = "polar",
        n_init: int = 1,
        mean: str = "learned",
        max_iter: int = 500,
        tol: float = 1e-4,
        accelerate: bool = True,
        random_state: Any = None,
        callback: Callback | None = None,
        whiten: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_active = n_active
        self.inference = inference
        self.init = init
        self.latent_variance = latent_variance
        self.w_update = w_update
        self.n_init = n_init
        self.mean = mean
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.random_state = random_state
        self.callback = callback
        self.whiten = whiten

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to X (N, D), float32 or float64, and return the estimator."""
        del y
        X = self._validated(X, reset=True)
        self._refuse_conflicts(X)
        rows = about(X, None if self.mean == "zero" else centre_of(X))
        refuse_constant(rows)
        settings = self._settings(rows)
        rng = generator(self.random_state)
        if self.n_active == self.n_components and not isinstance(self.latent_variance, Real):
            return self._fit_closed_form(rng, rows, settings)
        n, d = X.shape
        space = thin(rows) if n < d and n <= THIN_LIMIT else None
        work = rows if space is None else space.rows
        start, stopped = self._start(rng, rows, space, settings)
        climb = self._climb(start, work, settings, stopped)
        second = expect(climb.state, work, settings).second
        if space is not None:
            climb = climb._replace(state=climb.state._replace(W=lift(climb.state.W, space, rows)))
        return self._finish(climb, rows, second)

    def _fit_closed_form(self, rng: np.random.Generator, rows: Rows, settings: Settings) -> Self:
        """L = K: all rows use all components, so the model is PPCA (model.md 1.6)."""
        state = closed_form(rows, principal(rng, rows, self.n_components), settings.floor)
        if settings.latent == "shared":
            state = state._replace(latent=np.full_like(state.latent, state.latent.mean()))
        climb = Climb(state, 0.0, [0.0], "closed form, because n_active equals n_components")
        sums = expect(state, rows, settings)
        climb = climb._replace(log_likelihoods=[sums.log_likelihood])
        watcher(self.callback, "closed form", 1)(1, sums.log_likelihood)
        return self._finish(climb, rows, sums.second)

    def _start(
        self, rng: np.random.Generator, rows: Rows, space: Thin | None, settings: Settings
    ) -> tuple[State, bool]:
        """First state of the fit proper, and whether the callback stopped the race for it."""
        work = rows if space is None else space.rows
        if not isinstance(self.init, str):
            W = stiefel.polar(self._given_directions(rows))
            if space is not None:
                W = stiefel.polar(lower(W, space, rows))
            return starts.first_state(work, W, settings), False
        course = Course(settings, self.callback, self.max_iter, self.tol, len(rows.X))
        run = search(rng, work, starts.candidates(self.init, self.n_init), course)
        return run.state, run.stop_reason == STOPPED

    def _climb(self, start: State, work: Rows, settings: Settings, stopped: bool) -> Climb[State]:
        def halt(state: State) -> str | None:
            if state.noise > settings.floor:
                return None
            return "the noise variance reached its floor, 1e-8 of the mean feature variance"

        if stopped:
            path = plain(partial(step, rows=work, settings=settings), start)
            return iterate(path, tol=0.0, max_iter=1)._replace(stop_reason=STOPPED)
        path = starts.ascent(start, work, settings, accelerate=self.accelerate)
        return iterate(
            path,
            tol=self.tol * len(work.X),
            max_iter=self.max_iter,
            watch=watcher(self.callback, "fit", self.max_iter),
            halt=halt,
        )

    def _finish(self, climb: Climb[State], rows: Rows, second: Array) -> Self:
        self._publish(rows, climb.state, self.n_active, second)
        self.log_likelihoods_: Array = np.array(climb.log_likelihoods)
        self.n_iter_ = len(climb.log_likelihoods)
        self.stop_reason_ = climb.stop_reason
        return self

    def _settings(self, rows: Rows) -> Settings:
        latent: Any = self.latent_variance
        return Settings(
            n_components=self.n_components,
            n_active=self.n_active,
            latent=latent if latent in ("shared", "component") else float(latent),
            learn_mean=self.mean == "learned",
            hard=self.inference == "hard",
            update=W_UPDATES[self.w_update],
            floor=floor_of(rows),
        )

    def _refuse_conflicts(self, X: Array) -> None:
        """Raise ValueError for parameters that exclude one another or do not suit the data."""
        refuse_sizes(self.n_components, *X.shape)
        if self.n_active > self.n_components:
            msg = (
                f"n_active must be at most n_components={self.n_components}; got {self.n_active}: "
                "lower n_active or raise n_components."
            )
            raise ValueError(msg)
        if not isinstance(self.init, str) and self.n_init > 1:
            msg = (
                f"n_init must be 1 when init is an array; got {self.n_init}: "
                "name a start to have random ones beside it."
            )
            raise ValueError(msg)

    def _given_directions(self, rows: Rows) -> Array:
        W: Array = check_array(self.init, dtype=np.float64).T
        wanted = (self.n_components, rows.n_features)
        if W.shape[::-1] != wanted:
            msg = (
                f"init must have shape {wanted}, n_components by features; got {W.shape[::-1]}: "
                "pass one row per component."
            )
            raise ValueError(msg)
        return W
