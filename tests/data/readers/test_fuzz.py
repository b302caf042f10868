"""Broken files by the hundred: each is read as a sound data set or refused in one sentence.

By default a hundred of each format, and with `-m slow` ten thousand. What hostile files take of
memory and time is measured in `tests/attacks`; broken homes and sessions are met there, too.
"""

import io
import json
import math
import warnings

import numpy as np
import pytest

from appca.data.dataset import DTYPES, Dataset
from appca.data.readers import BY_LIBRARIES, read
from appca.data.readers.process import read_apart
from appca.words import InputError
from tests.data.fuzz_targets import LIMITS, TARGETS, mutant
from tests.sentences import faults_of


def outcome_of(target: str, data: bytes, options: dict) -> tuple[str, str]:
    """Read a file; return "read" or "refused", and what is wrong with that, or nothing."""
    chosen = TARGETS[target]
    options = {
        key: io.BytesIO(value()) if callable(value) else value for key, value in options.items()
    }
    try:
        if chosen.read is not None:
            dataset = chosen.read(data)
        elif target in BY_LIBRARIES:  # which may crash on it, so in a process of its own
            dataset = read_apart([(chosen.name, io.BytesIO(data))], limits=LIMITS, **options)
        else:
            dataset = read(chosen.name, io.BytesIO(data), limits=LIMITS, **options)
    except InputError as error:
        return "refused", faults_of(str(error))
    return "read", broken_invariant(dataset)


def broken_invariant(dataset: Dataset) -> str:
    """Say what a data set must not be; empty for a sound one."""
    n, d = dataset.X.shape
    rules = {
        "two rows and columns": n >= 2 and d >= 2,
        "a known type": dataset.X.dtype in DTYPES,
        "finite": bool(np.isfinite(dataset.X).all()),
        "varying": bool((dataset.X.min(axis=0) != dataset.X.max(axis=0)).any()),
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


@pytest.mark.parametrize("count", [100, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", TARGETS)
def test_a_broken_file_is_read_soundly_or_refused_in_a_sentence(target, count, seed, tmp_path):
    outcomes = {"read": 0, "refused": 0}
    for case in range(count):
        data, options = mutant(target, seed, case)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                outcome, fault = outcome_of(target, data, options)
        except Exception as error:
            error.add_note(f"file {case} of seed {seed}, with {options}")
            raise
        (tmp_path / TARGETS[target].name).write_bytes(data)  # the last one stays where a test fails
        assert not fault, f"file {case} of seed {seed}, with {options}: {fault}"
        outcomes[outcome] += 1
    assert min(outcomes.values()) >= count // 50  # neither rule goes untested


@pytest.mark.parametrize("target", TARGETS)
def test_the_valid_files_are_read(target):
    chosen = TARGETS[target]
    outcomes = [
        outcome_of(target, data, options) for data in chosen.valid() for options in chosen.options
    ]
    assert ("read", "") in outcomes
    assert [fault for _, fault in outcomes if fault] == []


def test_the_same_number_breaks_a_file_in_the_same_way(seed):
    made = [[mutant("csv", seed, case) for case in range(50)] for _ in "ab"]
    assert made[0] == made[1]
    assert len({data for data, _ in made[0]}) > 40
