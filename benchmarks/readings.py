"""How the rows of each benchmark become a table of docs/benchmarks.md, and what they mean.

Two functions a benchmark: `NAME_lines` returns cells by heading, `NAME_reading` at most three
sentences, computed from the rows or true of any.
"""

from collections.abc import Sequence
from itertools import groupby

from appca.analysis.check.masked import EVERY, FEW, MEANS, OWN
from appca.words.numbers import percent
from benchmarks.cluster import CHUNK_ROWS, Seen, growth_of, limits_of
from benchmarks.methods import METHODS
from benchmarks.numbers import columns, number
from benchmarks.quality import MEASURES
from benchmarks.results import Row

Cells = list[dict[str, str]]

NO_SECONDS = "Seconds are left out: the machine was busy with other work."
GAP = 0.01  # nats per row from which a start counts as worse than the truth
FILLED_BY = {OWN: "aPPCA", FEW: "PPCA with L", EVERY: "PPCA with K", MEANS: "column means"}


def table_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a method and data set; one that was ended has no numbers."""
    names = {
        "data": "data (K, L)",
        "method": "method",
        "processor_s": "processor s",
        "times_pca": "times PCA",
        "coded_s": "with coding, s",
        "peak_over_data": "peak / data",
        "error": "error",
        "error_held_out": "held-out error",
    }
    lines = columns([{**row, "data": sized(row)} for row in rows], names)
    for row, line in zip(rows, lines, strict=True):
        line["held-out nats per row"] = number(row["held_out_nats"], 4)
        if row["fits"] == 1:
            line["processor s"] += " (once)"
        if not row["fits"]:
            line["processor s"] = row["status"]
    return lines


def table_reading(rows: Sequence[Row]) -> list[str]:
    """Say between which bounds one start is, and what odd likelihoods come from."""
    title = METHODS["appca_one"].title
    mine = [row for row in rows if row["method"] == title and row["times_pca"] is not None]
    said = []
    if mine:
        low, high = (pick(mine, key=lambda row: row["times_pca"]) for pick in (min, max))
        said.append(
            f"aPPCA from one start takes from {number(low['times_pca'])} times the processor time "
            f"of PCA ({low['data']}) to {number(high['times_pca'])} times ({high['data']})."
        )
    said.append(
        "Factor analysis gives a pixel without ink a variance near zero, and scikit-learn's PCA "
        "divides the noise of N < D rows by too few dimensions: hence their extreme likelihoods."
    )
    return said


def passes_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a data set."""
    names = {"data": "data (K, L)", "pass_s": "iteration, s", "products_s": "products, s"}
    names |= {"ratio": "ratio, processor", "ratio_clock": "ratio, clock"}
    return columns([{**row, "data": sized(row)} for row in rows], names)


def passes_reading(rows: Sequence[Row]) -> list[str]:
    """Say what the ratio means."""
    least = min(rows, key=lambda row: row["ratio"])
    return [
        "At a ratio of 1 an iteration would cost no more than its two matrix products; the closest "
        f"is {least['data']} with {number(least['ratio'])}."
    ]


def long_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a data set."""
    lines = columns([{**row, "data": sized(row)} for row in rows], {"data": "data (K, L)"})
    for row, line in zip(rows, lines, strict=True):
        line["one start, nats per row"] = number(row["quick_nats"], 5)
        line["after more iterations"] = number(row["long_nats"], 5)
        line["more iterations"] = number(row["passes"])
        line["gain"] = number(row["below"])
        line["processor s"] = number(row["long_s"])
    return lines


def long_reading(rows: Sequence[Row]) -> list[str]:
    """Say what the gain is a bound of."""
    del rows
    return ["The gain is what `tol` gives away; it says nothing about other optima."]


def growth_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a size: the two ends of its ladder, and the slope."""
    lines = []
    for name, group in groupby(rows, key=lambda row: row["grows"]):
        first, *_, last = list(group)
        line = {"size": name, "from": number(first[name]), "to": number(last[name])}
        line |= {"s an iteration, from": number(first["seconds_a_pass"])}
        line |= {
            "s an iteration, to": number(last["seconds_a_pass"]),
            "power": number(first["slope"]),
        }
        lines.append(line)
    return lines


def growth_reading(rows: Sequence[Row]) -> list[str]:
    """Say what stays fixed, and what a power means."""
    fixed = [
        f"{name} = {number(next(r[name] for r in rows if r['grows'] != name))}"
        for name in dict.fromkeys(row["grows"] for row in rows)
    ]
    return [
        f"The sizes that stay are {', '.join(fixed)}.",
        "A power of 1 is linear; one below means that parts which do not depend on this size take "
        "a share of the time.",
    ]


