"""Fitted estimators as arrays and as files, and back again."""

import copy
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from appca.models.algebra.gaussian import Array
from appca.models.base.order import POSTERIOR, arranged
from appca.storage import atomic, packed
from appca.storage.formats import numbered
from appca.words.errors import InputError

ESTIMATOR = "estimator.json"  # the text that makes an NPZ file one of a saved estimator
CURVE = "log_likelihoods"
PREPROCESSING = "pre_"  # before the names of its arrays


class Saved(BaseEstimator):  # type: ignore[misc]
    """What an estimator was fitted to, by names; `_found` are its attributes."""

    components_: Array
    log_likelihoods_: Array
    n_iter_: int
    stop_reason_: str

    _found: ClassVar[tuple[str, ...]]

    def _unnamed(self) -> Self:
        """Return a copy to be asked about rows that were checked, and so have no more names."""
        alone = copy.copy(self)
        alone.__dict__.pop("feature_names_in_", None)
        return alone

    def fitted_arrays(self) -> dict[str, Array]:
        """Everything that answers about new rows depend on, by name without the underscore."""
        check_is_fitted(self)
        return {name[:-1]: np.asarray(getattr(self, name)) for name in self._found}

    def restore(self, arrays: dict[str, Array]) -> Self:
        """Become the fitted estimator whose `fitted_arrays` these are; draws do not come back.

        Raises
        ------
        ValueError
            When an array is missing.
        """
        missing = [name[:-1] for name in self._found if name[:-1] not in arrays]
        if missing:
            msg = (
                f"arrays must hold what {type(self).__name__} was fitted to, but "
                f"{', '.join(missing)} is missing: fit the model again."
            )
            raise ValueError(msg)
        for name in self._found:
            value = arrays[name[:-1]]
            setattr(self, name, value.item() if value.ndim == 0 else value)
        self.n_features_in_ = self.components_.shape[1]
        return self

    def reorder(self, order: Sequence[int], signs: Sequence[int] | None = None) -> Self:
        """Put the components into another order and turn some of them round; return the estimator.

        Queries about rows answer in the new order. What the model says of a row stays the same.

        Parameters
        ----------
        order : sequence of int, length K
            Component ``order[j]``, counted from 0, becomes row j of `components_`.
        signs : sequence of int, length K, optional
            -1 turns the component that becomes row j round, and with it its scores.

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
        self.restore(arranged(self.fitted_arrays(), places, turned))
        if draws is not None:
            every = {POSTERIOR + name: values for name, values in draws.items()}
            moved = arranged(every, places, turned)
            self.posterior_ = {name.removeprefix(POSTERIOR): a for name, a in moved.items()}
        for name in ("_stepwise", "_sums"):  # `partial_fit` goes on as with a model from a file
            self.__dict__.pop(name, None)
        return self

    def save(self, path: Path | str) -> None:
        """Save the fitted estimator; `appca.load_model` gives it back, the same to the bit.

        The file is an NPZ without pickle. A callback, a generator given as `random_state` and
        `posterior_` stay behind.
        """
        write(path, self)


def write(path: Path | str, model: Saved, behind: Any = None) -> None:
    """Write a fitted estimator into a file, and the preprocessing of a `Preprocessed` it has."""
    facts = {
        "estimator": type(model).__name__,
        "parameters": {k: _plain(v) for k, v in model.get_params(deep=False).items()},
        "n_iter": int(model.n_iter_),
        "stop_reason": model.stop_reason_,
        "features": [str(name) for name in getattr(behind or model, "feature_names_in_", ())],
    }
    arrays = model.fitted_arrays() | {CURVE: model.log_likelihoods_}
    if behind is not None:
        facts["preprocessing"] = behind.preprocessing.to_dict()
        learned = behind.preprocessing_.arrays()
        arrays |= {PREPROCESSING + name: value for name, value in learned.items()}
    buffer = io.BytesIO()
    members = {f"{name}.npy": value for name, value in arrays.items()}
    packed.write(buffer, {ESTIMATOR: numbered(facts)}, members)
    atomic.write(Path(path), buffer.getvalue(), private=False)


def _plain(value: Any) -> Any:
    """Turn a parameter into one of JSON, or None where it is a function or a generator."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool) else None
