"""Types of a fitted run, and the names of its arrays on disk."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from appca.data.dataset import read_only
from appca.data.preprocessing import Fitted, Preprocessing
from appca.models.settings import LEARNED, MODELS, later
from appca.storage.identity import Recorded, plain, without
from appca.words import refuse_if

if TYPE_CHECKING:
    from appca.models.posterior import Description

PREPROCESSING, POSTERIOR, DRAWS = "pre_", "posterior_", "draws_"  # prefixes of names
CURVE, IMPUTED = "log_likelihoods", "imputed"


class _ReadOnly:
    """Base of dataclasses with read-only arrays, which pages and threads share."""

    def __post_init__(self) -> None:
        for name, value in self._values(type(self)).items():
            if isinstance(value, Mapping):
                value = {key: read_only(each) for key, each in value.items()}  # noqa: PLW2901
            elif isinstance(value, np.ndarray):
                value = read_only(value)  # noqa: PLW2901
            object.__setattr__(self, name, value)

    def _values(self, kind: type) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(kind)}


@dataclass(frozen=True, eq=False, kw_only=True)
class DescribedRows(_ReadOnly):
    """Results of a model with K components for N rows, as read-only arrays.

    `scores` (N, K) are posterior means given the MAP support `active`, and 0 for unused components.
    `membership` (N,) is the probability of that support, `inclusion` (N, K) that of each component,
    `error` (N,) the mean squared reconstruction error per feature, in preprocessed units.
    Log-likelihoods are in nats, with errors if estimated. `row_scales` are posterior means.
    """

    scores: np.ndarray
    active: np.ndarray
    inclusion: np.ndarray
    membership: np.ndarray
    error: np.ndarray
    log_likelihood_rows: np.ndarray
    log_likelihood_errors: np.ndarray | None = None
    row_scales: np.ndarray | None = None

    @classmethod
    def from_description(cls, description: "Description") -> "DescribedRows":
        """Convert a result of `describe` to the precision of stored runs."""
        errors = description.standard_error
        stored = {"log_likelihood_errors": errors if errors.any() else None}
        rounded = ("scores", "inclusion", "membership", "error", "row_scales")
        stored |= {name: getattr(description, name) for name in rounded}
        arrays = {name: x.astype(np.float32) for name, x in stored.items() if x is not None}
        exact = {"active": description.active, "log_likelihood_rows": description.log_likelihood}
        return DescribedRows(**arrays, **exact)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "DescribedRows":
        """Rebuild results from their `row_arrays`; KeyError for missing arrays."""
        names = {*ROW_ARRAYS, *arrays.keys() & set(SOME_ROW_ARRAYS)}
        return DescribedRows(**{name: arrays[name] for name in names})

    def row_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by their names on disk."""
        every = self._values(DescribedRows)
        return {name: value for name, value in every.items() if value is not None}

    def take(self, rows: np.ndarray) -> "DescribedRows":
        """Return the results of the given rows."""
        return DescribedRows(**{name: values[rows] for name, values in self.row_arrays().items()})

    def followed_by(self, others: "DescribedRows") -> "DescribedRows":
        """Return the results of these rows, followed by others of the same model."""
        first, second = self.row_arrays(), others.row_arrays()
        both = {name: [first[name], second[name]] for name in first.keys() & second.keys()}
        return DescribedRows(**{name: np.concatenate(pair) for name, pair in both.items()})


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel(_ReadOnly):
    """A fitted estimator's arrays and its preprocessing, for describing new rows.

    Components (K, D') and mean (D',) refer to the D' features after preprocessing. Noise variance
    is a number, or one per feature (0 for a constant feature). `scale` (K,) is the root mean square
    of a component's scores over its rows. If the support size varies, `n_active` is None, `weights`
    (K,) are the shares of rows that use each component, and alpha is the IBP's mass parameter.
    Queries of a sampled fit average over `draws`. `log_likelihoods` are per iteration.
    """

    components: np.ndarray
    mean: np.ndarray
    noise_variance: float | np.ndarray
    latent_variance: np.ndarray
    explained_variance: np.ndarray
    scale: np.ndarray
    n_active: int | None = None
    weights: np.ndarray | None = None
    alpha: float | None = None
    size_probabilities: np.ndarray | None = None
    row_scale_values: np.ndarray | None = None
    row_scale_probabilities: np.ndarray | None = None
    preprocessing: Fitted
    draws: Mapping[str, np.ndarray] = field(default_factory=dict)
    log_likelihoods: np.ndarray = field(default_factory=lambda: np.empty(0))
    names: tuple[str, ...] = ()

    @classmethod
    def from_estimator(cls, estimator: Any, preprocessing: Fitted) -> "FittedModel":
        """Combine the arrays of a fitted estimator with its preprocessing."""
        arrays = estimator.fitted_arrays() | {CURVE: np.asarray(estimator.log_likelihoods_)}
        return FittedModel.from_arrays(arrays | _with(PREPROCESSING, preprocessing.arrays()))

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "FittedModel":
        """Rebuild a model from `model_arrays`; KeyError if some lack, ValueError if no number."""
        draws, msg = _without(DRAWS, arrays), "the draws of the posterior do not match each other"
        refuse_if(draws and not _are_draws(draws, arrays), msg)
        parts: dict[str, Any] = {name: arrays[name] for name in _EVERY_MODEL}
        parts |= {name: arrays[name] for name in _SOME_MODELS if name in arrays}
        numbers: dict[str, Any] = {"noise_variance": float, "alpha": float, "n_active": int}
        if parts["noise_variance"].ndim == 1:
            del numbers["noise_variance"]
        if "size_probabilities" in parts:
            del numbers["n_active"]
        for name in numbers.keys() & arrays.keys():
            msg = f"an array of shape {arrays[name].shape} is stored in place of a number"
            refuse_if(arrays[name].shape, msg)
            parts[name] = numbers[name](arrays[name].item())
        before, curve = _without(PREPROCESSING, arrays), arrays.get(CURVE, np.empty(0))
        parts |= {"preprocessing": Fitted.from_arrays(before), "log_likelihoods": curve}
        return FittedModel(draws=draws, **parts)

    @classmethod
    def from_saved(cls, arrays: Mapping[str, np.ndarray]) -> "FittedModel":
        """Rebuild a model that may lack preprocessing; raises like `from_arrays`."""
        if not any(name.startswith(PREPROCESSING) for name in arrays):
            D = len(arrays["mean"])
            none = Fitted(1.0, np.zeros(D), np.ones(D), None)
            arrays = {**arrays, **_with(PREPROCESSING, none.arrays())}
        return cls.from_arrays(arrays)

    def estimator_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for an estimator's `restore`."""
        every = {name: getattr(self, name) for name in (*_EVERY_MODEL, "alpha", *_SOME_MODELS)}
        arrays = {name: np.asarray(value) for name, value in every.items() if value is not None}
        K = len(self.components)
        if self.n_active is not None or self.size_probabilities is not None:
            arrays["n_active"] = np.asarray(self.n_active or K)
        if self.weights is not None:
            arrays["n_components"] = np.asarray(K)
        return arrays | _with(DRAWS, self.draws)

    def model_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a model file by their names on disk."""
        arrays = self.estimator_arrays() | {CURVE: self.log_likelihoods}
        return arrays | _with(PREPROCESSING, self.preprocessing.arrays())

    def with_rows(self, rows: DescribedRows, **beside: Any) -> "FittedRun":
        """Return the model with results for these rows; see `FittedRun`."""
        return FittedRun(**self._values(FittedModel), **rows._values(DescribedRows), **beside)


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedRun(FittedModel, DescribedRows):
    """A fitted model and its results for the fitted rows.

    `posterior` contains the draws of a sampled fit, (n_chains, n_draws, ...) each; `imputed` (m,)
    contains the model's values for the missing cells, in data units, row by row.
    """

    posterior: Mapping[str, np.ndarray] = field(default_factory=dict)
    imputed: np.ndarray | None = None

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> "FittedRun":
        """Rebuild a run from `to_arrays`; raises like `FittedModel.from_arrays`."""
        beside = {"posterior": _without(POSTERIOR, arrays), "imputed": arrays.get(IMPUTED)}
        model, rows = FittedModel.from_arrays(arrays), DescribedRows.from_arrays(arrays)
        return model.with_rows(rows, **beside)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of a stored run by their names on disk."""
        arrays = self.model_arrays() | self.row_arrays() | _with(POSTERIOR, self.posterior)
        return arrays if self.imputed is None else arrays | {IMPUTED: self.imputed}

    def completed(self, X: np.ndarray, missing: np.ndarray | None) -> np.ndarray:
        """Return rows X (N, D) of the fit with the model's values in missing cells."""
        if missing is not None and self.imputed is not None:
            X = X.astype(np.float64)
            X[missing] = self.imputed
        return X

    def arranged(
        self, order: Sequence[int], signs: Sequence[int], names: tuple[str, ...] = ()
    ) -> "FittedRun":
        """Return the run with component ``order[j]``, times its sign, at index j, and new names."""
        from appca.models.estimator import arranged

        if tuple(order) == tuple(range(len(order))) and -1 not in signs:
            return replace(self, names=names)
        return replace(FittedRun.from_arrays(arranged(self.to_arrays(), order, signs)), names=names)

    def digest(self) -> str:
        """Return the SHA-256 (64 hex digits) of all arrays with their names and types."""
        sha = hashlib.sha256()
        for name, values in sorted(self.to_arrays().items()):
            head = [name, values.dtype.str, values.shape]
            sha.update(json.dumps(head).encode() + np.ascontiguousarray(values).data)
        return sha.hexdigest()


