"""Files of fitted models (NPZ, no pickle), which give the same numbers for new rows.

The file contains the arrays needed to describe new rows (`FittedModel.model_arrays`), and ``run``,
a JSON text with ``config`` (`RunConfig.to_dict`) and ``info`` (`RunInfo.to_dict`). Other arrays,
such as the description of the rows in ``appca fit --out NAME.npz``, are ignored.
"""

import io
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from msgspec import Struct

from appca.analysis.fitted import FittedModel, FittedRun, belongs_to_model
from appca.annotated_file import AnnotatedFit
from appca.data.preprocessing import Preprocessing
from appca.models.settings import refuse_parameters
from appca.runs.run import MODELS, RunConfig, RunInfo, estimator_class
from appca.storage.files import OtherFormat, numbered, without_number
from appca.storage.packed import Packed, as_object, write
from appca.storage.schema import Facts
from appca.storage.schema import fitted as validated
from appca.words import InputError, refuse_if, refusing

RUN, NAMES = "run", "feature_names"  # array names: the JSON text, and the feature names


class ModelFile(NamedTuple):
    """The contents of a model file."""

    config: RunConfig
    info: dict[str, Any]  # from `RunInfo.to_dict`; empty if the file has none
    model: FittedModel
    names: tuple[str, ...] = ()  # feature names, if stored


class _About(Struct):
    config: Facts
    info: Facts = {}


class _Saved(Struct):
    estimator: str
    parameters: dict[str, Any]
    n_iter: int
    stop_reason: str
    features: list[str] = []
    preprocessing: Facts | None = None


def load_model(path: Path | str) -> Any:
    """Load a fitted model from a file written by `save`, the page Export, or ``appca fit --out``.

    Parameters
    ----------
    path : Path or str
        An NPZ file, which is read without pickle. Sizes are checked before data are read.

    Returns
    -------
    estimator
        The fitted scikit-learn estimator. For a file written by `save`, it has the class of the
        saved estimator. For a file from the command line or the app, it is an
        `appca.models.preprocessed.Preprocessed`: its rows are in units of the data, and
        ``estimator_`` is the model after preprocessing. ``config`` contains all settings and the
        digest of the data; ``info`` describes the fit.
        ``transform``, ``allocate``, ``score_samples`` and other methods give the same results as
        before saving, to the bit on the same machine. Columns of a data frame must have the names
        and order of the fit. The file does not contain draws (``posterior_``).

    Raises
    ------
    InputError
        If the file is missing, damaged, or not a model file.
    """
    from appca.models.estimator import ESTIMATOR

    name = Path(path).name
    with _opened(name, path) as packed:
        if ESTIMATOR in packed:
            return _saved(packed, name)
    config, info, model, names = read_model(name, path)
    how = int(info.get("n_iter", len(model.log_likelihoods))), str(info.get("stop_reason", ""))
    estimator = estimator_class(config.model)(**config.parameters)
    _restore(name, config.model, estimator, model, how)
    loaded = _named(behind(config.preprocessing, estimator, model), names)
    loaded.config, loaded.info = config, info
    return loaded


def behind(options: dict[str, Any], estimator: Any, model: FittedModel) -> Any:
    """Return a fitted estimator that preprocesses its rows."""
    from appca.models.preprocessed import Preprocessed

    whole = Preprocessed(estimator, Preprocessing.from_dict(options))
    whole.estimator_, whole.preprocessing_ = estimator, model.preprocessing
    whole.n_features_in_ = len(model.preprocessing.offset)
    return whole


def _named(estimator: Any, names: Sequence[str]) -> Any:
    """Make an estimator check column names, unless their number is wrong."""
    if len(names) == len(set(names)) == estimator.n_features_in_:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


def _restore(
    name: str, kind: str, estimator: Any, model: FittedModel, how: tuple[int, str]
) -> None:
    """Restore an estimator; `how` is the number of iterations and the reason for stopping."""
    try:
        estimator.restore(model.estimator_arrays())
    except (TypeError, ValueError) as error:
        msg = f"“{name}” does not contain a fitted {kind} ({error})."
        raise InputError(msg) from error
    estimator.log_likelihoods_ = model.log_likelihoods
    estimator.n_iter_, estimator.stop_reason_ = how


@contextmanager
def _describing(name: str, what: str) -> Iterator[None]:
    try:
        yield
    except OtherFormat:
        raise
    except (KeyError, TypeError, ValueError) as error:
        why = str(error).removesuffix(".")
        msg = f"“{name}” has no valid description of its {what} ({why}); save the {what} again."
        raise InputError(msg) from error


def _saved(packed: Packed, name: str) -> Any:
    from appca.models.estimator import ESTIMATOR

    with _describing(name, "estimator"):
        facts = validated(_Saved, without_number(f"“{name}”", packed.json(ESTIMATOR)))
        kinds = {spec.estimator.partition(":")[2]: kind for kind, spec in MODELS.items()}
        kind = kinds[facts.estimator]
        estimator: Any = estimator_class(kind)(**facts.parameters)
        refuse_parameters(kind, estimator.get_params(deep=False))
        Preprocessing.from_dict(facts.preprocessing or {})
    model = _model_of(packed, name)
    _restore(name, kind, estimator, model, (facts.n_iter, facts.stop_reason))
    if facts.preprocessing is not None:
        estimator = behind(facts.preprocessing, estimator, model)
    return _named(estimator, facts.features)


