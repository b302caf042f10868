"""A fitted model in one file (NPZ, no pickle), and back again: the same numbers on new rows.

The file holds, by name, the arrays of a run that answers about new rows depend on
(`FittedModel.model_arrays`) and ``run``: a JSON text with ``config`` (`RunConfig.to_dict`) and
``info`` (`RunInfo.to_dict`).
Further arrays are left alone: the file of ``appca fit --out NAME.npz``, which holds what was said
of the rows too, is such a file.
"""

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from msgspec import Struct

from appca.analysis.annotated import AnnotatedFit
from appca.analysis.fitted import FittedModel, FittedRun, belongs_to_model
from appca.data.preprocessing import Preprocessing
from appca.models.settings import refuse_parameters
from appca.runs.run import MODELS, RunConfig, RunInfo, estimator_class
from appca.storage.files import OtherFormat, numbered, without_number
from appca.storage.packed import Packed, as_object, write
from appca.storage.schema import Facts, fitted
from appca.words import InputError, refusing

RUN, NAMES = "run", "feature_names"  # among the arrays: a text, and the names of the columns


class ModelFile(NamedTuple):
    """What a model file holds."""

    config: RunConfig
    info: dict[str, Any]  # as `RunInfo.to_dict` gives it; empty where the file has none
    model: FittedModel
    names: tuple[str, ...] = ()  # of the features of the data, where the file has them


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
    """Load a fitted model from a file: of `save`, of the page Export, or of ``appca fit --out``.

    Parameters
    ----------
    path : Path or str
        An NPZ file. It is read without pickle, and sizes are checked before anything is read.

    Returns
    -------
    estimator
        The fitted scikit-learn estimator. For a file that `save` wrote, an estimator of the same
        class. For a file of the command line or the app, an
        `appca.models.preprocessed.Preprocessed`: its rows are in units of the data, and
        ``estimator_`` is the model behind the preprocessing. ``config`` holds all settings and the
        digest of the data, ``info`` how the fit went.
        ``transform``, ``allocate``, ``score_samples`` and the others give on any rows what the
        model gave before it was saved, to the bit on the same machine. Columns of a data frame
        must have the names of the fit, in its order. Draws (``posterior_``) stay with the run.

    Raises
    ------
    InputError
        A ValueError of one sentence, when the file is not there, damaged, or no model file.
    """
    saved = _saved(Path(path).name, path)
    if saved is not None:
        return saved
    config, info, model, names = read_model(Path(path).name, path)
    n_iter = int(info.get("n_iter", len(model.log_likelihoods)))
    how = n_iter, str(info.get("stop_reason", ""))
    estimator = _restored(Path(path).name, config.model, config.parameters, model, how)
    loaded = _named(behind(config.preprocessing, estimator, model), names)
    loaded.config, loaded.info = config, info
    return loaded


def behind(options: dict[str, Any], estimator: Any, model: FittedModel) -> Any:
    """Return a fitted estimator that prepares its rows first."""
    from appca.models.preprocessed import Preprocessed

    whole = Preprocessed(estimator, Preprocessing.from_dict(options))
    whole.estimator_, whole.preprocessing_ = estimator, model.preprocessing
    whole.n_features_in_ = len(model.preprocessing.offset)
    return whole


def _named(estimator: Any, names: Sequence[str]) -> Any:
    """Let an estimator check the names of columns; those of another number mean nothing."""
    if len(names) == len(set(names)) == estimator.n_features_in_:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return estimator


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
    from appca.models.estimator import ESTIMATOR

    opening = refusing(f"“{name}” could not be opened", "check its path")
    with opening, Path(path).open("rb") as stream:
        packed = Packed(name, stream)
        if ESTIMATOR not in packed:
            return None
        try:
            facts = fitted(_Saved, without_number(f"“{name}”", packed.json(ESTIMATOR)))
            kinds = {spec.estimator.partition(":")[2]: kind for kind, spec in MODELS.items()}
            kind = kinds[facts.estimator]
            estimator: Any = estimator_class(kind)(**facts.parameters)
            refuse_parameters(kind, estimator.get_params(deep=False))
            Preprocessing.from_dict(facts.preprocessing or {})
        except OtherFormat:
            raise
        except (KeyError, TypeError, ValueError) as error:
            msg = f"“{name}” does not say which estimator it holds; save the estimator again."
            raise InputError(msg) from error
        model = _model_of(packed, name, facts.estimator, FittedModel.from_saved)
    how = facts.n_iter, facts.stop_reason
    estimator = _restored(name, kind, facts.parameters, model, how)
    if facts.preprocessing is not None:
        estimator = behind(facts.preprocessing, estimator, model)
    return _named(estimator, facts.features)


