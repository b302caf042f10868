"""A fitted model in one file (NPZ, no pickle), and back again: the same numbers on new rows.

The file holds, by name, the arrays of a run that answers about new rows depend on
(`FittedModel.model_arrays`) and ``run``: a JSON text with ``config`` (`RunConfig.to_dict`) and
``info`` (`RunInfo.to_dict`).
Further arrays are left alone: the file of ``appca fit --out NAME.npz``, which holds what was said
of the rows too, is such a file.
"""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from msgspec import Struct

from appca.analysis.fitted import FittedModel, belongs_to_model
from appca.data.dataset import DTYPES
from appca.data.preprocessing import Fitted
from appca.runs.configuration import MODELS, RunConfig, estimator_class
from appca.runs.fit import prepared
from appca.runs.run import RunInfo
from appca.storage.errors import InputError
from appca.storage.formats import TooNew, current, numbered
from appca.storage.packed import Packed, as_object, write
from appca.storage.refusal import refusing
from appca.storage.schema import Facts, fitted

if TYPE_CHECKING:
    from appca.models.base.estimator import Description

RUN = "run"  # the text among the arrays


class ModelFile(NamedTuple):
    """What a model file holds."""

    config: RunConfig
    info: dict[str, Any]  # as `RunInfo.to_dict` gives it; empty where the file has none
    model: FittedModel


class _About(Struct):
    config: Facts
    info: Facts = {}


class _Saved(Struct):
    estimator: str
    parameters: dict[str, Any]
    n_iter: int
    stop_reason: str
    features: list[str] = []


class LoadedModel(NamedTuple):
    """A fitted estimator with the preprocessing that goes before it; rows are in units of the data.

    Parameters
    ----------
    estimator : one of the classes of `appca`
        Fitted; without draws (`posterior_`), which stay with the run.
    preprocessing : Fitted
        Applied to rows before the estimator sees them.
    config : RunConfig
        All settings, and the digest of the data it was fitted to.
    info : dict
        Stop reason, iterations, log-likelihood and versions of that fit.
    """

    estimator: Any
    preprocessing: Fitted
    config: RunConfig
    info: dict[str, Any]

    def prepared(self, X: Any) -> np.ndarray:
        """Bring rows (N, D) to what the estimator was fitted to, (N, D')."""
        X = np.asarray(X)
        X = X if X.dtype in DTYPES else X.astype(np.float64)
        return prepared(self.config, self.preprocessing, X)

    def transform(self, X: Any) -> np.ndarray:
        """Scores (N, K), zero where a component is not used; after sampling averages over draws."""
        return np.asarray(self.estimator.transform(self.prepared(X)))

    def inverse_transform(self, scores: Any) -> np.ndarray:
        """Rows (N, D), in units of the data, that scores (N, K) stand for."""
        return self.preprocessing.inverse_transform(self.estimator.inverse_transform(scores))

    def allocate(self, X: Any) -> np.ndarray:
        """Which components each row uses, (N, K) bool."""
        return np.asarray(self.estimator.allocate(self.prepared(X)))

    def inclusion_probabilities(self, X: Any) -> np.ndarray:
        """How sure it is that a row uses a component, (N, K)."""
        return np.asarray(self.estimator.inclusion_probabilities(self.prepared(X)))

    def allocation_probability(self, X: Any) -> np.ndarray:
        """How sure each row's set of components is, (N,)."""
        return np.asarray(self.estimator.allocation_probability(self.prepared(X)))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row after preprocessing, (N,) in nats."""
        return np.asarray(self.estimator.score_samples(self.prepared(X)))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        return float(self.estimator.score(self.prepared(X), y))

    def describe(self, X: Any) -> "Description":
        """Say all of this of every row in one go; see `appca.models.base.estimator.Description`."""
        described: Description = self.estimator.describe(self.prepared(X))
        return described

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw rows (n_samples, D) from the model, in units of the data."""
        return self.preprocessing.inverse_transform(self.estimator.sample(n_samples, random_state))


def load_model(path: Path | str) -> Any:
    """Load a fitted model from a file: of `save`, of the page Export, or of ``appca fit --out``.

    Parameters
    ----------
    path : Path or str
        An NPZ file. It is read without pickle, and sizes are checked before anything is read.

    Returns
    -------
    estimator or LoadedModel
        Of a file that an estimator's `save` wrote, that estimator. Else a `LoadedModel`, with the
        preprocessing that the app or the command put before.
        ``transform``, ``allocate``, ``score_samples`` and the others give on any rows what the
        model gave before it was saved, to the bit on the same machine. ``estimator`` is the fitted
        scikit-learn estimator of `appca`, ``preprocessing`` what goes before it.

    Raises
    ------
    InputError
        A ValueError of one sentence, when the file is not there, damaged, or no model file.

    Examples
    --------
    >>> from appca import load_model
    >>> model = load_model("model-1a2b3c4d5e6f.npz")  # doctest: +SKIP
    >>> model.transform(X_new)  # doctest: +SKIP
    """
    saved = _saved(Path(path).name, path)
    if saved is not None:
        return saved
    config, info, model = read_model(Path(path).name, path)
    n_iter = int(info.get("n_iter", len(model.log_likelihoods)))
    how = n_iter, str(info.get("stop_reason", ""))
    estimator = _restored(Path(path).name, config.model, config.parameters, model, how)
    return LoadedModel(estimator, model.preprocessing, config, info)


