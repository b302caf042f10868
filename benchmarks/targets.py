"""What was asked of the speed, memory and error of the models, beside what is measured."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.cluster import Seen
from benchmarks.methods import METHODS
from benchmarks.numbers import number
from benchmarks.results import Row

__all__ = ["Target", "targets"]

Results = Mapping[str, Sequence[Row]]  # rows by the name of their file; may lack any

MNIST, ODD, VOXELS = "MNIST 60,000", "odd digits", "voxels"
TIMES_PCA, BELOW, TIMES_PRODUCTS, TIMES_FASTER = 3.0, 0.05, 1.5, 10.0
AFA_S, VOXELS_S, VOXELS_BYTES, PEAK = 6.0, 600.0, 8e9, 2.0
SLIDER_ROWS = 10_000
UPLOAD_MB, UPLOAD_S = 500.0, 2.0  # by which an upload may delay another visitor's page
SLIDER_S = {False: 0.6, True: 0.1}  # whether the fit was made ahead
VISIT_S, VISIT_TIMES = 3.0, 4.0  # beyond, and times, what one visitor alone needs
CONSTANT = 1.1  # times the peak of the fewest rows


class Target(NamedTuple):
    """A wish and what became of it."""

    what: str
    asked: str
    measured: str
    held: bool

    def cells(self) -> tuple[str, str, str, str]:
        """Return the cells of a table."""
        return self.what, self.asked, self.measured, "yes" if self.held else "no"


def targets(results: Results) -> list[Target]:
    """Return all targets about which something is measured."""
    parts = (of_time, of_one_start, of_the_app, of_visitors, of_large_data, of_memory)
    return [target for part in parts for target in part(results)]


def of_time(results: Results) -> list[Target]:
    """Compare the time of one start with that of PCA, of products and of dictionary learning."""
    one, words = row_of(results, MNIST, "appca_one"), row_of(results, MNIST, "dictionary")
    found = []
    if one.get("times_pca") is not None:
        what, value = f"{MNIST}, one start: processor time over that of PCA", one["times_pca"]
        found.append(at_most(what, value, TIMES_PCA))
    for row in about(results, "passes", MNIST):
        measured = f"{number(row['ratio'])} (of the clock {number(row['ratio_clock'])})"
        found.append(
            Target(
                f"{MNIST}: an EM iteration over its two products",
                f"at most {number(TIMES_PRODUCTS)}",
                measured,
                row["ratio"] <= TIMES_PRODUCTS,
            )
        )
    for field, what in (("processor_s", "the fit"), ("coded_s", "the fit and coding of its rows")):
        if one.get(field) and words.get(field):
            times = words[field] / one[field]
            title = f"{MNIST}: dictionary learning + OMP over one start, {what}"
            asked = f"at least {number(TIMES_FASTER)}"
            found.append(Target(title, asked, number(times), times >= TIMES_FASTER))
    odd = row_of(results, ODD, "afa_em").get("clock_s")
    if odd is not None:
        what = f"{ODD}, aFA, its start included"
        found.append(Target(what, f"under {number(AFA_S)} s", f"{number(odd)} s", odd < AFA_S))
    return found


def of_one_start(results: Results) -> list[Target]:
    """Say how good the fit from one start is."""
    one, words = row_of(results, MNIST, "appca_one"), row_of(results, MNIST, "dictionary")
    found = [
        at_most(
            f"{MNIST}, one start: nats per row below {row['passes']:,} more iterations",
            value,
            BELOW,
        )
        for row in about(results, "long", MNIST)
        if (value := row["below"]) is not None
    ]
    if one.get("error") is not None and words.get("error") is not None:
        what = f"{MNIST}: error of one start, of dictionary learning"
        measured = f"{number(one['error'])}, {number(words['error'])}"
        found.append(Target(what, "no larger", measured, one["error"] <= words["error"]))
    return found


def of_the_app(results: Results) -> list[Target]:
    """Say how long a move of the slider takes to be seen."""
    found = []
    still = [row for row in results.get("slider", ()) if row["motion"] == "reduce"]
    for ahead, limit in SLIDER_S.items():
        moves = [row for row in still if row["ahead"] == ahead and row["digits"] == SLIDER_ROWS]
        if moves:
            middle = median(row["server_s"] + row["browser_s"] for row in moves)
            what = f"a move of K or L to the complete picture, {SLIDER_ROWS:,} digits, motion "
            what += f"reduced, {'fitted ahead' if ahead else 'not prepared'}, {len(moves)} moves"
            found.append(Target(what, f"{number(limit)} s", f"{number(middle)} s", middle <= limit))
    rows = results.get("uploads", ())
    alone = max((row["page_s"] for row in rows if "grown_mb" not in row), default=0.0)
    files = [row for row in rows if "grown_mb" in row]
    if files:
        grown = max(row["grown_mb"] for row in files)
        later = max(row["page_s"] for row in files) - alone
        what = f"{len(files)} hostile uploads under 2 MB: most memory taken"
        asked = f"at most {number(UPLOAD_MB)} MB"
        found.append(Target(what, asked, f"{number(grown)} MB", grown <= UPLOAD_MB))
        what = "another visitor's page meanwhile, beyond what it takes alone"
        asked = f"at most {number(UPLOAD_S)} s"
        found.append(Target(what, asked, f"{number(later)} s", later <= UPLOAD_S))
    return found


def of_visitors(results: Results) -> list[Target]:
    """Compare how long many visitors wait with how long one does."""
    rows = sorted(results.get("visitors", ()), key=lambda row: row["visitors"])
    if len(rows) < 2:
        return []
    alone, many = rows[0], rows[-1]
    n = many["visitors"]
    limit = VISIT_S + VISIT_TIMES * alone["median_s"]
    return [
        at_most(f"{n} visitors at once, 95% of their moves, s", many["p95_s"], limit),
        at_most(f"{n} visitors at once: errors", many["faults"], 0),
        at_most(
            f"{n} visitors at once: memory of the server at the end over that halfway",
            many["end_mb"] / many["half_mb"],
            CONSTANT,
        ),
    ]


def of_large_data(results: Results) -> list[Target]:
    """Say what the voxel-shaped rows and the rows beyond memory take."""
    found = []
    row = row_of(results, VOXELS, "appca_one")
    if row:
        asked = f"{number(VOXELS_S)} s, {number(VOXELS_BYTES / 1e9)} GB"
        measured, held = row["status"], False
        if row["fits"]:
            measured = f"{number(row['clock_s'])} s, {number(row['peak_bytes'] / 1e9)} GB"
            held = row["clock_s"] <= VOXELS_S and row["peak_bytes"] <= VOXELS_BYTES
        found.append(Target(f"{row['data']}, one start", asked, measured, held))
    two = [seen for r in results.get("cluster", ()) if (seen := Seen(**r)).workers == 2]
    if len(two) > 1:
        first, last = two[0], two[-1]
        what = f"Dask: peak of a worker with {first.rows:,} and {last.rows:,} rows"
        measured = f"{number(first.peak_mb)} and {number(last.peak_mb)} MB"
        held = last.peak_mb <= CONSTANT * first.peak_mb
        found.append(Target(what, "constant", measured, held))
    return found


def of_memory(results: Results) -> list[Target]:
    """Compare the peak memory of the models with the size of the rows, on all data sets."""
    names = {"appca_em": "aPPCA by EM", "appca_gibbs": "by Gibbs sampling", "afa_em": "aFA"}
    found = []
    for data in dict.fromkeys(row["data"] for row in results.get("table", ())):
        peaks = [row_of(results, data, method).get("peak_over_data") for method in names]
        if all(peak is not None for peak in peaks):
            what = f"{data}: peak memory over the data, {', '.join(names.values())}"
            measured = ", ".join(map(number, peaks))
            found.append(Target(what, f"at most {number(PEAK)}", measured, max(peaks) <= PEAK))
    return found


def at_most(what: str, value: float, limit: float) -> Target:
    """Return a target that holds up to a limit."""
    return Target(what, f"at most {number(limit)}", number(value), value <= limit)


def about(results: Results, name: str, data: str) -> list[Row]:
    """Return the rows of a file about data whose name begins so."""
    return [row for row in results.get(name, ()) if row["data"].startswith(data)]


def row_of(results: Results, data: str, method: str) -> Row:
    """Return the row of a method in the table, or an empty one."""
    title = METHODS[method].title
    return next((r for r in about(results, "table", data) if r["method"] == title), {})
