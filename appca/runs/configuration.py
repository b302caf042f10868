"""What a run is made of: data, preprocessing, model, settings and seed; and its name, a digest."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, Self

from msgspec import Meta

from appca.analysis.capabilities import CAPABILITIES, Capabilities
from appca.analysis.keywords import OfModel
from appca.data.preprocessing import Preprocessing
from appca.storage.identity import plain
from appca.storage.schema import Digest, FromOne, Scalar, Settings, Text, fitted
from appca.words.errors import InputError
from appca.words.wording import shortened

if TYPE_CHECKING:
    from appca.models.base.parameters import Rule

MOST_COMPONENTS = 100_000  # to be asked for; sums over supports are never longer
_NOISE_PRIOR = {"noise_shape": 1.0, "noise_scale": 0.01}
SAMPLING = {"n_chains": 2, "burn_in": 200, "n_draws": 500, "thin": 1, **_NOISE_PRIOR}
_LATENT_PRIOR = {"latent_shape": 1.0, "latent_scale": 0.01}
_LOADING_PRIOR = {"loading_shape": 1.0, "loading_scale": 0.01}
_ALPHA_PRIOR = {"alpha_shape": 1.0, "alpha_rate": 1.0}
_PRIORS = (*_NOISE_PRIOR, *_LATENT_PRIOR, *_LOADING_PRIOR, *_ALPHA_PRIOR)
_STARTS = {"chain_starts": "overdispersed"}
_STARTS_CHOICES = {"chain_starts": ("overdispersed", "init")}


class ModelSpec(NamedTuple):
    """A model a run can name."""

    title: str
    about: str  # in a sentence, for people
    estimator: str  # "module:class", imported when a fit begins
    parameters: dict[str, Any]  # every keyword a run records, with its default
    choices: dict[str, tuple[str, ...]]  # the values of keywords that name one
    sampling: dict[str, Any]  # recorded beside `parameters` where inference is "gibbs"
    can: Capabilities


LEARNED = "learned"
MEANS = ("learned", "sample", "zero")
_SPARSE = {
    "alpha": "infer",
    "init": "ica",
    "mean": "learned",
    "n_paths": 16,
    **SAMPLING,
    **_STARTS,
    **_LOADING_PRIOR,
    **_ALPHA_PRIOR,
    "random_state": 0,
}
_SPARSE_CHOICES = {
    "alpha": ("infer",),
    "init": ("ica", "pca", "random"),
    "mean": MEANS,
    **_STARTS_CHOICES,
}

MODELS: dict[str, ModelSpec] = {
    "aPPCA": ModelSpec(
        "Adaptive PPCA",
        "Every row uses the L of K orthogonal components that fit it best.",
        "appca.models.adaptive_ppca:AdaptivePPCA",
        {
            "n_components": 4,
            "n_active": 2,
            "noise": "shared",
            "row_scale": "none",
            "inference": "em",
            "init": "auto",
            "latent_variance": "shared",
            "w_update": "auto",
            "n_init": 1,
            "mean": "learned",
            "max_iter": 500,
            "tol": 1e-4,
            "accelerate": True,
            "random_state": 0,
        },
        choices={
            "n_active": (LEARNED,),
            "noise": ("shared", "feature"),
            "row_scale": ("none", LEARNED),
            "inference": ("em", "gibbs", "hard"),
            "init": ("auto", "quartimax", "annealed", "ica", "pca", "random"),
            "latent_variance": ("shared", "component"),
            "w_update": ("auto", "polar", "pymanopt"),
            "mean": MEANS,
            "z_update": ("block", "swap"),
            **_STARTS_CHOICES,
        },
        sampling={"z_update": "block", **SAMPLING, **_STARTS, **_LATENT_PRIOR},
        can=CAPABILITIES["aPPCA"],
    ),
    "aFA": ModelSpec(
        "Adaptive factor analysis",
        "Every row uses the L of K factors that fit it best; factors need not be orthogonal.",
        "appca.models.adaptive_fa:AdaptiveFactorAnalysis",
        {
            "n_components": 4,
            "n_active": 2,
            "inference": "em",
            "init": "auto",
            "allocation": "auto",
            "loading_variance": None,
            "n_init": 1,
            "mean": "learned",
            "annealing": 3,
            "max_iter": 500,
            "tol": 1e-4,
            "least_change": 3e-3,
            "n_paths": 16,
            "random_state": 0,
        },
        choices={
            "inference": ("em", "gibbs"),
            "init": ("auto", "ica", "pca", "dictionary", "random"),
            "allocation": ("auto", "exact", "best"),
            "mean": MEANS,
            **_STARTS_CHOICES,
        },
        sampling={**SAMPLING, **_STARTS, **_LOADING_PRIOR},
        can=CAPABILITIES["aFA"],
    ),
    "NPPCA": ModelSpec(
        "Nonparametric PPCA",
        "Rows use any number of orthogonal components; how many there are is learned.",
        "appca.models.nonparametric_ppca:NonparametricPPCA",
        {
            "max_components": 10,
            "alpha": "infer",
            "prior": "ibp",
            "latent_variance": "shared",
            "mean": "learned",
            **SAMPLING,
            **_LATENT_PRIOR,
            **_ALPHA_PRIOR,
            "random_state": 0,
        },
        choices={
            "alpha": ("infer",),
            "prior": ("ibp", "beta-bernoulli"),
            "latent_variance": ("shared",),
            "mean": MEANS,
        },
        sampling={},
        can=CAPABILITIES["NPPCA"],
    ),
    "isFA": ModelSpec(
        "Infinite sparse FA",
        "Rows use any number of factors; how many there are is learned.",
        "appca.models.infinite_sparse_fa:InfiniteSparseFA",
        {"max_components": 20, **_SPARSE},
        choices=_SPARSE_CHOICES,
        sampling={},
        can=CAPABILITIES["isFA"],
    ),
    "fsFA": ModelSpec(
        "Finite sparse FA",
        "Rows use any number of K factors, each factor as often as the data say.",
        "appca.models.finite_sparse_fa:FiniteSparseFA",
        {"max_components": 10, **_SPARSE},
        choices=_SPARSE_CHOICES,
        sampling={},
        can=CAPABILITIES["fsFA"],
    ),
    "PPCA": ModelSpec(
        "Probabilistic PCA",
        "Every row uses all components.",
        "appca.models.ppca:PPCA",
        {"n_components": 4, "random_state": 0},
        choices={},
        sampling={},
        can=CAPABILITIES["PPCA"],
    ),
}


def rules(model: str) -> dict[str, "Rule"]:
    """Return what values each setting of a model may have.

    A test holds them against the rules of the estimators, which are slow to import.
    """
    from appca.models.base.parameters import either, one_of

    spec, others = MODELS[model], dict(_other_values())
    if "max_components" in spec.parameters:
        del others["init"]  # where K is not known, a start cannot be given
    found = {}
    for name in {**spec.parameters, **spec.sampling}:
        named = [one_of(*spec.choices[name])] if name in spec.choices else []
        allowed = [*named, *([others[name]] if name in others else [])]
        if allowed:
            found[name] = either(*allowed)
    return found


@cache
def _other_values() -> dict[str, "Rule"]:
    """Return what values settings may have beside those that `ModelSpec.choices` names."""
    from appca.models.base import parameters as base

    components, positive = base.whole(1, MOST_COMPONENTS), base.POSITIVE
    least = {"n_init": 1, "max_iter": 1, "n_chains": 1, "burn_in": 0, "n_draws": 1, "thin": 1}
    least |= {"annealing": 0, "n_paths": 2, "random_state": 0}
    return {
        **dict.fromkeys(("n_components", "max_components", "n_active"), components),
        **{name: base.whole(number) for name, number in least.items()},
        **dict.fromkeys(("tol", "least_change"), base.NOT_NEGATIVE),
        **dict.fromkeys(("alpha", "latent_variance", *_PRIORS), positive),
        "loading_variance": base.either(base.NONE, positive),
        "accelerate": base.SWITCH,
        "init": base.ARRAY,
        "w_update": base.one_of("sample"),
    }


def defaults(model: str, inference: object = None) -> dict[str, Any]:
    """Return the settings of a model and their defaults; with "gibbs" also those of sampling.

    Raises InputError when there is no such model.
    """
    if not isinstance(model, str) or model not in MODELS:
        msg = f"There is no model “{shortened(model)}”; choose one of {', '.join(MODELS)}."
        raise InputError(msg)
    spec = MODELS[model]
    return spec.parameters | (spec.sampling if inference == "gibbs" else {})


def suited(model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of a model with those of the parameters that mean something to it.

    L is brought down to K where it is more.
    """
    spec = MODELS[model]

    def suits(name: str, value: object) -> bool:
        names = spec.choices.get(name)
        if name == "n_active" and names is None:
            return value != LEARNED
        return names is None or not isinstance(value, str) or value in names

    given = {name: value for name, value in parameters.items() if suits(name, value)}
    known = defaults(model, given.get("inference", spec.parameters.get("inference")))
    found = known | {name: value for name, value in given.items() if name in known}
    if found.get("n_active", LEARNED) != LEARNED:
        found["n_active"] = min(found["n_active"], found["n_components"])
    return found


