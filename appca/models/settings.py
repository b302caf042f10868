"""The models, the allowed values of their settings, and the defaults."""

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from appca.words import refuse_if, shortened


class Rule(NamedTuple):
    """A condition on a value, and its text after "must be"."""

    holds: Callable[[Any], bool]
    words: str


def whole(least: int, most: int | None = None) -> Rule:
    """Return the rule for whole numbers from `least` to `most`, if given."""
    largest = math.inf if most is None else most

    def holds(x: Any) -> bool:
        return isinstance(x, Integral) and not isinstance(x, bool) and least <= int(x) <= largest

    at_most = "" if most is None else f" and at most {most:,}"
    return Rule(holds, f"a whole number of at least {least}{at_most}")


def one_of(*names: str) -> Rule:
    """One of these words."""
    quoted = [repr(name) for name in names]
    words = " or ".join([", ".join(quoted[:-1]), quoted[-1]]) if quoted[1:] else quoted[0]
    return Rule(lambda x: isinstance(x, str) and x in names, words)


def either(*rules: Rule) -> Rule:
    """Allow values that one of the rules allows."""
    words = " or ".join(rule.words for rule in rules)
    return Rule(lambda x: any(rule.holds(x) for rule in rules), words)


def _is_number(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)


POSITIVE = Rule(lambda x: _is_number(x) and x > 0, "a number above 0")
NOT_NEGATIVE = Rule(lambda x: _is_number(x) and x >= 0, "a number of at least 0")
SWITCH = Rule(lambda x: isinstance(x, (bool, np.bool_)), "True or False")
VERBOSE = either(SWITCH, whole(0))
GENERATORS = np.random.Generator, np.random.RandomState
SEED = Rule(
    lambda x: x is None or isinstance(x, GENERATORS) or whole(0).holds(x),
    "None, a whole number of at least 0, a Generator or a RandomState",
)
CALLABLE = Rule(lambda x: x is None or callable(x), "None or a function of one argument")
NONE = Rule(lambda x: x is None, "None")
ARRAY = Rule(
    lambda x: isinstance(x, (np.ndarray, list, tuple)) and np.ndim(x[0] if len(x) else 0) == 1,
    "an array of n_components by features",
)


