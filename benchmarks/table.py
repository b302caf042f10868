"""The benchmark table: time, memory, error and held-out likelihood of aPPCA, aFA and others.

`APPCA_DATA=... python -m benchmarks.table [--quick] [--large] [--rounds N] [--methods A,B]
[--data NAME]`

All methods see the same float32 rows. Each fit has a process of its own, which is ended after five
minutes. Methods take turns within a round, so that what else the machine does falls on all of
them; what is compared is processor time, as the median of the ratios to PCA of the same round.
`--quick` takes two small synthetic data sets, `--large` adds the voxel-shaped one (215,302 x 989,
K = 500, L = 200: 0.85 GB and tens of minutes). `--growth` measures instead how the time of an EM
pass of aPPCA grows with N, D, K and L, and fits slopes on logarithmic scales.

Writes results/table.csv and results/table.json beside this file, or results/growth.csv; --quick
writes to results/quick.csv and .json, which are not kept.
"""

import argparse
import csv
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import growth
from benchmarks.methods import METHODS, REFERENCE
from benchmarks.shapes import LARGE, QUICK, STANDARD, Shape

RESULTS = Path(__file__).parent / "results"
LIMIT_S = 300
FIELDS = ["processor_s", "clock_s", "peak_bytes", "peak_over_data", "error", "error_held_out"]
FIELDS += ["held_out_nats"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table")
    parser.add_argument("--quick", action="store_true", help="two small data sets")
    parser.add_argument("--large", action="store_true", help="add 215,302 x 989")
    parser.add_argument("--growth", action="store_true", help="growth with N, D, K, L")
    parser.add_argument("--rounds", type=int, default=3, help="fits of each method")
    parser.add_argument("--methods", default=",".join(METHODS), help="of " + ", ".join(METHODS))
    parser.add_argument("--data", default="", help="only data sets whose name contains this")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write to")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.growth:
        write_csv(given.out / "growth.csv", growth.measured(quick=given.quick))
        return
    methods = [REFERENCE, *(m for m in given.methods.split(",") if m != REFERENCE)]
    if unknown := sorted(set(methods) - set(METHODS)):
        parser.error(f"--methods knows {', '.join(METHODS)}; got {', '.join(unknown)}.")
    shapes = QUICK if given.quick else [*STANDARD, *(LARGE if given.large else [])]
    shapes = [shape for shape in shapes if given.data in shape.name]
    if not shapes:
        parser.error(f"--data must be part of the name of a data set; got {given.data!r}.")
    rows, runs = [], []
    for shape in shapes:
        seen = runs_of(shape, methods, given.rounds)
        runs += seen
        rows += summary(shape, methods, seen)
    name = "quick" if given.quick else "table"
    write_csv(given.out / f"{name}.csv", rows)
    about = {"python": sys.version.split()[0], "machine": platform.machine(), "cores": cores()}
    text = json.dumps({"about": about, "table": rows, "runs": runs}, indent=1)
    (given.out / f"{name}.json").write_text(text + "\n")


def runs_of(shape: Shape, methods: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    """Fit all methods in turn, round after round; one that fails or takes too long is left out."""
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, X in zip(("train", "test"), shape.draw(), strict=True):
            np.save(Path(folder) / f"{name}.npy", np.ascontiguousarray(X, np.float32))
        out: set[str] = set()
        for number in range(rounds):
            for method in methods:
                if method in out:
                    continue
                run = one(shape, method, folder)
                runs.append({"data": shape.name, "round": number, "method": method, **run})
                if run["status"] != "ok":
                    out.add(method)
                said = f"{run['processor_s']:.2f} s" if run["status"] == "ok" else run["status"]
                print(f"{shape.name}, {METHODS[method].title}: {said}", flush=True)
    return runs


def one(shape: Shape, method: str, folder: str) -> dict[str, Any]:
    """Fit one method once, in a process that lives five minutes at most."""
    sizes = [str(shape.n_components), str(shape.n_active)]
    command = [sys.executable, "-m", "benchmarks.measure", method, *sizes, folder]
    began = time.perf_counter()
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"status": f"over {LIMIT_S} s", "clock_s": time.perf_counter() - began}
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


def cores() -> int:
    """Count the processors this process may use."""
    import os

    return os.cpu_count() or 1


if __name__ == "__main__":
    main()