def cluster_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a fit."""
    names = {
        "rows": "rows",
        "megabytes": "MB",
        "workers": "workers",
        "clock_s": "clock s",
        "processor_s": "processor s",
        "making_s": "of which to make rows",
        "passes": "iterations",
        "peak_mb": "peak of a worker, MB",
        "least_cosine": "least cosine",
    }
    return columns(rows, names)


def cluster_reading(rows: Sequence[Row]) -> list[str]:
    """Say how it grows, and what a billion rows would take."""
    one, *two = (Seen(**row) for row in rows)
    return [growth_of(one, two), limits_of(two[-1], CHUNK_ROWS)]


def planted_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a shape."""
    names = {"N": "N", "D": "D", "K": "K", "L": "L", "seeds": "seeds"}
    names |= {"mean_cosine": "mean cosine", "least_cosine": "least"}
    names |= {"mean_cosine_from_truth": "from the truth, mean"}
    lines = columns(rows, names, digits=4)
    for row, line in zip(rows, lines, strict=True):
        line["gap, nats per row"] = f"{max(row['gap'], 0.0):.3f}"
    return lines


def planted_reading(rows: Sequence[Row]) -> list[str]:
    """Count the shapes in which the default start ends lower than the truth."""
    sizes = ([row[name] for name in "NDKL"] for row in rows if row["gap"] > GAP)
    lower = [f"({', '.join(map(number, size))})" for size in sizes]
    which = f", (N, D, K, L) = {' and '.join(lower)}" if lower else ""
    return [
        f"The default start ends more than {GAP} nats per row below a fit started at the truth on "
        f"{len(lower)} of {len(rows)} shapes{which}.",
        "A gap means that EM has stopped at a worse optimum; a low cosine without one, that the "
        "rows do not tell the directions apart.",
    ]


def likelihoods_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a data set and size of model."""
    names = {"data": "data", "N": "N", "D": "D", "K": "K", "L": "L", "nats": "nats per row"}
    return columns(rows, {**names, "processor_s": "processor s"}, digits=5)


def likelihoods_reading(rows: Sequence[Row]) -> list[str]:
    """Say what can be compared, and if seconds are missing."""
    said = ["Numbers of the same data can be compared; those of different data cannot."]
    return said if "processor_s" in rows[0] else [*said, NO_SECONDS]


def balanced_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a K: the worst of all data sets."""
    lines = []
    for k, group in groupby(rows, key=lambda row: row["K"]):
        some = list(group)
        worst = {
            "K": k,
            "L": some[0]["L"],
            "sets": len(some),
            "times_oracle": max(row["times_oracle"] for row in some),
            "least_cosine": min(row["least_cosine"] for row in some),
            "right": percent(min(row["right"] for row in some), 1),
            "paper_times_oracle": min(row["paper_times_oracle"] for row in some),
            "paper_cosine": max(row["paper_cosine"] for row in some),
        }
        lines.append(worst)
    names = {"K": "K", "L": "L", "sets": "data sets", "times_oracle": "error over the oracle's"}
    names |= {"least_cosine": "least cosine", "right": "of Z found"}
    names |= {"paper_times_oracle": "error from the paper's start"}
    names |= {"paper_cosine": "cosine from the paper's start"}
    return columns(lines, names, digits=4)


def balanced_reading(rows: Sequence[Row]) -> list[str]:
    """Say how often the default start is at the floor and the paper's is not."""
    near = sum(row["times_oracle"] < 1.05 for row in rows)
    theirs = sum(row["paper_times_oracle"] < 1.05 for row in rows)
    return [
        f"By default settings the error is within 5% of the oracle's on {near} of {len(rows)} "
        f"data sets, from the paper's start on {theirs}.",
        "An error below the oracle's is no mistake: the fit may use W to follow the noise.",
    ]


