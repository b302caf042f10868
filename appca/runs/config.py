"""What a run is made of: data, preprocessing, model, settings and seed; and its name, a digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import NamedTuple

from appca.analysis.identity import digest_of, plain
from appca.data.errors import InputError
from appca.data.preprocessing import Preprocessing


class ModelSpec(NamedTuple):
    """A model a run can name."""

    title: str
    estimator: str  # "module:class", imported when a fit begins
    parameters: dict  # every keyword a run records, with its default


MODELS: dict[str, ModelSpec] = {
    "aPPCA": ModelSpec(
        "Adaptive PPCA",
        "appca.models.adaptive_ppca:AdaptivePPCA",
        {
            "n_components": 4,
            "n_active": 2,
            "inference": "em",
            "init": "auto",
            "latent_variance": "shared",
            "w_update": "polar",
            "n_init": 1,
            "mean": "learned",
            "max_iter": 500,
            "tol": 1e-4,
            "accelerate": True,
            "random_state": 0,
        },
    ),
    "PPCA": ModelSpec(
        "Probabilistic PCA",
        "appca.models.ppca:PPCA",
        {"n_components": 4, "random_state": 0},
    ),
}


def defaults(model: str) -> dict:
    """
    Return the settings of a model and their defaults.

    Raises
    ------
    InputError
        When there is no such model.
    """
    if model not in MODELS:
        msg = f"There is no model “{model}”; choose one of {', '.join(MODELS)}."
        raise InputError(msg)
    return dict(MODELS[model].parameters)


def estimator_class(model: str) -> type:
    """Import the scikit-learn estimator of a model."""
    module, _, name = MODELS[model].estimator.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class RunConfig:
    """
    Everything that decides the numbers of a run.

    Parameters
    ----------
    dataset : str
        Digest of the data set.
    preprocessing : dict
        Options as `Preprocessing.to_dict` makes them; what is left out has its default.
    model : str
        A key of `MODELS`.
    parameters : dict
        Keywords of the estimator; what is left out has its default. ``random_state`` is a whole
        number, so that the run can be repeated.
    stopped_at : int or None
        For a run stopped by hand: after how many passes (of all starts together).

    Raises
    ------
    InputError
        For an unknown model, an unknown setting, or a value that cannot be recorded.
    """

    dataset: str
    preprocessing: dict
    model: str
    parameters: dict
    stopped_at: int | None = None

    def __post_init__(self) -> None:
        """Fill in the defaults and own the dicts, so that the id cannot change under it."""
        known = defaults(self.model)
        given = plain("parameters", self.parameters)
        unknown = sorted(set(given) - set(known))
        if unknown:
            msg = f"{self.model} has the settings {', '.join(known)}; got {', '.join(unknown)}."
            raise InputError(msg)
        parameters = known | given
        if not isinstance(parameters.get("random_state", 0), int):
            seed = parameters["random_state"]
            msg = (
                f"random_state must be a whole number, so that the run can be repeated; got {seed}."
            )
            raise InputError(msg)
        options = plain("preprocessing", self.preprocessing)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "preprocessing", Preprocessing.from_dict(options).to_dict())

    @cached_property
    def id(self) -> str:
        """Twelve hex digits made of the settings: the same settings are the same run."""
        return digest_of(self.to_dict())

    def __hash__(self) -> int:
        """Hash by id; dicts have no hash of their own."""
        return hash(self.id)

    def to_dict(self) -> dict:
        """Return JSON-able settings, from which `from_dict` makes an equal config."""
        return {
            "dataset": self.dataset,
            "preprocessing": dict(self.preprocessing),
            "model": self.model,
            "parameters": dict(self.parameters),
            "stopped_at": self.stopped_at,
        }

    @classmethod
    def from_dict(cls, settings: Mapping) -> "RunConfig":
        """Rebuild a config from `to_dict`."""
        return cls(**settings)
