"""Files of results: measurements, with the machine and the versions.

Every benchmark writes `results/NAME.json` next to this file, an object with "about" and "rows".
"""

import argparse
import json
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg  # noqa: F401  # loads SciPy's BLAS, which `facts` reports
from threadpoolctl import threadpool_info

from appca import __version__
from appca.models.threads import cores

RESULTS = Path(__file__).parent / "results"

Row = dict[str, Any]


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option of all benchmarks, described by a docstring."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write to")
    return parser


def write(folder: Path, name: str, rows: Sequence[Row]) -> None:
    """Write rows as NAME.json with the current facts."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"about": facts(), "rows": rows}, indent=1, default=lambda one: one.tolist())
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name}.json", flush=True)


def facts() -> Row:
    """Return the date, commit, versions, cores and BLAS threads of a measurement."""
    blas = {
        (one["internal_api"], one.get("architecture", ""), one["num_threads"])
        for one in threadpool_info()
        if one["user_api"] == "blas"
    }
    names = ("library", "kernel", "threads")
    commit = ["git", "rev-parse", "--short=8", "HEAD"]
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": subprocess.check_output(commit, cwd=RESULTS, text=True).strip(),
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cores": cores(),
        "blas": [dict(zip(names, one, strict=True)) for one in sorted(blas)],
    }
