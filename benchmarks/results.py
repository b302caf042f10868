"""Files of results: the rows a benchmark measured, with the machine and versions they hold for.

Every benchmark writes `results/NAME.json` beside this file, an object of "about" (see `facts`),
"rows" and what else it has to keep.
"""

import argparse
import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg  # noqa: F401  # SciPy has a BLAS of its own, to be seen among the facts
from threadpoolctl import threadpool_info

from appca import __version__
from appca.models.threads import cores

__all__ = ["RESULTS", "Result", "Row", "arguments", "facts", "read", "write"]

RESULTS = Path(__file__).parent / "results"

Row = dict[str, Any]


class Result(NamedTuple):
    """What a benchmark has written."""

    about: Row
    rows: list[Row]


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return a parser of the one option that all benchmarks share, described by a docstring."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write to")
    return parser


def write(folder: Path, name: str, rows: Sequence[Row], **more: Any) -> Path:
    """Write rows as NAME.json, with the facts of today and what else is to be kept."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    found = {"about": facts(), "rows": list(rows), **more}
    path.write_text(json.dumps(found, indent=1, default=_plain) + "\n", encoding="utf-8")
    print(path.name, flush=True)
    return path


def read(folder: Path, name: str) -> Result | None:
    """Return the rows of NAME.json with their facts, or None where there are none."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return Result(found["about"], found["rows"])


def facts() -> Row:
    """Say when, with which versions and on how many cores and threads something is measured."""
    found = {
        (one["internal_api"], one.get("architecture", ""), one["num_threads"])
        for one in threadpool_info()
        if one["user_api"] == "blas"
    }
    names = ("library", "kernel", "threads")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "version": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cores": cores(),
        "blas": [dict(zip(names, one, strict=True)) for one in sorted(found)],
    }


def _plain(value: Any) -> Any:
    """Turn NumPy's numbers and arrays into those of JSON."""
    return value.tolist()
