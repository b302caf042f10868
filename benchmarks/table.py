"""The benchmark table: time, memory, error and held-out likelihood of aPPCA, aFA and others.

`APPCA_DATA=... python -m benchmarks.table [--quick] [--large] [--rounds N] [--minutes M]
[--methods A,B] [--data NAME]`

All methods see the same float32 rows. Each fit has a process of its own. Methods take turns within
a round, so that what else the machine does falls on all of them; what is compared is processor
time, as the median of the ratios to PCA of the same round. `coded_s` is the fit and the coding of
the rows it was fitted to. So that all of it takes 40 minutes at most:

- a method has five minutes on a data set, from loading the rows to the last measure; one that was
  ended (MiniBatchSparsePCA) has 45 s on those after it, which are larger;
- a fit that took longer than 20 s is made once and not in every round (column `fits`);
- on the voxel-shaped data (`--large`: 215,302 x 989, K = 500, L = 200, 0.85 GB) aPPCA by EM from
  one start has the ten minutes that it has promised to need at most, all others have 45 s;
- nothing is begun that could end later than M minutes (40) after the start.

`--quick` takes two small synthetic data sets. It also leaves compiled code on the disk, so it
should go first. Three other measurements: `--growth`, how the time of an EM pass of aPPCA grows
with N, D, K and L, with slopes on logarithmic scales; `--passes`, a pass beside its two matrix
products; `--long`, how far the quick fit ends below 2,000 more iterations.

A later run of some methods or data sets replaces their rows in the files and keeps the others.
Writes results/table.json and, to look at, table.csv, or results/growth.json, passes.json,
long.json; --quick writes quick.json and .csv, which are not kept.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import growth, long, passes, results
from benchmarks.methods import METHODS, REFERENCE, missing
from benchmarks.shapes import LARGE, QUICK, SHORT_S, STANDARD, Shape

LONG_S = 20  # of the clock: a fit that takes longer is made once
FIELDS = ["processor_s", "clock_s", "coded_s", "peak_bytes", "peak_over_data", "error"]
FIELDS += ["error_held_out", "held_out_nats"]


class Budget:
    """What a run may still begin: the time left, and the methods that were ended before."""

    def __init__(self, minutes: float) -> None:
        self.deadline = time.perf_counter() + 60.0 * minutes
        self.ended: set[str] = set()

    def limit(self, shape: Shape, method: str) -> int:
        """Seconds that a method has on a data set; 0 where the time is up."""
        limit = shape.limit(method)
        if method in self.ended:
            limit = min(limit, SHORT_S)
        return limit if time.perf_counter() + limit < self.deadline else 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = results.arguments(__doc__)
    parser.prog = "python -m benchmarks.table"
    parser.add_argument("--quick", action="store_true", help="two small data sets")
    parser.add_argument("--large", action="store_true", help="add 215,302 x 989")
    parser.add_argument("--growth", action="store_true", help="growth with N, D, K, L")
    parser.add_argument("--passes", action="store_true", help="a pass beside its products")
    parser.add_argument("--long", action="store_true", help="the quick fit beside 2,000 passes")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each method")
    parser.add_argument("--minutes", type=float, default=40.0, help="for all of it")
    parser.add_argument("--methods", default=",".join(METHODS), help="of " + ", ".join(METHODS))
    parser.add_argument("--data", default="", help="only data sets whose name contains this")
    given = parser.parse_args(arguments)
    shapes = QUICK if given.quick else [*STANDARD, *(LARGE if given.large else [])]
    shapes = [shape for shape in shapes if given.data in shape.name]
    if not shapes:
        parser.error(f"--data must be part of the name of a data set; got {given.data!r}.")
    methods = [REFERENCE, *(m for m in given.methods.split(",") if m != REFERENCE)]
    if unknown := sorted(set(methods) - set(METHODS)):
        parser.error(f"--methods knows {', '.join(METHODS)}; got {', '.join(unknown)}.")
    if given.growth:
        results.write(given.out, "growth", growth.measured(quick=given.quick))
    elif given.passes:
        results.write(given.out, "passes", passes.measured(shapes))
    elif given.long:
        results.write(given.out, "long", long.measured(shapes))
    else:
        name = "quick" if given.quick else "table"
        compare(shapes, methods, given.rounds, Budget(given.minutes), given.out / name)


def compare(
    shapes: Sequence[Shape], methods: Sequence[str], rounds: int, budget: Budget, path: Path
) -> None:
    """Fit all methods to all data and write both files."""
    there = [method for method in methods if not missing(method)]
    left_out = [METHODS[method].title for method in methods if method not in there]
    for title in left_out:
        print(f"{title} is not installed and left out.", flush=True)
    rows, runs = [], []
    for shape in shapes:
        seen = runs_of(shape, there, rounds, budget)
        runs += seen
        rows += summary(shape, there, seen)
    known: dict[str, list[dict[str, Any]]] = {"rows": [], "runs": []}
    if path.with_suffix(".json").exists():
        known = json.loads(path.with_suffix(".json").read_text())
    rows, runs = renewed(known["rows"], rows), renewed(known["runs"], runs)
    left_out = [method.title for key, method in METHODS.items() if missing(key)]
    results.write(path.parent, path.name, rows, runs=runs, left_out=left_out)
    write_csv(path.with_suffix(".csv"), rows)


def renewed(
    before: Sequence[dict[str, Any]], rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Put rows in the place of those of the same method and data set, new ones at the end."""
    new: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        new.setdefault((row["data"], row["method"]), []).append(row)
    left, out = dict(new), []
    for row in before:
        key = row["data"], row["method"]
        out += left.pop(key, []) if key in new else [row]
    return [*out, *(row for some in left.values() for row in some)]


