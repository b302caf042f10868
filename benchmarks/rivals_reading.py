"""What `benchmarks.rivals` has written, as the table of the page and the summary of another."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from appca.plots.export.markdown import table
from benchmarks.numbers import columns, number
from benchmarks.results import Row
from benchmarks.rivals_figure import kind_of, sizes

__all__ = ["rivals_lines", "rivals_reading", "summary"]

HEADINGS = {
    "data": "data (rows x features)",
    "method": "method",
    "axes": "axes",
    "used": "used by a row",
    "parameters": "parameters",
    "log_likelihood": "nats a row",
    "error": "error",
    "neighbours": "neighbours kept",
    "accuracy": "labels agree",
    "named": "one class apart",
    "recurrence": "recovered",
    "cpu_s": "processor s",
}


def rivals_lines(rows: Sequence[Row]) -> list[dict[str, str]]:
    """Write a line a method and data set."""
    named = [
        {**row, "data": f"{row['data']} ({row['rows']:,} x {row['features']:,})"} for row in rows
    ]
    return columns(named, HEADINGS)


def rivals_reading(rows: Sequence[Row]) -> list[str]:
    """Count on how many data sets a mixture is ahead, and where directions are recovered."""
    sets = list(by_data(rows).values())
    counts = []
    for kind, title in (
        ("mixture K", "a mixture of PPCA with K pieces of L directions"),
        ("mixture few", "one with about as many parameters"),
        ("common", "K pieces with common loadings"),
        ("PPCA K", "PPCA with K"),
    ):
        both = [one for one in sets if kind in one and one[kind]["log_likelihood"] is not None]
        ahead = sum(one[kind]["log_likelihood"] > one["aPPCA"]["log_likelihood"] for one in both)
        counts.append(f"{title} on {ahead} of {len(both)}")
    again = [one for one in sets if "mixture K" in one]
    more = sum(one["aPPCA"]["recurrence"] > one["mixture K"]["recurrence"] for one in again)
    labelled = [one for one in again if one["aPPCA"].get("named") is not None]
    better = sum(one["aPPCA"]["named"] > one["mixture K"]["named"] for one in labelled)
    return [
        f"Held-out likelihood is higher than aPPCA's for {', '.join(counts)}.",
        f"Another start recovers aPPCA's axes more closely than those of a mixture of K of L on "
        f"{more} of {len(again)}.",
        f"Along aPPCA's axes one class is more clearly separated than along those of a mixture of "
        f"K of L on {better} of {len(labelled)} data sets with labels.",
    ]


def by_data(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Rows by data set and kind of method, see `kind_of`; "as exact" is a kind, too."""
    found = {}
    for data, group in groupby(rows, key=itemgetter("data")):
        own = list(group)
        K, L = sizes(own)
        kinds = {kind_of(row, K, L): row for row in own}
        kinds["as exact"] = next((r for r in own if r["method"].endswith("as exact")), None)
        found[data] = {kind: row for kind, row in kinds.items() if kind and row}
    return found


def summary(rows: Sequence[Row]) -> str:
    """Return the table of docs/when-to-use.md: aPPCA and its nearest rivals, a line a data set."""
    lines = []
    for data, kinds in by_data(rows).items():
        ours, many = kinds["aPPCA"], kinds["mixture K"]
        K, L = ours["axes"], ours["used"]
        gains = [
            signed(kinds[kind]["log_likelihood"], ours["log_likelihood"])
            for kind in ("mixture K", "mixture few", "common", "PPCA K")
            if kind in kinds
        ]
        gains = gains if len(gains) == 4 else [gains[0], *gains]
        exact = kinds.get("as exact")
        lines.append(
            [
                f"{data} ({K}, {L})",
                *gains,
                f"{K}, {exact['axes'] if exact else f'over {3 * K * L}'}",
                *(
                    "" if ours.get(m) is None else f"{number(ours[m], 2)}, {number(many[m], 2)}"
                    for m in ("neighbours", "recurrence", "named")
                ),
            ]
        )
    headings = [
        "data (K, L)",
        "mixture, K of L",
        "mixture, K/L of L",
        "common loadings",
        "PPCA with K",
        "axes at equal error: aPPCA, mixture",
        "neighbours kept: aPPCA, mixture of K",
        "recovered: aPPCA, mixture of K",
        "one class apart: aPPCA, mixture of K",
    ]
    return table(headings, lines)


def signed(value: float | None, own: float) -> str:
    """Write a difference with its sign."""
    if value is None:
        return ""
    away = value - own
    return f"{'+' if away > 0 else '−'}{number(abs(away), 3)}"
