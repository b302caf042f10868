"""The paragraph about speed, made of the measured ratios."""

from collections.abc import Sequence

from appca.studies.study import Row

ORDERS, ONE_ORDER = 100.0, 10.0  # times faster


def paragraph(table: Sequence[Row], rows: Sequence[Row]) -> str:
    """Say how many times sooner EM arrives, and whether that is orders of magnitude."""
    told = [_pair(row) for row in table]
    return (
        "Both begin from principal components and get more and more passes; the time is that of "
        "the shortest fit that comes to the level which both reach, in processor seconds. "
        f"{'. '.join(told)}. A single draw scatters about the best point, so a "
        "chain need not come to where EM ends; and its draws are a posterior, which EM does not "
        f"give. The longest chain here has {max(int(str(row['made'])) for row in rows):,} sweeps."
        f"\n\n{verdict(table)}"
    )


def _pair(row: Row) -> str:
    reached, bound = int(str(row["to_end_reached"])), ""
    if reached < int(str(row["data_sets"])):
        bound = f" at least, as the chain arrives on {reached} of {row['data_sets']} data sets"
    return (
        f"{row['em']} against {str(row['gibbs']).split(', ', 1)[1]}, {row['measure']}: "
        f"{_times(row['ratio'])} ({_times(row['ratio_least'])} to {_times(row['ratio_most'])}), "
        f"to where EM ends {_times(row['to_end'])}{bound}"
    )


def verdict(table: Sequence[Row]) -> str:
    """Whether the paper's statement holds, for each model and by the mean ratios."""
    told = []
    for model in dict.fromkeys(str(row["model"]) for row in table):
        ratios = [float(str(row["ratio"])) for row in table if row["model"] == model]
        low, high = min(ratios), max(ratios)
        if low >= ORDERS:
            words = "the paper's orders of magnitude hold"
        elif high < 1.0:
            words = "EM is not faster at all"
        elif high < ONE_ORDER:
            words = "EM is faster, but by less than one order of magnitude"
        elif high < ORDERS:
            words = "EM is faster, but by one order of magnitude at most, not by several"
        else:
            words = "orders of magnitude hold in some comparisons and not in others"
        told.append(
            f"For {model} {words} (ratios {low:.2g} to {high:.2g}). {_to_end(table, model)}"
        )
    return " ".join(told)


def _to_end(table: Sequence[Row], model: str) -> str:
    """Say how much longer chains take to where EM itself ends, as far as they come."""
    own = [row for row in table if row["model"] == model]
    ends = [float(str(row["to_end"])) for row in own]
    every = all(row["to_end_reached"] == row["data_sets"] for row in own)
    bound = "" if every else ", or more, as not every chain arrives"
    return f"To where EM itself ends Gibbs takes {min(ends):.2g} to {max(ends):.2g} times{bound}."


def _times(value: object) -> str:
    return f"{float(str(value)):.2g} times"
