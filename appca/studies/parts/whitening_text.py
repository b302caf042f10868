"""The paragraph about whitening, made of the measured numbers."""

from collections.abc import Sequence

from appca.data.numbers import percent
from appca.studies.study import Row

NEAR = 0.02  # accuracy below the raw values' that counts as comparable


def paragraph(table: Sequence[Row], name: str, options: dict) -> str:
    """Say what was measured and whether it bears out the paper."""
    raw = next(row for row in table if row["method"] == "raw")
    done = int(raw["folds"])
    told = [
        f"Of {name}, {done} of {options['folds']} folds: raw values give "
        f"{_percent(raw['accuracy'])} (sd {_percent(raw['accuracy_sd'])})",
        compared(_of(table, "appca"), "gain_at_k", "At equal K, aPPCA with L = K - 1"),
        compared(_of(table, "within"), "gain_at_k", "Whitened inside each subspace it"),
        compared(_of(table, "each"), "gain_at_k", "With one classifier a subspace it"),
        enough(table, float(raw["accuracy"])),
    ]
    if _of(table, "half"):
        told.append(
            compared(
                _of(table, "half"),
                "gain_at_l",
                "At an equal number of active coordinates, aPPCA with K = 2 L",
            )
        )
        told.append(_credit(table))
    return f"{'. '.join(told)}.\n\n{verdict(table)}"


def compared(rows: Sequence[Row], measure: str, who: str) -> str:
    """Count where a method is above and below PCA beyond the 95 % interval."""
    there = [row for row in rows if row[measure] is not None]
    above = [row for row in there if row[measure] > row[f"{measure}_error"]]
    below = [row for row in there if -row[measure] > row[f"{measure}_error"]]
    size = "K" if measure == "gain_at_k" else "L"
    gains = ", ".join(
        f"{100 * row[measure]:+.1f} ± {100 * row[f'{measure}_error']:.1f} ({size} = {row[size]})"
        for row in there
    )
    return (
        f"{who} is above PCA at {len(above)} and below it at {len(below)} of {len(there)} sizes "
        f"(95 % intervals); points gained: {gains}"
    )


def enough(table: Sequence[Row], raw: float) -> str:
    """Say how many components come near the raw values."""
    found = []
    for method, title in (("pca", "PCA"), ("appca", "aPPCA")):
        sizes = sorted({int(row["K"]) for row in _of(table, "appca")})
        near = [
            int(row["K"])
            for row in _of(table, method)
            if row["K"] in sizes and row["accuracy"] >= raw - NEAR
        ]
        found.append(f"{title} {f'K = {min(near)}' if near else 'more than the largest K here'}")
    return f"To come within {100 * NEAR:.0f} points of the raw values takes {' and '.join(found)}"


def _credit(table: Sequence[Row]) -> str:
    """Say how much of that the pattern of zeros explains."""
    better = []
    pairs = zip(_of(table, "half"), _of(table, "pattern"), strict=True)
    for half, pattern in pairs:
        if pattern["accuracy"] >= half["accuracy"]:
            better.append(str(half["L"]))
    zeros = ", ".join(
        f"{_percent(row['accuracy'])} (L = {row['L']})" for row in _of(table, "zeros")
    )
    where = f"at L = {', '.join(better)}" if better else "at no L"
    return (
        f"Which coordinates are zero tells much by itself: the pattern alone gives {zeros}, and "
        f"PCA with that pattern appended does at least as well as aPPCA's scores {where}"
    )


def verdict(table: Sequence[Row]) -> str:
    """Whether the paper's statement holds, from the intervals at equal K."""
    rows = _of(table, "appca")
    above = sum(row["gain_at_k"] > row["gain_at_k_error"] for row in rows)
    below = sum(-row["gain_at_k"] > row["gain_at_k_error"] for row in rows)
    if above > len(rows) / 2:
        first = "The paper's statement holds here: at equal K aPPCA does better than PCA"
    elif above:
        first = "The paper's statement holds here in part: at equal K aPPCA does better at some K"
    elif below:
        first = "The paper's statement does not hold here: at equal K aPPCA does not beat PCA"
    else:
        first = "The paper's statement is not borne out here: no K tells aPPCA from PCA"
    half = _of(table, "half")
    clear = [row for row in half if row["gain_at_l"] > row["gain_at_l_error"]]
    if half and len(clear) > len(half) / 2:
        return f"{first}; at an equal number of active coordinates it does."
    if clear:
        return f"{first}; at an equal number of active coordinates it does at some L."
    return f"{first}."


def _of(table: Sequence[Row], method: str) -> list[Row]:
    return sorted((row for row in table if row["method"] == method), key=lambda row: row["L"] or 0)


def _percent(value: object) -> str:
    return percent(float(str(value)), 1)