def runs_of(
    shape: Shape, methods: Sequence[str], rounds: int, budget: Budget
) -> list[dict[str, Any]]:
    """Fit all methods in turn, round after round; see the module for what is left out."""
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, X in zip(("train", "test"), shape.draw(), strict=True):
            np.save(Path(folder) / f"{name}.npy", np.ascontiguousarray(X, np.float32))
        done: set[str] = set()
        for number in range(rounds):
            for method in methods:
                if method in done:
                    continue
                limit = budget.limit(shape, method)
                if not limit and number:
                    continue
                run = one(shape, method, folder, limit)
                runs.append({"data": shape.name, "round": number, "method": method, **run})
                if run["status"] != "ok" or run["clock_s"] > LONG_S:
                    done.add(method)
                if run["status"].startswith("over"):
                    budget.ended.add(method)
                said = f"{run['processor_s']:.2f} s" if run["status"] == "ok" else run["status"]
                print(f"{shape.name}, {METHODS[method].title}: {said}", flush=True)
    return runs


def one(shape: Shape, method: str, folder: str, limit: int) -> dict[str, Any]:
    """Fit one method once, in a process that lives `limit` seconds at most."""
    if not limit:
        return {"status": "not begun: the time was up"}
    sizes = [str(shape.n_components), str(shape.n_active)]
    command = [sys.executable, "-m", "benchmarks.measure", method, *sizes, folder]
    began = time.perf_counter()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"status": f"over {limit} s", "clock_s": time.perf_counter() - began}
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["no message"])[-1]
        return {"status": f"failed: {last}"}
    return {"status": "ok", **json.loads(ran.stdout.splitlines()[-1])}


def summary(
    shape: Shape, methods: Sequence[str], runs: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Medians over rounds, and of the ratios of processor time to PCA in the same round."""
    rows = []
    good = [run for run in runs if run["status"] == "ok"]
    reference = {r["round"]: r["processor_s"] for r in good if r["method"] == REFERENCE}
    for method in methods:
        mine = [run for run in good if run["method"] == method]
        states = [run["status"] for run in runs if run["method"] == method]
        row: dict[str, Any] = {
            "data": shape.name,
            "K": shape.n_components,
            "L": shape.n_active,
            "method": METHODS[method].title,
            "status": states[-1],
            "fits": len(mine),
        }
        for field in FIELDS:
            values = [run[field] for run in mine if run.get(field) is not None]
            row[field] = float(np.median(values)) if values else None
        ratios = [r["processor_s"] / reference[r["round"]] for r in mine if r["round"] in reference]
        row["times_pca"] = float(np.median(ratios)) if ratios else None
        rows.append(row)
    return rows


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows, four digits a number."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})
    print(path.name)


if __name__ == "__main__":
    main()