def digits_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a seed."""
    some = [{**row, "own_most": "yes" if row["own_most"] else "no"} for row in rows]
    names = {"seed": "seed", "clock_s": "clock s", "processor_s": "processor s"}
    names |= {"passes": "iterations", "nats": "nats per row", "own_most": "own kind most"}
    return columns(some, names, digits=4)


def digits_reading(rows: Sequence[Row]) -> list[str]:
    """Name the pair of digits that shares most, for each seed."""
    pairs = []
    for row in rows:
        grid, names = row["grid"], row["digits"]
        places = [(i, j) for i in range(len(names)) for j in range(i)]
        i, j = max(places, key=lambda place: grid[place[0]][place[1]])
        pairs.append(f"{names[j]} and {names[i]}")
    common = max(dict.fromkeys(pairs), key=pairs.count)
    return [
        f"Of two different digits, {common} share most factors in {pairs.count(common)} of "
        f"{len(rows)} fits."
    ]


def missing_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a data set and share of cells, with a column a method."""
    methods = sorted(
        dict.fromkeys(row["method"] for row in rows),
        key=lambda name: (list(FILLED_BY).index(name) if name in FILLED_BY else 9, name),
    )
    lines = []
    for case in cases(rows).values():
        line = {"data (K, L)": sized(case[0]), "masked": percent(case[0]["share"])}
        errors = {row["method"]: number(row["rmse"]) for row in case}
        line |= {FILLED_BY.get(name, name): errors.get(name, "") for name in methods}
        lines.append(line)
    return lines


def missing_reading(rows: Sequence[Row]) -> list[str]:
    """Count the cases in which aPPCA is better than each of the others that always run."""
    both = [{row["method"]: row["rmse"] for row in case} for case in cases(rows).values()]
    counts = [
        f"{title} in {sum(errors[OWN] < errors[name] for errors in both)}"
        for name, title in FILLED_BY.items()
        if name != OWN
    ]
    error = max(row["standard_error"] or 0.0 for row in rows)
    return [
        f"Of {len(both)} cases aPPCA has the lower error than {', than '.join(counts)}.",
        f"No standard error over the seeds exceeds {number(error, 2)}.",
    ]


def quality_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a case."""
    lines = columns(rows, {"rows": "rows", "anchors": "anchors"})
    for row, line in zip(rows, lines, strict=True):
        line |= {name: f"{row[name]:.4f} ± {row[f'{name}_error']:.4f}" for name in MEASURES}
        if "clock_s" in row:
            line |= {"clock s": number(row["clock_s"])}
            line |= {"processor s": number(row["processor_s"])}
    return lines


def quality_reading(rows: Sequence[Row]) -> list[str]:
    """Say how far anchors are from all rows, and if seconds are missing."""
    said = ["A sample of anchors is as good as all rows if they differ by no more than the errors."]
    return said if "clock_s" in rows[0] else [*said, NO_SECONDS]


def sized(row: Row) -> str:
    """Name the data of a row with the sizes of its model."""
    return f"{row['data']} ({row['K']}, {row['L']})"


def cases(rows: Sequence[Row]) -> dict[tuple[str, float], list[Row]]:
    """Group rows by data set and share of masked cells."""
    found: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        found.setdefault((row["data"], row["share"]), []).append(row)
    return found


def speed_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a piece of work."""
    names = {"what": "what", "asked": "asked", "own_s": "processor s"}
    names |= {"other_s": "of the other", "ratio": "ratio"}
    empty = {"asked": "", "own_s": None, "other_s": None, "ratio": None}
    return columns([empty | row for row in rows], names)


def speed_reading(rows: Sequence[Row]) -> list[str]:
    """Say where the time of default fits goes."""
    return [
        f"{row['what']}: "
        + ", ".join(f"{stage} {percent(share)}" for stage, share in row["parts"].items())
        + "."
        for row in rows
        if "parts" in row
    ]


def solids_lines(rows: Sequence[Row]) -> Cells:
    """Write a line a kind of pictures and kernels."""
    names = {"data": "60,000 x 784", "kernels": "BLAS kernels", "pca_s": "PCA, s"}
    names |= {
        "default_s": "default fit, s",
        "default": "over PCA",
        "first": "first fit of a process",
    }
    names |= {"wide_s": "A + B, s", "wide": "over the default fit"}
    return columns(rows, names)


def solids_reading(rows: Sequence[Row]) -> list[str]:
    """Say what holds of the bounds."""
    most = {
        (name, what): max(row[what] for row in rows if row["data"] == name)
        for name in {row["data"] for row in rows}
        for what in ("default", "first", "wide")
    }
    return [
        f"{name}: the default fit takes at most {number(most[name, 'default'])} times PCA (asked: "
        f"{bound}), the first of a process {number(most[name, 'first'])} times (asked: 4), and "
        f"A + B {number(most[name, 'wide'])} times the default fit (asked: 3)."
        for name, bound in (("MNIST", 2.5), ("solids", 3))
    ]
