"""The configuration of a run and its result."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from msgspec import Meta

from appca.analysis.fitted import FittedRun, OfModel
from appca.models.settings import (
    LEARNED,
    MODELS,
    MOST_COMPONENTS,
    defaults,
    estimator_class,
    refuse,
    rules,
    suited,
)
from appca.preparation import PREPARATIONS
from appca.storage.identity import plain
from appca.storage.schema import (
    Count,
    Digest,
    Finite,
    FromOne,
    NotNegative,
    Scalar,
    Settings,
    Text,
    fitted,
)
from appca.words import InputError, refuse_if, shortened

__all__ = [
    "LEARNED",
    "MODELS",
    "MOST_COMPONENTS",
    "RunConfig",
    "defaults",
    "estimator_class",
    "rules",
    "suited",
]


def _refuse_values(model: str, parameters: Mapping[str, Any]) -> None:
    allowed = rules(model)
    try:
        refuse({name: allowed[name] for name in parameters if name in allowed}, parameters)
    except ValueError as error:
        raise InputError(str(error)) from error
    K, L = parameters.get("n_components"), parameters.get("n_active")
    msg = f"n_active must be at most n_components={K}; got {L}: "
    msg += "lower n_active or raise n_components."
    refuse_if(isinstance(K, int) and isinstance(L, int) and L > K, msg)


@dataclass(frozen=True, eq=False)
class RunConfig(OfModel):
    """All settings that determine the numbers of a run.

    Parameters
    ----------
    dataset : str
        Digest of the data set.
    preprocessing : dict
        Options as in `Preprocessing.to_dict`; missing options have their defaults.
    model : str
        A key of `MODELS`.
    parameters : dict
        Keywords of the estimator; missing keywords have their defaults. ``random_state`` is an
        integer, so that the run is reproducible. Without sampling, its settings are dropped,
        because they must not change the run's id.
    stopped_at : int or None
        Number of iterations (over all starts) after which the user stopped the run.
    imported : str or None
        For a run from a session file, the digest of its arrays, so that its id differs from the id
        of a fit. Such settings are shown but never fitted.

    Raises
    ------
    InputError
        If a model or setting is unknown, or a value is invalid.
    """

    later: ClassVar[Mapping[str, object]] = {"imported": None}

    dataset: Annotated[str, Meta(max_length=64)]
    preprocessing: Annotated[dict[Text, Scalar | Settings], Meta(max_length=100)]
    model: Text
    parameters: Settings
    stopped_at: FromOne | None = None
    imported: Digest | None = None

    def __post_init__(self) -> None:
        """Add the defaults."""
        defaults(self.model)  # raises for an unknown model
        super().__post_init__()
        settings = defaults(self.model, self.parameters.get("inference"))
        idle = set(MODELS[self.model].sampling) - set(settings)
        chosen = {name: value for name, value in self.parameters.items() if name not in idle}
        unknown = ", ".join(map(shortened, sorted(set(chosen) - set(settings))))
        refuse_if(unknown, f"{self.model} has the settings {', '.join(settings)}; got {unknown}.")
        parameters = settings | chosen
        _refuse_values(self.model, parameters)
        object.__setattr__(self, "parameters", parameters)

    @property
    def name_of_k(self) -> str:
        """The setting for the number of components."""
        return "n_components" if "n_components" in self.parameters else "max_components"

    @property
    def k(self) -> int:
        """The number of components, or its maximum if learned."""
        return int(self.parameters[self.name_of_k])

    @property
    def n_active(self) -> int | None:
        """The number of components per row; None if rows differ."""
        if self.name_of_k == "max_components" or self.parameters.get("n_active") == LEARNED:
            return None
        return int(self.parameters.get("n_active", self.k))

    @property
    def chosen_size(self) -> int | None:
        """The number of components per row, if it is a setting."""
        return self.n_active if "n_active" in self.parameters else None

    @property
    def sizes(self) -> list[str]:
        """The number of components, L if it is a setting, extensions and preparation, in words."""
        is_setting = "n_active" in self.parameters
        words = [f"K = {self.k}" if is_setting or self.n_active else f"K up to {self.k}"]
        if is_setting:
            words.append("L learned" if self.n_active is None else f"L = {self.n_active}")
        usual = defaults(self.model)
        extensions = {"noise": "noise per feature", "row_scale": "row scales"}
        got, before = self.parameters.get, self.preprocessing
        words += [text for name, text in extensions.items() if got(name) != usual.get(name)]
        words += [x.title for name, x in PREPARATIONS.items() if name == before.get("prepare")]
        return words + ["after PCA"] * (before.get("pca") is not None)

    def allows(self, n_components: int) -> bool:
        """Whether a fit with these settings can have this number of components."""
        bound = self.name_of_k == "max_components"
        return n_components == self.k or (n_components < self.k and bound)

    @property
    def is_sampled(self) -> bool:
        """Whether the fit draws from a posterior."""
        return "n_draws" in self.parameters

    @property
    def unknown(self) -> list[str]:
        """Recorded settings that this version of the model does not have."""
        return sorted(set(self.to_dict()["parameters"]) - set(defaults(self.model, "gibbs")))

    def to_be_fitted(self, **changes: Any) -> Self:
        """Return these settings with changes, for a fit that is neither stopped nor imported."""
        return replace(self, **{"stopped_at": None, "imported": None, **changes})

    def of_import(self, digest: str | None) -> Self:
        """Return the settings of a run with imported arrays, or of a fit if `digest` is None."""
        fields = {name: value for name, value in self.to_dict().items() if name != "imported"}
        return self.from_record(fields if digest is None else fields | {"imported": digest})

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, which `from_dict` converts to an equal config."""
        record = self.__dict__.get("record")
        return super().to_dict() if record is None else deepcopy(record)

    @classmethod
    def from_record(cls, settings: Mapping[str, Any]) -> Self:
        """Rebuild the settings of a stored run, which keeps its original id.

        New defaults do not change that id. Settings that the model no longer has are listed in
        `unknown`, and removed from `parameters`.
        """
        record = plain("settings", settings)
        recorded = fitted(_Record, record)
        names = defaults(recorded.model, "gibbs")
        kept = {name: value for name, value in recorded.parameters.items() if name in names}
        config = cls.from_dict({**record, "parameters": kept})
        object.__setattr__(config, "record", record)
        return config


