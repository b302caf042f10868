"""Rules for constructor parameters: each knows what it allows in words."""

import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """A condition on one value and the words for it, after "must be"."""

    holds: Callable[[Any], bool]
    words: str


def whole(least: int, most: int | None = None) -> Rule:
    """Whole numbers from `least` on, up to `most` if it is given."""
    return Rule(
        lambda x: (
            isinstance(x, Integral)
            and not isinstance(x, bool)
            and least <= int(x)
            and (most is None or int(x) <= most)
        ),
        f"a whole number of at least {least}" + ("" if most is None else f" and at most {most:,}"),
    )


def one_of(*names: str) -> Rule:
    """One of these words."""
    quoted = [repr(name) for name in names]
    words = " or ".join([", ".join(quoted[:-1]), quoted[-1]]) if quoted[1:] else quoted[0]
    return Rule(lambda x: isinstance(x, str) and x in names, words)


def either(*rules: Rule) -> Rule:
    """Allow what one of the rules allows."""
    return Rule(
        lambda x: any(rule.holds(x) for rule in rules), " or ".join(rule.words for rule in rules)
    )


def _is_number(x: Any) -> bool:
    return isinstance(x, Real) and not isinstance(x, bool) and math.isfinite(x)


def _is_seed(x: Any) -> bool:
    generators = (np.random.Generator, np.random.RandomState)
    return x is None or isinstance(x, generators) or whole(0).holds(x)


POSITIVE = Rule(lambda x: _is_number(x) and x > 0, "a number above 0")
NOT_NEGATIVE = Rule(lambda x: _is_number(x) and x >= 0, "a number of at least 0")
SWITCH = Rule(lambda x: isinstance(x, (bool, np.bool_)), "True or False")
VERBOSE = either(SWITCH, whole(0))
SEED = Rule(_is_seed, "None, a whole number of at least 0, a Generator or a RandomState")
CALLABLE = Rule(lambda x: x is None or callable(x), "None or a function of one argument")
NONE = Rule(lambda x: x is None, "None")
ARRAY = Rule(
    lambda x: isinstance(x, (np.ndarray, list, tuple)) and np.ndim(x[0] if len(x) else 0) == 1,
    "an array of n_components by features",
)


def refuse(rules: Mapping[str, Rule], values: Mapping[str, Any]) -> None:
    """Raise ValueError, one sentence, for the first value that breaks its rule."""
    for name, rule in rules.items():
        if not rule.holds(values[name]):
            msg = f"{name} must be {rule.words}; got {values[name]!r:.60}."
            raise ValueError(msg)