_VARIANCES = "noise_variance", "latent_variance", "explained_variance"
_EVERY_MODEL = ("components", "mean", *_VARIANCES, "scale")
_SOME_MODELS = ("weights", "size_probabilities", "row_scale_values", "row_scale_probabilities")
SOME_ROW_ARRAYS = "log_likelihood_errors", "row_scales"  # optional arrays
ROW_ARRAYS = tuple(part.name for part in fields(DescribedRows) if part.name not in SOME_ROW_ARRAYS)


def belongs_to_model(name: str) -> bool:
    """Whether an array of this name belongs in a model file."""
    names = (*_EVERY_MODEL, *_SOME_MODELS, "n_active", "n_components", "alpha", CURVE)
    return name in names or name.startswith((PREPROCESSING, DRAWS))


def _are_draws(draws: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray]) -> bool:
    components, shape = model["components"], draws["components"].shape
    if len(shape) != 3 or shape[1] < len(components) or shape[2:] != components.shape[1:]:
        return False
    S, width, D = shape
    wanted: dict[str, tuple[int, ...]] = {"components": shape, "mean": (S, D)}
    wanted |= dict.fromkeys(("chain", "draw", "noise_variance"), (S,))
    wanted |= dict.fromkeys(("latent_variance", "weights"), (S, width))
    learned = {"size_probabilities", "row_scale_probabilities"} & set(model)
    wanted |= {name: (S, *model[name].shape) for name in learned}
    return (
        S > 0
        and set(wanted) - set(draws) <= {"weights"}
        and all(wanted.get(name) == value.shape for name, value in draws.items())
        and all((draws[name] > 0).all() for name in ("noise_variance", *learned))
    )