def estimator_class(model: str) -> type:
    """Import the scikit-learn estimator of a model."""
    module, _, name = MODELS[model].estimator.partition(":")
    found: type = getattr(import_module(module), name)
    return found


def _refuse_values(model: str, parameters: Mapping[str, Any]) -> None:
    from appca.models.base.parameters import refuse

    found = rules(model)
    try:
        refuse({name: found[name] for name in parameters if name in found}, parameters)
    except ValueError as error:
        raise InputError(str(error)) from error
    K, L = parameters.get("n_components"), parameters.get("n_active")
    if isinstance(K, int) and isinstance(L, int) and L > K:
        msg = (
            f"n_active must be at most n_components={K}; got {L}: "
            "lower n_active or raise n_components."
        )
        raise InputError(msg)


@dataclass(frozen=True, eq=False)
class RunConfig(OfModel):
    """Everything that decides the numbers of a run.

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
        number, so that the run can be repeated. Settings of sampling are dropped where nothing is
        sampled: they do not change the numbers, so they must not make another run.
    stopped_at : int or None
        For a run stopped by hand: after how many iterations (of all starts together).
    imported : str or None
        For a run that came in a session file: the digest of its arrays, which makes its id another
        than that of a fit. Such settings are shown, and never fitted.

    Raises
    ------
    InputError
        For an unknown model, an unknown setting, or a value that a setting cannot have.
    """

    later: ClassVar[Mapping[str, object]] = {"imported": None}

    dataset: Annotated[str, Meta(max_length=64)]
    preprocessing: Annotated[dict[Text, Scalar | Settings], Meta(max_length=100)]
    model: Text
    parameters: Settings
    stopped_at: FromOne | None = None
    imported: Digest | None = None

    def __post_init__(self) -> None:
        """Fill in the defaults and own the dicts, so that the id cannot change under it."""
        defaults(self.model)  # refuses an unknown model
        given = plain("parameters", self.parameters)
        known = defaults(self.model, given.get("inference"))
        idle = set(MODELS[self.model].sampling) - set(known)
        given = {name: value for name, value in given.items() if name not in idle}
        unknown = sorted(set(given) - set(known))
        if unknown:
            got = ", ".join(map(shortened, unknown))
            msg = f"{self.model} has the settings {', '.join(known)}; got {got}."
            raise InputError(msg)
        parameters = known | given
        _refuse_values(self.model, parameters)
        options = plain("preprocessing", self.preprocessing)
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "preprocessing", Preprocessing.from_dict(options).to_dict())

    @property
    def name_of_k(self) -> str:
        """The setting that bounds the number of components."""
        return "n_components" if "n_components" in self.parameters else "max_components"

    @property
    def k(self) -> int:
        """The number of components, or the most there can be."""
        return int(self.parameters[self.name_of_k])

    @property
    def n_active(self) -> int | None:
        """How many components a row uses; None where rows differ in that."""
        if self.name_of_k == "max_components" or self.parameters.get("n_active") == LEARNED:
            return None
        return int(self.parameters.get("n_active", self.k))

    @property
    def chosen_size(self) -> int | None:
        """How many components a row uses, where that is a setting and a number."""
        return self.n_active if "n_active" in self.parameters else None

    @property
    def is_extended(self) -> bool:
        """Whether the model gives up assumptions of the paper's."""
        usual = {"noise": "shared", "row_scale": "none"}
        changed = any(self.parameters.get(name, value) != value for name, value in usual.items())
        return changed or self.parameters.get("n_active") == LEARNED

    @property
    def sizes(self) -> list[str]:
        """The number of components, and how many a row uses where that is a setting, in words."""
        if self.n_active is None:
            learned = "n_active" in self.parameters
            active = [f"K = {self.k}", "L learned"] if learned else [f"K up to {self.k}"]
            return [*active, *self._extensions]
        active = [f"L = {self.n_active}"] if "n_active" in self.parameters else []
        return [f"K = {self.k}", *active, *self._extensions]

    @property
    def _extensions(self) -> list[str]:
        """Extensions of the paper's model beside sizes, in words."""
        words = {"noise": "noise per feature", "row_scale": "row scales"}
        usual = defaults(self.model)
        return [
            text for name, text in words.items() if self.parameters.get(name) != usual.get(name)
        ]

    def allows(self, n_components: int) -> bool:
        """Whether a fit by these settings can have found so many components."""
        bound = self.name_of_k == "max_components"
        return n_components == self.k or (n_components < self.k and bound)

    @property
    def is_sampled(self) -> bool:
        """Whether the fit draws from a posterior."""
        return "n_draws" in self.parameters

    @property
    def unknown(self) -> list[str]:
        """The recorded settings that the model does not have any more, or not yet."""
        known = defaults(self.model, "gibbs")
        return sorted(set(self.to_dict()["parameters"]) - set(known))

    def to_be_fitted(self, **changes: Any) -> Self:
        """Return settings with some changed, to be fitted whatever became of these."""
        return replace(self, **{"stopped_at": None, "imported": None, **changes})

    def of_import(self, digest: str | None) -> Self:
        """Return the settings of a run whose arrays came from elsewhere; of a fit with None."""
        own = {name: value for name, value in self.to_dict().items() if name != "imported"}
        return self.from_record(own if digest is None else own | {"imported": digest})

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, from which `from_dict` makes an equal config."""
        record = self.__dict__.get("record")
        return super().to_dict() if record is None else deepcopy(record)

    @classmethod
    def from_record(cls, settings: Mapping[str, Any]) -> Self:
        """Rebuild the settings of a stored run, which keeps the id made of them when it was fitted.

        The defaults of today do not go into that id. Settings the model does not have today are
        among `unknown`, and left out of `parameters`.
        """
        given = plain("settings", settings)
        recorded = fitted(_Record, given)
        known = defaults(recorded.model, "gibbs")
        kept = {name: value for name, value in recorded.parameters.items() if name in known}
        config = cls.from_dict({**given, "parameters": kept})
        object.__setattr__(config, "record", given)
        return config


class _Record(NamedTuple):
    """What must be known of recorded settings before the unknown ones are set aside."""

    model: Text
    parameters: Settings
