"""What all models share as scikit-learn estimators: checks of X, fitted arrays, files.

No name that scikit-learn keeps private is used.
"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state, validate_data

from appca.models.algebra.gaussian import Array
from appca.models.base.data_checks import refuse_not_finite
from appca.models.base.order import DRAWS, POSTERIOR, arranged
from appca.models.base.saved import write
from appca.models.rows.shifted_sparse import ShiftedSparse, is_sparse, sparse_rows
from appca.models.sampling.chains import Draws
from appca.models.sampling.query_draws import QueryDraws
from appca.models.settings.table import refuse_parameters
from appca.words.errors import InputError


def generator(random_state: Any) -> np.random.Generator:
    """One Generator from whatever scikit-learn accepts as `random_state`.

    None is NumPy's global one, so that `np.random.seed` holds here as it does in scikit-learn.
    """
    chosen = check_random_state(None) if random_state is None else random_state
    return np.random.default_rng(chosen)


class Estimator(BaseEstimator):  # type: ignore[misc]
    """An estimator by what it was fitted to.

    Attributes
    ----------
    _model : its name in `settings.table.MODELS`, which says what values the parameters may have.
    _fitted : names of the fitted attributes that answers about rows depend on.
    _extensions : further ones, which some fits have.
    _takes_gaps : whether rows may have missing entries, be a Dask array, or be sparse.
    _estimates : whether sums over supports may be estimates, by draws that a row itself decides.
    """

    _model: ClassVar[str]
    _fitted: ClassVar[tuple[str, ...]] = (
        "components_",
        "mean_",
        "noise_variance_",
        "latent_variance_",
        "explained_variance_",
        "scale_",
        "n_active_",
    )
    _extensions: ClassVar[tuple[str, ...]] = ()
    _takes_gaps: ClassVar[bool] = False
    _estimates: ClassVar[bool] = False

    components_: Array
    mean_: Array
    noise_variance_: Any
    latent_variance_: Array
    explained_variance_: Array
    scale_: Array
    n_active_: int
    log_likelihoods_: Array
    n_iter_: int
    stop_reason_: str
    posterior_: Draws
    query_draws_: QueryDraws

    @property
    def _takes_sparse(self) -> bool:
        return self._takes_gaps and getattr(self, "inference", "em") != "gibbs"

    def _validated(self, X: Any, *, reset: bool) -> Any:
        """Check rows; sparse ones become a `ShiftedSparse`."""
        if reset:
            refuse_parameters(self._model, self.get_params(deep=False))
        shifted = X if isinstance(X, ShiftedSparse) else None
        checked = validate_data(
            self,
            X if shifted is None else shifted.values,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite=False,
            accept_sparse="csr" if self._takes_sparse else False,
        )
        if is_sparse(checked):
            return shifted or sparse_rows(checked)
        refuse_not_finite(checked, gaps=self._takes_gaps)
        return checked

    def _unnamed(self) -> Self:
        """Return a copy to be asked about rows that were checked, and so have no more names."""
        alone = copy.copy(self)
        alone.__dict__.pop("feature_names_in_", None)
        return alone

    def _forget_fit(self) -> None:
        """Drop what a fit before has and this one may not."""
        for name in ("posterior_", "query_draws_", "_stepwise", "_sums", *self._extensions):
            self.__dict__.pop(name, None)

    def _ended(self, log_likelihoods: Any, stop_reason: str) -> Self:
        """Record how a fit went; return the estimator."""
        self.log_likelihoods_ = np.array(log_likelihoods)
        self.n_iter_ = len(self.log_likelihoods_)
        self.stop_reason_ = stop_reason
        return self

    def fitted_arrays(self) -> dict[str, Array]:
        """Return all arrays that queries about new rows need, by name without the underscore."""
        check_is_fitted(self)
        names = *self._fitted, *(name for name in self._extensions if hasattr(self, name))
        arrays = {name[:-1]: np.asarray(getattr(self, name)) for name in names}
        if hasattr(self, "query_draws_"):
            draws = self.query_draws_._asdict().items()
            arrays |= {DRAWS + name: values for name, values in draws if values is not None}
        return arrays

    def restore(self, arrays: dict[str, Array]) -> Self:
        """Restore a fitted estimator from its `fitted_arrays`.

        Queries return the same results as before. `posterior_`, all draws, is not restored.

        Raises
        ------
        ValueError
            When an array is missing.
        """
        missing = [name[:-1] for name in self._fitted if name[:-1] not in arrays]
        if missing:
            msg = (
                f"arrays must hold what {type(self).__name__} was fitted to, but "
                f"{', '.join(missing)} is missing: fit the model again."
            )
            raise ValueError(msg)
        self._forget_fit()
        for name in (*self._fitted, *self._extensions):
            if name[:-1] in arrays:
                value = arrays[name[:-1]]
                setattr(self, name, value.item() if value.ndim == 0 else value)
        draws = {name: arrays.get(DRAWS + name) for name in QueryDraws._fields}
        if draws["chain"] is not None:
            self.query_draws_ = QueryDraws(**draws)  # type: ignore[arg-type]
        self.n_features_in_ = self.components_.shape[1]
        return self

    def reorder(self, order: Sequence[int], signs: Sequence[int] | None = None) -> Self:
        """Reorder the components, flip the signs of some, and return the estimator.

        Queries use the new order. The likelihood and reconstruction of a row do not change.

        Parameters
        ----------
        order : sequence of int, length K
            Component ``order[j]``, counted from 0, becomes row j of `components_`.
        signs : sequence of int, length K, optional
            -1 flips the sign of the component that becomes row j, and of its scores.

        Raises
        ------
        InputError
            When `order` is no permutation of 0 to K - 1, or `signs` has anything but K times 1
            or -1.
        """
        K = len(self.fitted_arrays()["components"])
        places = [int(row) for row in order]
        turned = [1] * K if signs is None else [int(sign) for sign in signs]
        if sorted(places) != list(range(K)) or len(turned) != K or not set(turned) <= {1, -1}:
            msg = (
                f"order must have each number from 0 to {K - 1} once, and signs {K} times 1 or -1; "
                f"got {places!r:.60} and {turned!r:.60}."
            )
            raise InputError(msg)
        draws = getattr(self, "posterior_", None)
        # `partial_fit` goes on as with a model from a file
        self.restore(arranged(self.fitted_arrays(), places, turned))
        if draws is not None:
            every = {POSTERIOR + name: values for name, values in draws.items()}
            moved = arranged(every, places, turned)
            self.posterior_ = {name.removeprefix(POSTERIOR): a for name, a in moved.items()}
        return self

    def save(self, path: Path | str) -> None:
        """Save the fitted estimator; `appca.load_model` restores it bit for bit.

        The file is an NPZ without pickle. It does not contain a callback, a generator passed as
        `random_state`, or `posterior_`.
        """
        write(path, self)
