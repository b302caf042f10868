"""An experiment of the paper, from options to tables, arrays and checked claims."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from appca.storage.identity import digest_of, plain
from appca.studies.claims import Claim
from appca.words import refuse_if, refuse_unknown

if TYPE_CHECKING:
    import plotly.graph_objects as go

Report = Callable[[str, float], None]
Options = dict[str, Any]  # numbers, texts and lists by name, as in JSON
Row = dict[str, Any]  # texts, numbers and None by column name, as in CSV
Figures = dict[str, "go.Figure"]


class Outcome(NamedTuple):
    """The result of an experiment."""

    tables: dict[str, list[Row]]  # all rows of a table have the same columns
    arrays: dict[str, np.ndarray]
    claims: Sequence[Claim]
    text: str = ""  # a sentence about the setup


class Study(NamedTuple):
    """An experiment of the paper."""

    name: str
    heading: str  # number and title in the paper: "Figure 1: Three planes in space"
    paper: str  # the paper's claims
    sizes: Mapping[str, Options]  # "quick", "default", "full" -> values of all options
    takes: Mapping[str, float]  # seconds by size, measured on two cores
    run: Callable[[Options, Report, int], Outcome]  # options, report, processes
    draw: Callable[[ModuleType, Outcome], Figures]  # `appca.plots.studies`, result
    revision: int = 1  # increased by changes that make older results outdated
    columns: tuple[str, ...] = ()  # columns shown in a terminal; empty: all
    private: tuple[str, ...] = ()  # arrays with the data themselves, which are never shipped

    @property
    def title(self) -> str:
        """The heading without the number in the paper."""
        return self.heading.partition(": ")[2]

    def figures(self, outcome: Outcome) -> Figures:
        """Draw a result."""
        from appca.plots import studies as plots

        return self.draw(plots, outcome)

    def options(self, size: str = "default", **changes: object) -> Options:
        """Return the options of a size, with changes.

        Raises InputError if a size or option is unknown, or a value has the wrong type.
        """
        refuse_unknown("size", size, self.sizes, f" of {self.name}")
        usual = self.sizes[size]
        for name, value in changes.items():
            refuse_unknown("option", name, usual, f" of {self.name}")
            _check(name, value, usual[name])
        return {name: plain(name, value) for name, value in {**usual, **changes}.items()}

    def size_of(self, options: Options) -> str:
        """Return a size with these options, preferably "default", or else "other options"."""
        names = [name for name in self.sizes if self.options(name) == options]
        return "default" if "default" in names else [*names, "other options"][0]

    def command(self, options: Options) -> str:
        """Return the command that computes a result."""
        size = self.size_of(options)
        return f"python -m appca paper {self.name}" + f" --{size}" * (size in {"quick", "full"})

    def id(self, options: Options) -> str:
        """Return twelve hex digits that identify an experiment with its options."""
        return digest_of({"study": self.name, "revision": self.revision, "options": options})


def sized(seconds: tuple[float, float, float], options: Options) -> dict[str, Any]:
    """Return `takes` and `sizes` of a study; a tuple in the options has one value per size."""
    takes = dict(zip(("quick", "default", "full"), seconds, strict=True))
    sizes = {
        size: {name: v[n] if isinstance(v, tuple) else v for name, v in options.items()}
        for n, size in enumerate(takes)
    }
    return {"takes": takes, "sizes": sizes}


def _check(name: str, value: Any, usual: Any) -> None:
    kind, from_zero = type(usual), name in {"seed", "burn_in"}
    if kind is list:
        fits, words = isinstance(value, (list, tuple)) and bool(value), f"a list such as {usual}"
    elif kind is str:
        fits, words = isinstance(value, str), f"a text such as “{usual}”"
    else:
        words = f"{'a whole number' if kind is int else 'a number'} "
        words += f"{'from' if from_zero else 'above'} 0"
        least = 0.0 if from_zero else math.ulp(0.0)
        fits = type(value) in {int, kind} and least <= value < math.inf
    refuse_if(not fits, f"{name} must be {words}; got {value!r}.")
    for item in value if kind is list else ():
        _check(name, item, usual[0])
