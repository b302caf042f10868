"""An experiment of the paper: options in; tables, arrays and checked claims out."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from appca.storage.identity import digest_of, plain
from appca.words import InputError

if TYPE_CHECKING:
    import plotly.graph_objects as go

Report = Callable[[str, float], None]  # (stage in words, share done); raising ends the work
Options = dict[str, Any]  # numbers, texts and lists of them by name, as in JSON
Row = dict[str, Any]  # texts, numbers and None by the name of the column, as in a CSV file
Figures = dict[str, "go.Figure"]
Holds = Literal["yes", "partly", "no", "not tested"]
OTHER_OPTIONS = "other options"
HEADINGS = {
    "claim": "The paper says",
    "paper": "Its number",
    "measured": "Measured here",
    "holds": "Holds",
}


class Claim(NamedTuple):
    """One claim of the paper beside the measurement that decides on it."""

    claim: str  # a short sentence
    paper: str  # its number; empty if it gives none
    measured: str
    holds: Holds
    value: str = ""  # the most telling number, for a card: "92%"
    caption: str = ""  # its meaning: "on their own plane"


def headings(claims: Sequence[Claim]) -> dict[str, str]:
    """Return field and heading of each column; numbers of the paper only where there are any."""
    return {
        field: title
        for field, title in HEADINGS.items()
        if any(getattr(claim, field) for claim in claims)
    }


def checked(
    claim: str,
    measured: str,
    tests: Iterable[bool],
    paper: str = "",
    number: tuple[str, str] = ("", ""),
) -> Claim:
    """Judge a claim: "yes" if all tests hold, "no" if none does, "not tested" without any."""
    passed = list(tests)
    holds: Holds = "yes" if all(passed) else "partly" if any(passed) else "no"
    return Claim(claim, paper, measured, holds if passed else "not tested", *number)


def verdict(claims: Sequence[Claim]) -> Holds:
    """Judge an experiment by its claims: "yes" if all that were tested hold, "no" if none does."""
    holds = {claim.holds for claim in claims} - {"not tested"}
    if len(holds) == 1:
        return holds.pop()
    return "partly" if holds else "not tested"


def share(tests: Sequence[bool]) -> str:
    """Count the tests that hold: "3 of 5"."""
    return f"{sum(tests)} of {len(tests)}"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """Write the least and the largest value: "1.20 to 3.45"."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


class Outcome(NamedTuple):
    """The result of an experiment."""

    tables: dict[str, list[Row]]  # all rows of a table have the same columns
    arrays: dict[str, np.ndarray]
    claims: Sequence[Claim]  # none in results stored before there were any
    text: str = ""  # one sentence about the setting

    @property
    def claim_rows(self) -> list[Row]:
        """The claims as rows of a table."""
        return [claim._asdict() for claim in self.claims]


class Study(NamedTuple):
    """An experiment of the paper."""

    name: str
    title: str
    paper: str  # the paper's figure or table and its claims
    revision: int  # counts the changes after which older results are outdated
    sizes: Mapping[str, Options]  # "quick", "default", "full" -> all options with their values
    takes: Mapping[str, float]  # seconds of each size, measured on two cores
    run: Callable[[Options, Report, int], Outcome]  # options, report, processes
    figures: Callable[[Outcome], Figures]
    columns: tuple[str, ...] = ()  # of the first table, for a terminal; all if none is named
    private: tuple[str, ...] = ()  # arrays that hold the data themselves, never shipped

    def options(self, size: str = "default", **changes: object) -> Options:
        """Return the options of a size, some of them changed.

        Raises InputError for an unknown size or option, or a value of another kind.
        """
        if size not in self.sizes:
            msg = f"The sizes of {self.name} are {', '.join(self.sizes)}; got “{size}”."
            raise InputError(msg)
        usual = self.sizes[size]
        for name, value in changes.items():
            if name not in usual:
                msg = f"{self.name} has the options {', '.join(usual)}; got “{name}”."
                raise InputError(msg)
            _check(name, value, usual[name])
        return {name: plain(name, value) for name, value in {**usual, **changes}.items()}

    def size_of(self, options: Options) -> str:
        """Return "default" for options of several sizes, `OTHER_OPTIONS` for those of none."""
        names = [name for name in self.sizes if self.options(name) == options]
        if "default" in names or not names:
            return "default" if names else OTHER_OPTIONS
        return names[0]

    def command(self, options: Options) -> str:
        """Return the command that makes a result."""
        size = self.size_of(options)
        return f"python -m appca paper {self.name}" + f" --{size}" * (size in {"quick", "full"})

    def id(self, options: Options) -> str:
        """Twelve hex digits: the same experiment with the same options has the same name."""
        return digest_of({"study": self.name, "revision": self.revision, "options": options})


def one_size(options: Options, seconds: float) -> dict[str, Any]:
    """Return `sizes` and `takes` of an experiment that is short enough for a single size."""
    names = ("quick", "default", "full")
    return {"sizes": dict.fromkeys(names, options), "takes": dict.fromkeys(names, seconds)}


def _check(name: str, value: object, usual: object) -> None:
    """Refuse a value that is not of the kind of the usual one: a number above zero or a list."""
    if isinstance(usual, (list, tuple)):
        fits = isinstance(value, (list, tuple)) and bool(value)
        kind = f"a list such as {list(usual)}"
    elif isinstance(usual, str):
        fits, kind = isinstance(value, str), f"a text such as “{usual}”"
    else:
        whole, from_zero = isinstance(usual, int), name in {"seed", "burn_in"}
        least = 0 if from_zero else 1 if whole else math.ulp(0.0)
        fits = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
        fits = fits and isinstance(value, (int, float)) and least <= value < math.inf
        kind = f"{'a whole number' if whole else 'a number'} {'from' if from_zero else 'above'} 0"
    if not fits:
        msg = f"{name} must be {kind}; got {value!r}."
        raise InputError(msg)
    if isinstance(usual, (list, tuple)) and isinstance(value, (list, tuple)):
        for item in value:
            _check(name, item, usual[0])