def refuse(rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise ValueError with a sentence about the first value that breaks its rule."""
    for name, rule in rules.items():
        if not rule.holds(values[name]):
            msg = f"{name} must be {rule.words}; got {values[name]!r:.60}."
            raise ValueError(msg)


ENUMERATED = 5000  # maximum number of supports summed in each iteration
MOST_SETS = 12_870  # maximum number of supports summed in queries: any L at K = 16
MOST_COLUMNS = 16  # maximum K for sums over all 65,536 sets, in 0.5 ms per row
LARGEST_FOR_COLUMNS = 20  # maximum K for sums over supports without a compiler
MOST_COMPONENTS = 100_000  # maximum number of components of a run
_NOISE_PRIOR = {"noise_shape": 1.0, "noise_scale": 0.01}
SAMPLING = {"n_chains": 2, "burn_in": 200, "n_draws": 500, "thin": 1, **_NOISE_PRIOR}
_LATENT_PRIOR = {"latent_shape": 1.0, "latent_scale": 0.01}
_LOADING_PRIOR = {"loading_shape": 1.0, "loading_scale": 0.01}
_ALPHA_PRIOR = {"alpha_shape": 1.0, "alpha_rate": 1.0}
_PRIORS = (*_NOISE_PRIOR, *_LATENT_PRIOR, *_LOADING_PRIOR, *_ALPHA_PRIOR)
_STARTS = {"chain_starts": "overdispersed"}
_STARTS_CHOICES = {"chain_starts": ("overdispersed", "init")}


class Capabilities(NamedTuple):
    """Abilities of a model and their limits; tested against the kernels."""

    uncompiled: int = 0  # maximum K without compiled code, if rows are complete
    beyond_features: bool = False  # K may exceed the number of features
    incomplete: bool = False  # missing cells are integrated out, by EM
    exact_supports: int | None = None  # maximum number summed, not estimated; None: any number
    incomplete_supports: int = 0  # the same with missing cells; above it, a lower bound

    @property
    def compiled(self) -> bool:
        """Whether fits and descriptions always need compiled code, and so run in a worker."""
        return self.uncompiled == 0

    def is_exact(self, n_components: int, n_active: int | None) -> bool:
        """Whether log-likelihoods of complete rows are exact; `n_active` is None if rows differ."""
        most = self.exact_supports
        return most is None or supports(n_components, n_active) <= most


def supports(n_components: int, n_active: int | None) -> int:
    """Return the number of supports; `n_active` is None if rows use any number."""
    return 2**n_components if n_active is None else math.comb(n_components, n_active)


class ModelSpec(NamedTuple):
    """A model that a run can use."""

    title: str
    about: str  # one sentence for the app
    estimator: str  # "module:class", imported when a fit begins
    parameters: dict[str, Any]  # every keyword a run records, with its default
    choices: dict[str, tuple[str, ...]]  # the allowed words of keywords
    sampling: dict[str, Any]  # recorded with `parameters` if inference is "gibbs"
    can: Capabilities


LEARNED, OVERDISPERSED = "learned", "overdispersed"
_ORTHONORMAL = Capabilities(LARGEST_FOR_COLUMNS, incomplete=True, incomplete_supports=ENUMERATED)
_SPARSE_SUMS = Capabilities(beyond_features=True, exact_supports=2**MOST_COLUMNS)
MEANS = ("learned", "sample", "zero")
_SPARSE = {"alpha": "infer", "init": "ica", "mean": "learned", "n_paths": 16, **SAMPLING, **_STARTS}
_SPARSE |= {**_LOADING_PRIOR, **_ALPHA_PRIOR, "random_state": 0}
_SPARSE_CHOICES = {"alpha": ("infer",), "init": ("ica", "pca", "random"), "mean": MEANS}
_SPARSE_CHOICES |= _STARTS_CHOICES
_EM = {"max_iter": 500, "tol": 1e-4}

MODELS: dict[str, ModelSpec] = {
    "aPPCA": ModelSpec(
        "Adaptive PPCA",
        "Every row uses the L of K orthogonal components that fit it best.",
        "appca.models.adaptive_ppca:AdaptivePPCA",
        {"n_components": 4, "n_active": 2, "noise": "shared", "row_scale": "none"}
        | {"inference": "em", "init": "auto", "latent_variance": "shared", "w_update": "auto"}
        | {"n_init": 1, "mean": "learned", **_EM, "accelerate": True, "random_state": 0},
        {"n_active": (LEARNED,), "noise": ("shared", "feature"), "row_scale": ("none", LEARNED)}
        | {"inference": ("em", "gibbs", "hard"), "latent_variance": ("shared", "component")}
        | {"init": ("auto", "quartimax", "annealed", "ica", "pca", "random")}
        | {"w_update": ("auto", "polar", "pymanopt"), "z_update": ("block", "swap")}
        | {"mean": MEANS, **_STARTS_CHOICES},
        sampling={"z_update": "block", **SAMPLING, **_STARTS, **_LATENT_PRIOR},
        can=_ORTHONORMAL,
    ),
    "aFA": ModelSpec(
        "Adaptive factor analysis",
        "Every row uses the L of K factors that fit it best; factors need not be orthogonal.",
        "appca.models.adaptive_fa:AdaptiveFactorAnalysis",
        {"n_components": 4, "n_active": 2, "inference": "em", "init": "auto", "allocation": "auto"}
        | {"loading_variance": None, "n_init": 1, "mean": "learned", "annealing": 3, **_EM}
        | {"least_change": 3e-3, "n_paths": 16, "random_state": 0},
        {"inference": ("em", "gibbs"), "init": ("auto", "ica", "pca", "dictionary", "random")}
        | {"allocation": ("auto", "exact", "best"), "mean": MEANS, **_STARTS_CHOICES},
        sampling={**SAMPLING, **_STARTS, **_LOADING_PRIOR},
        can=Capabilities(beyond_features=True, exact_supports=MOST_SETS),
    ),
    "NPPCA": ModelSpec(
        "Nonparametric PPCA",
        "Rows use any number of orthogonal components; the number K is learned.",
        "appca.models.sampled_models:NonparametricPPCA",
        {"max_components": 10, "alpha": "infer", "prior": "ibp", "latent_variance": "shared"}
        | {"mean": "learned", **SAMPLING, **_LATENT_PRIOR, **_ALPHA_PRIOR, "random_state": 0},
        {"alpha": ("infer",), "prior": ("ibp", "beta-bernoulli"), "latent_variance": ("shared",)}
        | {"mean": MEANS},
        sampling={},
        can=Capabilities(),
    ),
    "isFA": ModelSpec(
        "Infinite sparse FA",
        "Rows use any number of factors; the number K is learned.",
        "appca.models.sampled_models:InfiniteSparseFA",
        {"max_components": 20, **_SPARSE},
        choices=_SPARSE_CHOICES,
        sampling={},
        can=_SPARSE_SUMS,
    ),
    "fsFA": ModelSpec(
        "Finite sparse FA",
        "Rows use any number of K factors; how often each is used is learned.",
        "appca.models.sampled_models:FiniteSparseFA",
        {"max_components": 10, **_SPARSE},
        choices=_SPARSE_CHOICES,
        sampling={},
        can=_SPARSE_SUMS,
    ),
    "PPCA": ModelSpec(
        "Probabilistic PCA",
        "Every row uses all components.",
        "appca.models.ppca:PPCA",
        {"n_components": 4, "random_state": 0},
        choices={},
        sampling={},
        can=_ORTHONORMAL,
    ),
}


# Values of settings other than the names in `ModelSpec.choices`.
_LEAST = {"n_components": 1, "max_components": 1, "n_active": 1, "n_init": 1, "max_iter": 1}
_LEAST |= {"n_chains": 1, "burn_in": 0, "n_draws": 1, "thin": 1, "annealing": 0, "n_paths": 2}
VALUES: dict[str, Rule] = {
    **{name: whole(number) for name, number in _LEAST.items()},
    **dict.fromkeys(("tol", "least_change"), NOT_NEGATIVE),
    **dict.fromkeys(("alpha", "latent_variance", *_PRIORS), POSITIVE),
    "loading_variance": either(NONE, POSITIVE),
    "accelerate": SWITCH,
    "init": ARRAY,
    "random_state": SEED,
}
MORE_NAMES = {"w_update": ("sample",)}  # choices that the app does not offer
OF_RUNS = dict.fromkeys(("n_components", "max_components", "n_active"), whole(1, MOST_COMPONENTS))
OF_RUNS["random_state"] = whole(0)  # so that a run can be repeated
UNRECORDED = {"callback": CALLABLE, "verbose": VERBOSE, "whiten": SWITCH, "warm_start": SWITCH}


def rules(model: str, *, of_runs: bool = True) -> dict[str, Rule]:
    """Return the rule of each setting of a model, in a run or in its estimator."""
    spec, values = MODELS[model], VALUES | (OF_RUNS if of_runs else {})
    if "max_components" in spec.parameters:
        del values["init"]  # an array needs a known K
    result = {} if of_runs else dict(UNRECORDED)
    for name in {**spec.parameters, **spec.sampling}:
        names = (*spec.choices[name], *MORE_NAMES.get(name, ())) if name in spec.choices else ()
        named = [one_of(*names)] if names else []
        allowed = [*named, *([values[name]] if name in values else [])]
        if allowed:
            result[name] = either(*allowed)
    return result


def refuse_parameters(model: str, parameters: Mapping[str, Any]) -> None:
    """Raise ValueError for the first parameter of an estimator that breaks its rule."""
    allowed = rules(model, of_runs=False)
    refuse({name: rule for name, rule in allowed.items() if name in parameters}, parameters)


# Settings that are newer than some stored runs, with the value for those runs, which keep their
# ids. Do not change these values if a default changes.
BEFORE: dict[str, Any] = {"chain_starts": "init", "noise": "shared", "row_scale": "none"}
BEFORE |= dict.fromkeys(("noise_scale", "latent_scale", "loading_scale"), 0.01)
BEFORE |= dict.fromkeys(("noise_shape", "latent_shape", "loading_shape"), 1.0)
BEFORE |= dict.fromkeys(("alpha_shape", "alpha_rate"), 1.0)


def later(model: object) -> dict[str, Any]:
    """Return the settings of a model that are newer than its oldest stored runs; see `BEFORE`."""
    if not isinstance(model, str) or model not in MODELS:
        return {}
    spec = MODELS[model]
    return {name: BEFORE[name] for name in {**spec.parameters, **spec.sampling} if name in BEFORE}


def defaults(model: str, inference: object = None) -> dict[str, Any]:
    """Return a model's settings with defaults, including sampling if `inference` is "gibbs"."""
    msg = f"There is no model “{shortened(model)}”; choose one of {', '.join(MODELS)}."
    refuse_if(not isinstance(model, str) or model not in MODELS, msg)
    spec = MODELS[model]
    return spec.parameters | (spec.sampling if inference == "gibbs" else {})


def suited(model: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of a model, updated by its valid parameters, with L <= K."""
    spec = MODELS[model]

    def suits(name: str, value: object) -> bool:
        names = spec.choices.get(name)
        if name == "n_active" and names is None:
            return value != LEARNED
        return names is None or not isinstance(value, str) or value in names

    fitting = {name: value for name, value in parameters.items() if suits(name, value)}
    usual = defaults(model, fitting.get("inference", spec.parameters.get("inference")))
    settings = usual | {name: value for name, value in fitting.items() if name in usual}
    if settings.get("n_active", LEARNED) != LEARNED:
        settings["n_active"] = min(settings["n_active"], settings["n_components"])
    return settings


def estimator_class(model: str) -> type:
    """Import the scikit-learn estimator of a model."""
    module, _, name = MODELS[model].estimator.partition(":")
    estimator: type = getattr(import_module(module), name)
    return estimator
