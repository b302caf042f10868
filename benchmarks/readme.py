"""The tables of the README, in Markdown, from what the benchmarks have written.

`python -m benchmarks.readme [FOLDER]` prints three: what each method took, what was asked of aPPCA
and aFA beside what is measured, and how the time of a pass grows. FOLDER is results/ beside this
file unless told otherwise; files that are not there leave out what they tell.
"""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.methods import METHODS
from benchmarks.table import RESULTS

Row = dict[str, Any]
DIGITS, VOXELS, ODD = "MNIST 60,000", "voxels", "odd digits"


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    rows = results(folder)
    lists = {name: listed(folder / f"{name}.csv") for name in ("growth", "passes", "long")}
    parts = [taken(rows), asked(rows, lists["passes"], lists["long"]), growing(lists["growth"])]
    print("\n\n".join("\n".join(part) for part in parts if len(part) > 2))


def results(folder: Path) -> list[Row]:
    """Return the rows of table.json."""
    path = folder / "table.json"
    rows: list[Row] = json.loads(path.read_text())["table"] if path.exists() else []
    return rows


def listed(path: Path) -> list[Row]:
    """Return the rows of a CSV file, or none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def taken(rows: Sequence[Row]) -> list[str]:
    """Write a line for each method and data set."""
    titles = ["data (K, L)", "method", "processor s", "times PCA", "with coding, s", "peak / data"]
    lines = header([*titles, "error", "held-out error", "held-out nats a row"])
    for row in rows:
        name = f"{row['data']} ({row['K']}, {row['L']})"
        if row["status"] != "ok" and not row["fits"]:
            lines.append(line([name, row["method"], row["status"], *[""] * 6]))
            continue
        once = " (once)" if row["fits"] == 1 else ""
        cells = [name, row["method"], number(row["processor_s"]) + once]
        cells += [number(row[f]) for f in ("times_pca", "coded_s", "peak_over_data", "error")]
        cells += [number(row["error_held_out"]), number(row["held_out_nats"], 4)]
        lines.append(line(cells))
    return lines


def asked(rows: Sequence[Row], passes: Sequence[Row], long: Sequence[Row]) -> list[str]:
    """Write what was asked beside what is measured."""
    one, pca, words = (found(rows, DIGITS, m) for m in ("appca_one", "pca", "dictionary"))
    lines = header(["what", "asked", "measured"])
    start = "MNIST 60,000, one start: processor time over that of PCA"
    lines += said(start, "at most 3, then 1.5", [number(one.get("times_pca"))])
    below = [number(row["below"]) for row in about_digits(long)]
    lines += said("the same, nats a row below 2,000 passes more", "at most 0.05", below)
    both = [[number(row["ratio"]), number(row["ratio_clock"])] for row in about_digits(passes)]
    ratio = [f"{processor} (of the clock {clock})" for processor, clock in both]
    lines += said("one EM pass over its two products", "at most 1.5", ratio)
    what = "MiniBatchDictionaryLearning + OMP over one start, fit / fit and coding of its rows"
    times = [over(words, one, "processor_s"), over(words, one, "coded_s")]
    lines += said(what, "at least 10", [" / ".join(times)] if all(times) else [])
    errors = [number(one.get("error")), number(words.get("error"))]
    lines += said("error of one start, of dictionary learning", "no larger", in_pairs(errors))
    seconds = number(found(rows, ODD, "afa_em").get("clock_s"))
    lines += said("aFA, 2,500 x 350, K = 100, L = 50, start included", "under 6 s", [seconds])
    for method in ("appca_one", "appca_em"):
        lines += large(found(rows, VOXELS, method))
    held = ("appca_em", "appca_gibbs", "afa_em")
    peaks = [found(rows, DIGITS, method).get("peak_over_data") for method in held]
    what = "peak memory over the data, MNIST 60,000, aPPCA by EM, by Gibbs, aFA"
    lines += said(what, "at most 2", in_pairs([number(peak) for peak in peaks]))
    lines += said("the same, PCA", "", [number(pca.get("peak_over_data"))])
    return lines


def large(row: Row) -> list[str]:
    """Write the line of the voxel-shaped data, for one method."""
    if not row:
        return []
    got = row["status"]
    if row["fits"]:
        got = f"{number(row['clock_s'])} s, {number(row['peak_bytes'] / 1e9)} GB"
    return said(f"{row['data']}, {row['method']}", "600 s, 8 GB", [got])


def growing(rows: Sequence[Row]) -> list[str]:
    """Write how an EM pass grows with each size."""
    lines = header(["size", "from", "to", "s a pass, from", "to", "power"])
    for name in dict.fromkeys(row["grows"] for row in rows):
        steps = [row for row in rows if row["grows"] == name]
        cells = [name, f"{int(steps[0][name]):,}", f"{int(steps[-1][name]):,}"]
        cells += [number(steps[i]["seconds_a_pass"]) for i in (0, -1)]
        lines.append(line([*cells, number(steps[0]["slope"])]))
    return lines


def found(rows: Sequence[Row], data: str, method: str) -> Row:
    """Return the row of a method and data whose name begins so, or an empty one."""
    title = METHODS[method].title
    some = [row for row in rows if row["data"].startswith(data) and row["method"] == title]
    return some[0] if some else {}


def about_digits(rows: Sequence[Row]) -> list[Row]:
    """Return the rows about 60,000 digits."""
    return [row for row in rows if row["data"].startswith(DIGITS)]


def over(a: Row, b: Row, field: str) -> str:
    """Return a quotient in words, empty where a number is missing."""
    if a.get(field) is None or b.get(field) is None:
        return ""
    return number(a[field] / b[field])


def in_pairs(numbers: Sequence[str]) -> list[str]:
    """Join numbers, if all are there."""
    return [", ".join(numbers)] if all(numbers) else []


def said(what: str, wanted: str, measured: Sequence[str]) -> list[str]:
    """Write one line, or none where nothing was measured."""
    return [line([what, wanted, measured[0]])] if measured and measured[0] else []


def number(value: Any, digits: int = 3) -> str:
    """Round to some digits, without exponents and with thousands separated."""
    if value is None or value == "":
        return ""
    value = float(f"{float(value):.{digits}g}")
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:.12f}".rstrip("0")
    return text.rstrip(".") or "0"


def header(titles: Sequence[str]) -> list[str]:
    """Write the first two lines of a table."""
    return [line(titles), line(["---"] * len(titles))]


def line(cells: Sequence[str]) -> str:
    """Write one line of a table."""
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
