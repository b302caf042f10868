"""
Read broken files in a process with little memory, and stop at the first wrong answer.

``python -m tests.data.fuzz_worker FORMAT SEED FIRST COUNT FOLDER``: the folder receives ``case``
(the number of the file that is being read), and, if one is read wrongly, the file itself and
``fault.json`` with its recipe.
"""

import io
import json
import math
import resource
import sys
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from appca.data.dataset import DTYPES, Dataset
from appca.data.readers import BY_LIBRARIES, read
from appca.data.readers.process import read_apart
from appca.words.errors import InputError
from tests.data.fuzz_targets import LIMITS, TARGETS, mutant
from tests.sentences import faults_of

MEMORY = 640 << 20  # bytes beyond what the process has when it begins
SECONDS = 10  # of computing that one file may take: the small ones take milliseconds


def main() -> int:
    target, seed, first, count, folder = sys.argv[1:]
    place = Path(folder)
    warm_up(target)
    _bound_memory()
    outcomes: Counter[str] = Counter()
    with (place / "case").open("w") as progress:
        for case in range(int(first), int(first) + int(count)):
            progress.seek(0)
            progress.write(f"{case:9d}")
            progress.flush()
            _bound_seconds()
            made, options = mutant(target, int(seed), case)
            outcome, fault = judged(target, made.data, options)
            outcomes[outcome] += 1
            if fault:
                (place / f"{case}-{TARGETS[target].name}").write_bytes(made.data)
                recipe = {"case": case, "options": str(options), "fault": fault}
                recipe["recipe"] = list(map(str, made.recipe))
                (place / "fault.json").write_text(json.dumps(recipe, indent=1), "utf-8")
                return 1
    (place / "outcomes.json").write_text(json.dumps(outcomes), "utf-8")
    return 0


def judged(target: str, data: bytes, options: dict) -> tuple[str, str]:
    """Read a file; return "read" or "refused", and what is wrong with that, or nothing."""
    chosen = TARGETS[target]
    options = {
        key: io.BytesIO(value()) if callable(value) else value for key, value in options.items()
    }
    try:
        if chosen.read is not None:
            dataset = chosen.read(data)
        else:
            dataset = _read(target, chosen.name, data, options)
    except InputError as error:
        chain, cause = [], error
        while cause is not None:
            chain.append(cause)
            cause = cause.__cause__ or cause.__context__
        if any(isinstance(cause, MemoryError) for cause in chain):
            return "refused", f"memory ran out: {''.join(traceback.format_exception(error))}"
        return "refused", faults_of(str(error))
    except Exception:
        return "refused", traceback.format_exc()
    try:
        return "read", broken_invariant(dataset, finite=not chosen.trusted)
    except Exception:
        return "read", traceback.format_exc()


def _read(target: str, name: str, data: bytes, options: dict) -> Dataset:
    """Read as the app and the command line do: what a library may crash on, in a process apart."""
    if target in BY_LIBRARIES:
        return read_apart([(name, io.BytesIO(data))], limits=LIMITS, **options)
    return read(name, io.BytesIO(data), limits=LIMITS, **options)


def broken_invariant(dataset: Dataset, *, finite: bool) -> str:
    """Say what a data set must not be; empty for a sound one."""
    n, d = dataset.X.shape
    rules = {
        "two rows and columns": n >= 2 and d >= 2,
        "a known type": dataset.X.dtype in DTYPES,
        "finite": not finite or bool(np.isfinite(dataset.X).all()),
        "varying": not finite or bool((dataset.X.min(axis=0) != dataset.X.max(axis=0)).any()),
        "read-only": not dataset.X.flags.writeable,
        "ids": dataset.ids.shape == (n,) and len(set(dataset.ids.tolist())) == n,
        "labels": all(column.shape == (n,) for column in dataset.labels.values()),
        "names": dataset.feature_names is None or len(set(dataset.feature_names)) == d,
        "a shape": dataset.image_shape is None or math.prod(dataset.image_shape) == d,
        "a digest": len(dataset.digest) == 64,
        "a class": dataset.class_column is None or len(dataset.class_column[1]) == n,
        "a report": dataset.provenance.get("report", {"rows": n})["rows"] >= n,
        "images": dataset.image_shape is None or dataset.image(0).dtype == np.uint8,
    }
    # what the store writes beside the matrix
    texts = [dataset.name, dataset.provenance, dataset.feature_names, list(dataset.labels)]
    json.dumps(texts, ensure_ascii=False).encode()
    return ", ".join(rule for rule, holds in rules.items() if not holds)


def warm_up(target: str) -> None:
    """Import all that reading takes, so that only the files count."""
    warnings.simplefilter("error")
    for data in TARGETS[target].valid():
        for options in TARGETS[target].options:
            judged(target, data, options)


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _bound_seconds() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


if __name__ == "__main__":
    sys.exit(main())
