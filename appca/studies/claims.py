"""What the paper claims, what came out here, and whether the claim holds, as rows of a table."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

Holds = Literal["yes", "partly", "no", "not tested"]


class CheckedClaim(NamedTuple):
    """One claim of the paper beside the measurement that decides on it."""

    claim: str  # a short sentence
    paper: str  # its number; empty if it gives none
    measured: str
    holds: Holds
    value: str = ""  # the number that says most, for a card: "92%"
    caption: str = ""  # what it is: "on their own plane"


HEADINGS = {
    "claim": "The paper says",
    "paper": "Its number",
    "measured": "Measured here",
    "holds": "Holds",
}


def headings(claims: Sequence[CheckedClaim]) -> dict[str, str]:
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
) -> CheckedClaim:
    """Judge a claim: "yes" if all tests hold, "no" if none does, "not tested" without any."""
    passed = list(tests)
    holds: Holds = "yes" if all(passed) else "partly" if any(passed) else "no"
    return CheckedClaim(claim, paper, measured, holds if passed else "not tested", *number)


def verdict(claims: Sequence[CheckedClaim]) -> Holds:
    """Judge an experiment by its claims: "yes" if all that were tested hold, "no" if none does."""
    holds = {claim.holds for claim in claims} - {"not tested"}
    if len(holds) == 1:
        return holds.pop()
    return "partly" if holds else "not tested"


def span(values: Sequence[float], form: str = ".2f") -> str:
    """Write the least and the largest value: "1.20 to 3.45"."""
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"