class _Record(NamedTuple):
    """Fields that recorded settings must have, before unknown settings are removed."""

    model: Text
    parameters: Settings


class RunInfo(NamedTuple):
    """Facts about a fit, in the order stored on disk."""

    n_iter: Count
    stop_reason: Text
    log_likelihood: Finite  # nats, all rows
    likelihood: Text  # how it was computed, such as "exact"
    likelihood_error: NotNegative  # standard error in nats; 0 if exact
    n_rows: FromOne
    n_features: Count  # after preprocessing
    versions: Annotated[dict[Text, Text], Meta(max_length=100)]  # versions of packages
    seconds: NotNegative
    stopped_at: FromOne | None = None  # iterations until a user stopped it
    n_missing: Count | None = None  # number of cells; None if there are none
    preview: bool = False  # whether it is a preview

    @classmethod
    def from_dict(cls, about: Mapping[str, Any]) -> "RunInfo":
        """Rebuild facts from `to_dict`; ValueError if a fact is missing or has the wrong type."""
        info: RunInfo = fitted(cls, about)
        return info

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able facts."""
        idle = {name for name in ("n_missing", "preview") if not getattr(self, name)}
        return {name: value for name, value in self._asdict().items() if name not in idle}


class FitResult(NamedTuple):
    """Result of a fit."""

    fitted: FittedRun
    info: RunInfo