def annotated_fit(config: RunConfig, fitted: FittedRun) -> AnnotatedFit:
    """Return a run for an annotated data file, with its components' shares of variance."""
    estimator = estimator_class(config.model)(**config.parameters)
    estimator.restore(fitted.estimator_arrays())
    ratio = getattr(estimator, "explained_variance_ratio_", None)  # missing in some models
    return AnnotatedFit(fitted, {"model": config.model, **config.parameters}, ratio)


def about_run(
    config: RunConfig, info: RunInfo, names: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Return the JSON text of a model file, and the feature names, as arrays by name."""
    facts = numbered({"config": config.to_dict(), "info": info.to_dict()})
    about = {RUN: np.array(json.dumps(facts, ensure_ascii=False))}
    return about if names is None else about | {NAMES: np.array(names, dtype="U")}


def model_bytes(
    config: RunConfig, model: FittedModel, info: RunInfo, names: Sequence[str] | None = None
) -> bytes:
    """Return a model file without what new rows do not need; `names` are those of features."""
    buffer, kept = io.BytesIO(), model.model_arrays() | about_run(config, info, names)
    write(buffer, {}, {f"{name}.npy": value for name, value in kept.items()})
    return buffer.getvalue()


def read_model(name: str, file: Path | str | BinaryIO) -> ModelFile:
    """Read a model file without creating the estimator; `appca.runs.fit.project` uses the result.

    `name` is used in messages. Raises InputError if the file is missing, damaged or no model file.
    """
    with _opened(name, file) as packed:
        msg = f"“{name}” is not a model file: it lacks “{RUN}”; save the model on the page "
        msg += "Export, or with `fit --out`."
        refuse_if(f"{RUN}.npy" not in packed, msg)
        text = packed.array(f"{RUN}.npy")
        with _describing(name, "model"):
            about = validated(_About, without_number(f"“{name}”", as_object(str(text))))
            config = RunConfig.from_record(about.config)
            if about.info:
                RunInfo.from_dict(about.info)
        model = _model_of(packed, name, config)
        listed = packed.array(f"{NAMES}.npy").ravel() if f"{NAMES}.npy" in packed else ()
        return ModelFile(config, about.info, model, tuple(map(str, listed)))


@contextmanager
def _opened(name: str, file: Path | str | BinaryIO) -> Iterator[Packed]:
    if not isinstance(file, (str, Path)):
        yield Packed(name, file)
        return
    with refusing(f"“{name}” could not be opened", "check its path"), Path(file).open("rb") as raw:
        yield Packed(name, raw)


def _model_of(packed: Packed, name: str, config: RunConfig | None = None) -> FittedModel:
    names = [member.removesuffix(".npy") for member in packed.names if member.endswith(".npy")]
    arrays = {key: packed.array(f"{key}.npy") for key in names if belongs_to_model(key)}
    read = FittedModel.from_saved if config is None else FittedModel.from_arrays
    try:
        fits = fits_together(model := read(arrays), config)
    except KeyError as error:
        msg = f"“{name}” lacks the array “{error.args[0]}”; save the model again."
        raise InputError(msg) from error
    except (TypeError, ValueError, IndexError):
        fits = False
    refuse_if(not fits, f"The arrays in “{name}” do not match each other; save the model again.")
    return model


def fits_together(model: FittedModel, config: RunConfig | None = None) -> bool:
    """Whether arrays form a model with these settings; otherwise queries would fail later.

    The noise variance is a number, or one per feature (0 for constant features); learned sizes and
    scales are positive.
    """
    before, noise = model.preprocessing, np.atleast_1d(model.noise_variance)
    if model.components.ndim != 2 or before.offset.ndim != 1:
        return False
    K, D = model.components.shape
    prepare = before.prepare.name if before.prepare else "none"
    learned = model.size_probabilities, model.row_scale_values, model.row_scale_probabilities
    sizes, scales, p = (np.atleast_1d(1.0 if value is None else value) for value in learned)
    of_components = model.latent_variance, model.scale, model.explained_variance
    return bool(
        (config is None or config.allows(K))
        and (config is None or config.preprocessing.get("prepare", "none") == prepare)
        and (before.prepare is None or before.prepare.suits(len(before.offset)))
        and model.mean.shape == (D,)
        and noise.shape in {(1,), (D,)}
        and (noise >= 0).all()
        and (noise > 0).any()
        and (model.size_probabilities is None or sizes.shape == (K + 1,))
        and sizes.ndim == scales.ndim == 1
        and scales.shape == p.shape
        and all((value > 0).all() for value in (sizes, scales, p))
        and (model.n_active is None or 1 <= model.n_active <= K)
        and all(value.shape == (K,) for value in of_components)
        and before.scale.shape == before.offset.shape
        and before.n_features == D
        and all(np.isfinite(value).all() for value in model.model_arrays().values())
    )