def _restored(
    name: str, kind: str, parameters: dict[str, Any], model: FittedModel, how: tuple[int, str]
) -> Any:
    """Return the fitted estimator; `how` it was reached is its iterations and stop reason."""
    try:
        estimator = estimator_class(kind)(**parameters)
        estimator.restore(model.estimator_arrays())
    except (TypeError, ValueError) as error:
        msg = f"“{name}” does not hold a fitted {kind} ({error})."
        raise InputError(msg) from error
    estimator.log_likelihoods_ = model.log_likelihoods
    estimator.n_iter_, estimator.stop_reason_ = how
    return estimator


def _saved(name: str, path: Path | str) -> Any:
    """Return the estimator that a file of `save` holds, or None for any other file."""
    from appca.models.base.parameters import refuse
    from appca.models.base.saved import ESTIMATOR

    opening = refusing(f"“{name}” could not be opened", "check its place and name")
    with opening, Path(path).open("rb") as stream:
        packed = Packed(name, stream)
        if ESTIMATOR not in packed:
            return None
        try:
            facts = fitted(_Saved, current(f"“{name}”", packed.json(ESTIMATOR), "model"))
            kinds = {spec.estimator.partition(":")[2]: kind for kind, spec in MODELS.items()}
            kind = kinds[facts.estimator]
            rules: Any = estimator_class(kind)
            refuse(rules._rules, rules(**facts.parameters).get_params(deep=False))
        except TooNew:
            raise
        except (KeyError, TypeError, ValueError) as error:
            msg = f"“{name}” does not say which estimator it holds; save the estimator again."
            raise InputError(msg) from error
        model = _model_of(packed, name, facts.estimator)
    found = _restored(name, kind, facts.parameters, model, (facts.n_iter, facts.stop_reason))
    if facts.features:
        found.feature_names_in_ = np.array(facts.features, dtype=object)
    return found


def about_run(config: RunConfig, info: RunInfo) -> dict[str, np.ndarray]:
    """Return the text that makes a model file of arrays, by its name among them."""
    facts = numbered({"config": config.to_dict(), "info": info.to_dict()})
    return {RUN: np.array(json.dumps(facts, ensure_ascii=False))}


def model_bytes(config: RunConfig, model: FittedModel, info: RunInfo) -> bytes:
    """Return a model file; of a run, what new rows do not depend on is left out."""
    buffer = io.BytesIO()
    kept = model.model_arrays() | about_run(config, info)
    write(buffer, {}, {f"{name}.npy": value for name, value in kept.items()})
    return buffer.getvalue()


def read_model(name: str, file: Path | str | BinaryIO) -> ModelFile:
    """Read a model file without making the estimator; `appca.runs.fit.project` takes the result.

    `name` is for messages. Raises InputError when it is not there, damaged, or no model file.
    """
    if not isinstance(file, (str, Path)):
        return _read(Packed(name, file), name)
    with (
        refusing(f"“{name}” could not be opened", "check its place and name"),
        Path(file).open("rb") as stream,
    ):
        return _read(Packed(name, stream), name)


def _said(packed: Packed, name: str) -> tuple[RunConfig, dict[str, Any]]:
    """Read what the file says of its model: settings, and how the fit went."""
    if f"{RUN}.npy" not in packed:
        msg = (
            f"“{name}” is no model file: it lacks “{RUN}”; save the model on the page Export, "
            "or by `fit --out`."
        )
        raise InputError(msg)
    text = packed.array(f"{RUN}.npy")
    try:
        given = fitted(_About, current(f"“{name}”", as_object(str(text)), "model"))
        config = RunConfig.from_record(given.config)
        if given.info:
            RunInfo.from_dict(given.info)
    except TooNew:
        raise
    except ValueError as error:
        why = str(error).removesuffix(".")
        msg = f"“{name}” does not say which model it holds ({why}); save the model again."
        raise InputError(msg) from error
    return config, given.info


def _read(packed: Packed, name: str) -> ModelFile:
    config, info = _said(packed, name)
    return ModelFile(config, info, _model_of(packed, name, config.model, config))


def _model_of(packed: Packed, name: str, kind: str, config: RunConfig | None = None) -> FittedModel:
    """Read the arrays of a model; a file of `save` has no config, and no preprocessing."""
    names = [member.removesuffix(".npy") for member in packed.names if member.endswith(".npy")]
    arrays = {key: packed.array(f"{key}.npy") for key in names if belongs_to_model(key)}
    try:
        read = FittedModel.from_estimator_arrays if config is None else FittedModel.from_arrays
        model = read(arrays)
        fits = fits_together(model)
        fits = fits and (config is None or config.allows(len(model.components)))
    except KeyError as error:
        msg = f"“{name}” lacks {error.args[0]} of its {kind}; save the model again."
        raise InputError(msg) from error
    except (TypeError, ValueError, IndexError):
        fits = False
    if not fits:
        msg = f"The arrays in “{name}” do not fit together; save the model again."
        raise InputError(msg)
    return model


def fits_together(model: FittedModel) -> bool:
    """Whether arrays are of one model: others would fail later, and less clearly."""
    before = model.preprocessing
    if model.components.ndim != 2 or before.offset.ndim != 1:
        return False
    K, D = model.components.shape
    return (
        model.mean.shape == (D,)
        and model.noise_variance > 0
        and (model.n_active is None or 1 <= model.n_active <= K)
        and model.latent_variance.shape == model.scale.shape == (K,)
        and model.explained_variance.shape == (K,)
        and before.scale.shape == before.offset.shape
        and before.n_features == D
        and all(np.isfinite(value).all() for value in model.model_arrays().values())
    )
