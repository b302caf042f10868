"""A fitted model in one file (NPZ, no pickle), and back again: the same numbers on new rows.

The file holds, by name, the arrays of a run that answers about new rows depend on
(`SubspaceModel.fitted_arrays`, with ``pre_`` those of the preprocessing), its curve
``log_likelihoods``, and ``run``: a JSON text with ``config`` (`RunConfig.to_dict`) and ``info``.
Further arrays are left alone: the file of ``appca fit --out NAME.npz``, which holds what was said
of the rows too, is such a file.
"""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from appca.data.dataset import DTYPES
from appca.data.preprocessing import Fitted
from appca.runs.configuration import RunConfig, estimator_class
from appca.runs.fit import PREPROCESSING, fitted_preprocessing, prepared
from appca.storage.errors import InputError
from appca.storage.formats import TooNew, current, numbered
from appca.storage.packed import Packed, as_object, write
from appca.storage.refusal import refusing

if TYPE_CHECKING:
    from appca.models.base.estimator import Description

RUN = "run"  # the text among the arrays
_SINGLE = ("noise_variance", "n_active", "alpha")  # one number each
CURVE = "log_likelihoods"


class ModelFile(NamedTuple):
    """What a model file holds."""

    config: RunConfig
    info: dict  # as `appca.runs.fit.Result` has it; empty where the file has none
    arrays: dict[str, np.ndarray]  # enough for `appca.runs.fit.project`


