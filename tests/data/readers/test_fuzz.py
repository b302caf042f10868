"""Broken files by the hundred: each is read as a sound data set or refused in one sentence.

By default a hundred of each format, three hundred in CI, and with `-m slow` ten thousand.

A format's files are read in a process of their own that has little memory and, for each file, ten
seconds of computing; one that dies or hangs fails the test with the number of the file, which
``python -m tests.data.fuzz_worker FORMAT SEED NUMBER 1 FOLDER`` makes again.
"""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.data.fuzz_targets import TARGETS
from tests.data.fuzz_worker import judged
from tests.data.mutations import mutated

ROOT = Path(__file__).parents[3]
SLOW_COUNT = 10_000
# By the reader of another target ("csv" and the gzip of "idx"; "matrix.npy" twice; "session" three
# times), or by a library of others' whose reader takes seconds.
ALIKE = {"tsv.gz", "ids.npy", "label_0.npy", "config.json", "meta.json", "arrays.npz", "nii"}


def outcomes_of(target: str, seed: int, count: int, folder: Path, *program: str) -> dict[str, int]:
    """Read so many broken files; return how many were read and how many refused."""
    arguments = [target, str(seed), "0", str(count), str(folder)]
    done = subprocess.run(
        [sys.executable, *(program or ("-m", "tests.data.fuzz_worker")), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    fault = folder / "fault.json"
    told = fault.read_text("utf-8") if fault.exists() else done.stderr[-3000:]
    case = (folder / "case").read_text().strip() if (folder / "case").exists() else "none"
    assert done.returncode == 0, (
        f"{target}: file {case} of seed {seed} ended the process ({done.returncode}); "
        f"it is kept in {folder}: {told}"
    )
    printed = [line for line in done.stderr.splitlines() if "TIFF" not in line]  # libtiff's own
    assert printed == []
    return json.loads((folder / "outcomes.json").read_text("utf-8"))


@pytest.mark.default_cases(3)
@pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "target",
    [pytest.param(one, marks=[pytest.mark.thorough] * (one in ALIKE)) for one in TARGETS],
)
def test_a_broken_file_is_read_soundly_or_refused_in_a_sentence(target, count, seed, tmp_path):
    outcomes = outcomes_of(target, seed, count, tmp_path)
    assert sum(outcomes.values()) == count
    assert min(outcomes["read"], outcomes["refused"]) >= count // 50  # neither rule goes untested


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_many_times_as_many_broken_files_are_read_or_refused(target, seed, tmp_path):
    outcomes = outcomes_of(target, seed + 1, SLOW_COUNT, tmp_path)
    assert sum(outcomes.values()) == SLOW_COUNT


@pytest.mark.parametrize("target", TARGETS)
def test_the_valid_files_are_read(target):
    chosen = TARGETS[target]
    outcomes = [
        judged(target, data, options) for data in chosen.valid() for options in chosen.options
    ]
    assert ("read", "") in outcomes
    assert [fault for _, fault in outcomes if fault] == []


def test_the_same_number_breaks_a_file_in_the_same_way(seed):
    files = TARGETS["csv"].valid()
    made = [
        [mutated(files[1], files, Random(f"{seed} {i}"), text=True) for i in range(50)]
        for _ in "ab"
    ]
    assert [one.data for one in made[0]] == [one.data for one in made[1]]
    assert len({one.data for one in made[0]}) > 40


@pytest.mark.default_cases(2)
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise KeyError('no sentence')", "KeyError"),
        ("raise InputError('no period; none')", "ends without a period"),
        ("bytearray(2 << 30)", "MemoryError"),
        ("while True: pass", "(-24)"),  # the signal for too much computing
    ],
)
def test_a_reader_with_a_fault_is_found_out(body, words, tmp_path):
    """The net itself is tested: a reader that raises, tells badly, fills memory or hangs."""
    with pytest.raises(AssertionError, match="file 0 of seed 0 ended the process") as caught:
        outcomes_of("npy", 0, 3, tmp_path, "-c", FAULTY.format(body=body))
    assert words in str(caught.value)


FAULTY = """
import sys
from appca.words.errors import InputError
from tests.data import fuzz_worker

def read(*arguments, **options):
    {body}

fuzz_worker.read, fuzz_worker.SECONDS = read, 1
fuzz_worker.warm_up = lambda target: None
sys.exit(fuzz_worker.main())
"""