def _with(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {prefix + name: value for name, value in arrays.items()}


def _without(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = (name for name in arrays if name.startswith(prefix))
    return {name.removeprefix(prefix): read_only(arrays[name]) for name in names}


class OfModel(Recorded):
    """Base of recorded settings that include the ``parameters`` of a model."""

    preprocessing: dict[str, Any]
    model: str
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        """Copy the dicts, because the id depends on them."""
        options = Preprocessing.from_dict(plain("preprocessing", self.preprocessing))
        object.__setattr__(self, "preprocessing", options.to_dict())
        object.__setattr__(self, "parameters", plain("parameters", self.parameters))

    @property
    def is_extended(self) -> bool:
        """Whether the model extends the paper's model."""
        usual = {"noise": "shared", "row_scale": "none"}
        changed = any(self.parameters.get(name, value) != value for name, value in usual.items())
        return changed or self.parameters.get("n_active") == LEARNED

    @property
    def fits_around_gaps(self) -> bool:
        """Whether the model marginalizes missing cells instead of reading placeholders."""
        by_em = self.parameters.get("inference", "em") == "em"
        return MODELS[self.model].can.incomplete and by_em and not self.is_extended

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, from which `from_dict` rebuilds equal settings."""
        return super().to_dict() | {"parameters": without(self.parameters, later(self.model))}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Rebuild settings from `to_dict`."""
        before = later(settings.get("model", getattr(cls, "model", "")))
        return super().from_dict({**settings, "parameters": {**before, **settings["parameters"]}})