def annotated_fit(config: RunConfig, fitted: FittedRun) -> AnnotatedFit:
    """Return a run as files of annotated data keep it, with the variance of its components."""
    estimator = estimator_class(config.model)(**config.parameters)
    estimator.restore(fitted.estimator_arrays())
    ratio = getattr(estimator, "explained_variance_ratio_", None)  # not every model has it
    return AnnotatedFit(fitted, {"model": config.model, **config.parameters}, ratio)


def about_run(
    config: RunConfig, info: RunInfo, names: Sequence[str] | None = None
) -> dict[str, np.ndarray]:
    """Return the text that makes a model file of arrays, and the names of features, by name."""
    facts = numbered({"config": config.to_dict(), "info": info.to_dict()})
    about = {RUN: np.array(json.dumps(facts, ensure_ascii=False))}
    return about if names is None else about | {NAMES: np.array(names, dtype="U")}


def model_bytes(
    config: RunConfig, model: FittedModel, info: RunInfo, names: Sequence[str] | None = None
) -> bytes:
    """Return a model file; of a run, what new rows do not depend on is left out.

    `names` are those of the features of the data, if they have any.
    """
    buffer = io.BytesIO()
    kept = model.model_arrays() | about_run(config, info, names)
    write(buffer, {}, {f"{name}.npy": value for name, value in kept.items()})
    return buffer.getvalue()


def read_model(name: str, file: Path | str | BinaryIO) -> ModelFile:
    """Read a model file without making the estimator; `appca.runs.fit.project` takes the result.

    `name` is for messages. Raises InputError when it is not there, damaged, or no model file.
    """
    if not isinstance(file, (str, Path)):
        return _read(Packed(name, file), name)
    with (
        refusing(f"“{name}” could not be opened", "check its path"),
        Path(file).open("rb") as stream,
    ):
        return _read(Packed(name, stream), name)


def _said(packed: Packed, name: str) -> tuple[RunConfig, dict[str, Any]]:
    """Read what the file says of its model: settings, and how the fit went."""
    if f"{RUN}.npy" not in packed:
        msg = (
            f"“{name}” is not a model file: it lacks “{RUN}”; save the model on the page Export, "
            "or by `fit --out`."
        )
        raise InputError(msg)
    text = packed.array(f"{RUN}.npy")
    try:
        about = fitted(_About, without_number(f"“{name}”", as_object(str(text))))
        config = RunConfig.from_record(about.config)
        if about.info:
            RunInfo.from_dict(about.info)
    except OtherFormat:
        raise
    except ValueError as error:
        why = str(error).removesuffix(".")
        msg = f"“{name}” does not say which model it holds ({why}); save the model again."
        raise InputError(msg) from error
    return config, about.info


def _read(packed: Packed, name: str) -> ModelFile:
    config, info = _said(packed, name)
    model = _model_of(packed, name, config.model, FittedModel.from_arrays, config)
    listed = packed.array(f"{NAMES}.npy").ravel() if f"{NAMES}.npy" in packed else ()
    return ModelFile(config, info, model, tuple(map(str, listed)))


def _model_of(
    packed: Packed,
    name: str,
    kind: str,
    read: Callable[[dict[str, np.ndarray]], FittedModel],
    config: RunConfig | None = None,
) -> FittedModel:
    """Read the arrays of a model; a file of `save` has no config."""
    names = [member.removesuffix(".npy") for member in packed.names if member.endswith(".npy")]
    arrays = {key: packed.array(f"{key}.npy") for key in names if belongs_to_model(key)}
    try:
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
        and _is_noise(model.noise_variance, D)
        and _are_probabilities(model, K)
        and (model.n_active is None or 1 <= model.n_active <= K)
        and model.latent_variance.shape == model.scale.shape == (K,)
        and model.explained_variance.shape == (K,)
        and before.scale.shape == before.offset.shape
        and before.n_features == D
        and all(np.isfinite(value).all() for value in model.model_arrays().values())
    )


def _is_noise(noise: float | np.ndarray, n_features: int) -> bool:
    """Whether it may be the noise variance of all features, or of each, 0 of constant ones."""
    each = np.atleast_1d(noise)
    return each.shape in {(1,), (n_features,)} and bool((each >= 0).all() and (each > 0).any())


def _are_probabilities(model: FittedModel, n_components: int) -> bool:
    """Whether what a variant has learned of sizes and scales has the right shapes and signs."""
    sizes, scales, p = (
        np.atleast_1d(1.0 if value is None else value)
        for value in (
            model.size_probabilities,
            model.row_scale_values,
            model.row_scale_probabilities,
        )
    )
    fits = model.size_probabilities is None or sizes.shape == (n_components + 1,)
    fits = fits and sizes.ndim == 1 and scales.ndim == 1 and scales.shape == p.shape
    return bool(fits and all((value > 0).all() for value in (sizes, scales, p)))
