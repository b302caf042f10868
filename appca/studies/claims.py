"""Claims of the paper, with the measurements that test them."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Holds = Literal["yes", "partly", "no", "not tested"]
HEADINGS = ("The paper says", "Its number", "Measured here", "Holds")


class Claim(NamedTuple):
    """A claim of the paper, with the measurement that tests it."""

    claim: str  # a short sentence
    paper: str  # the paper's number; empty if the paper gives none
    measured: str
    holds: Holds
    value: str = ""  # the most informative number, for a card: "92%"
    caption: str = ""  # meaning of the number: "on their own plane"


def headings(claims: Sequence[Claim]) -> dict[str, str]:
    """Return the field and heading of each column; omit the paper's numbers if there are none."""
    titles = zip(Claim._fields, HEADINGS, strict=False)
    return {name: title for name, title in titles if any(getattr(c, name) for c in claims)}


def checked(
    claim: str,
    measured: str,
    tests: Iterable[bool],
    paper: str = "",
    number: tuple[str, str] = ("", ""),
) -> Claim:
    """Judge a claim: "yes" if all tests pass, "no" if none does, "not tested" without tests."""
    passed = list(tests)
    holds: Holds = "yes" if all(passed) else "partly" if any(passed) else "no"
    return Claim(claim, paper, measured, holds if passed else "not tested", *number)


def verdict(claims: Sequence[Claim]) -> Holds:
    """Judge an experiment by its tested claims: "yes" if all hold, "no" if none does."""
    holds = {claim.holds for claim in claims} - {"not tested"}
    if len(holds) == 1:
        return holds.pop()
    return "partly" if holds else "not tested"


def share(tests: Sequence[bool]) -> str:
    """Count the passed tests: "3 of 5"."""
    return f"{sum(tests)} of {len(tests)}"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """Format the smallest and the largest value: "1.20 to 3.45"."""
    return " to ".join(dict.fromkeys(format(edge(values), form) for edge in (min, max)))