class LoadedModel(NamedTuple):
    """
    A fitted estimator with the preprocessing that goes before it; rows are in units of the data.

    Parameters
    ----------
    estimator : one of the classes of `appca`
        Fitted; without draws (`posterior_`), which stay with the run.
    preprocessing : Fitted
        Applied to rows before the estimator sees them.
    config : RunConfig
        All settings, and the digest of the data it was fitted to.
    info : dict
        Stop reason, passes, log-likelihood and versions of that fit.
    """

    estimator: Any
    preprocessing: Fitted
    config: RunConfig
    info: dict

    def prepared(self, X: Any) -> np.ndarray:
        """Bring rows (N, D) to what the estimator was fitted to, (N, D')."""
        X = np.asarray(X)
        X = X if X.dtype in DTYPES else X.astype(np.float64)
        return prepared(self.config, self.preprocessing, X)

    def transform(self, X: Any) -> np.ndarray:
        """Scores (N, K), zero where a component is not used."""
        return self.estimator.transform(self.prepared(X))

    def inverse_transform(self, scores: Any) -> np.ndarray:
        """Rows (N, D), in units of the data, that scores (N, K) stand for."""
        return self.preprocessing.inverse_transform(self.estimator.inverse_transform(scores))

    def allocate(self, X: Any) -> np.ndarray:
        """Which components each row uses, (N, K) bool."""
        return self.estimator.allocate(self.prepared(X))

    def inclusion_probabilities(self, X: Any) -> np.ndarray:
        """How sure it is that a row uses a component, (N, K)."""
        return self.estimator.inclusion_probabilities(self.prepared(X))

    def allocation_probability(self, X: Any) -> np.ndarray:
        """How sure each row's set of components is, (N,)."""
        return self.estimator.allocation_probability(self.prepared(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-likelihood of each row after preprocessing, (N,) in nats."""
        return self.estimator.score_samples(self.prepared(X))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows, in nats."""
        return self.estimator.score(self.prepared(X), y)

    def describe(self, X: Any) -> "Description":
        """Say all of this of every row in one go; see `appca.models.base.estimator.Description`."""
        return self.estimator.describe(self.prepared(X))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw rows (n_samples, D) from the model, in units of the data."""
        return self.preprocessing.inverse_transform(self.estimator.sample(n_samples, random_state))


def load_model(path: Path | str) -> LoadedModel:
    """
    Load a fitted model from a file: of the page Export (“Model”), or of ``appca fit --out``.

    Parameters
    ----------
    path : Path or str
        An NPZ file. It is read without pickle, and sizes are checked before anything is read.

    Returns
    -------
    LoadedModel
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
    config, info, arrays = read_model(Path(path).name, path)
    try:
        estimator = estimator_class(config.model)(**config.parameters).restore(arrays)
    except (TypeError, ValueError) as error:
        msg = f"“{Path(path).name}” does not hold a fitted {config.model} ({error})."
        raise InputError(msg) from error
    estimator.log_likelihoods_ = arrays.get(CURVE, np.empty(0))
    estimator.n_iter_ = int(info.get("n_iter", len(estimator.log_likelihoods_)))
    estimator.stop_reason_ = str(info.get("stop_reason", ""))
    return LoadedModel(estimator, fitted_preprocessing(arrays), config, info)


def model_arrays(config: RunConfig, arrays: dict[str, np.ndarray], info: dict) -> dict:
    """
    Return what a model file holds, by name.

    Parameters
    ----------
    config : RunConfig
    arrays : dict
        A run's; what new rows do not depend on is left out.
    info : dict
        As in `appca.runs.fit.Result`.
    """
    estimator = estimator_class(config.model)(**config.parameters).restore(arrays)
    kept = estimator.fitted_arrays()
    kept |= {key: value for key, value in arrays.items() if key.startswith(PREPROCESSING)}
    kept |= {CURVE: arrays[CURVE]} if CURVE in arrays else {}
    facts = numbered({"config": config.to_dict(), "info": info})
    text = json.dumps(facts, ensure_ascii=False)
    return kept | {RUN: np.array(text)}


def model_bytes(config: RunConfig, arrays: dict[str, np.ndarray], info: dict) -> bytes:
    """Return a model file; see `model_arrays`."""
    buffer = io.BytesIO()
    kept = model_arrays(config, arrays, info)
    write(buffer, {}, {f"{name}.npy": value for name, value in kept.items()})
    return buffer.getvalue()


def read_model(name: str, file: Path | str | BinaryIO) -> ModelFile:
    """
    Read a model file without making the estimator; `appca.runs.fit.project` takes the result.

    Parameters
    ----------
    name : str
        For messages.
    file : path or binary file object

    Raises
    ------
    InputError
        When it is not there, damaged, or no model file.
    """
    if not isinstance(file, (str, Path)):
        return _read(Packed(name, file), name)
    with (
        refusing(f"“{name}” could not be opened", "check its place and name"),
        Path(file).open("rb") as stream,
    ):
        return _read(Packed(name, stream), name)


def _read(packed: Packed, name: str) -> ModelFile:
    if f"{RUN}.npy" not in packed:
        msg = (
            f"“{name}” is no model file: it lacks “{RUN}”; save the model on the page Export, "
            "or by `fit --out`."
        )
        raise InputError(msg)
    text = packed.array(f"{RUN}.npy")
    try:
        about = current(f"“{name}”", as_object(str(text)), "model")
        config, info = RunConfig.from_record(about["config"]), dict(about.get("info", {}))
        wanted = _wanted(config, packed)
    except TooNew:
        raise
    except (KeyError, TypeError, ValueError) as error:
        msg = f"“{name}” does not say which model it holds ({error}); save the model again."
        raise InputError(msg) from error
    arrays = {key: packed.array(f"{key}.npy") for key in wanted}
    _check(arrays, config, name)
    return ModelFile(config, info, arrays)


def _wanted(config: RunConfig, packed: Packed) -> list[str]:
    """Names of the arrays to read: those of the estimator and the preprocessing, no others."""
    fitted = {name[:-1] for name in estimator_class(config.model)._found} | {CURVE}
    names = [member.removesuffix(".npy") for member in packed.names]
    return [name for name in names if name in fitted or name.startswith(PREPROCESSING)]


def _check(arrays: dict[str, np.ndarray], config: RunConfig, name: str) -> None:
    """Refuse arrays that do not fit together: they would fail later, and less clearly."""
    needed = {"components", "mean", "latent_variance", "scale", "noise_variance"}
    needed |= {PREPROCESSING + part for part in ("divide", "offset", "scale")}
    missing = sorted(needed - set(arrays))
    if missing:
        msg = f"“{name}” lacks {', '.join(missing)} of its {config.model}; save the model again."
        raise InputError(msg)
    try:
        fitted = fitted_preprocessing(arrays)
        K, D = arrays["components"].shape
        fits = (
            arrays["mean"].shape == (D,)
            and all(arrays[key].shape == () for key in _SINGLE if key in arrays)
            and float(arrays["noise_variance"]) > 0
            and 1 <= int(arrays.get("n_active", 1)) <= K
            and arrays["latent_variance"].shape == arrays["scale"].shape == (K,)
            and fitted.scale.shape == fitted.offset.shape
            and fitted.n_features == D
        )
    except (KeyError, TypeError, ValueError, IndexError):
        fits = False
    if not fits or not all(np.isfinite(value).all() for value in arrays.values()):
        msg = f"The arrays in “{name}” do not fit together; save the model again."
        raise InputError(msg)
