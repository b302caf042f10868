"""Files made to cost memory, time or other files: what each is answered, and what it takes."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from appca.storage.packed import Packed
from appca.words import InputError
from tests.attacks.hostile_files import COSTLY, HOSTILE, MEGA, packed
from tests.memory import needs_proc
from tests.sentences import faults_of

MOST = 500e6  # bytes that the server and the process that reads take together
LARGEST = 2 * MEGA  # bytes of a hostile file
LINES = Path(__file__).with_name("file_answers.txt").read_text("utf-8").splitlines()
ANSWERS = dict(line.split(": ", 1) for line in LINES)
SIZE = re.compile(r"the most for [\d.]+ [kM]B")  # which depends on who packs a file


def answered(folder, *which):
    """Read hostile files in a process, as the server does, and return what came of each."""
    command = [sys.executable, "-m", "tests.attacks.hostile_files", str(folder), *which]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    return answered(tmp_path_factory.mktemp("hostile"))


@pytest.mark.default_cases(6)
@needs_proc
@pytest.mark.parametrize("name", [one.name for one in HOSTILE])
def test_a_hostile_file_gets_its_sentence_and_little_memory(name, answers):
    found = answers[name]
    assert SIZE.sub("the most for SIZE", found["sentence"]) == ANSWERS[name]
    assert faults_of(found["sentence"]) == ""
    assert found["bytes"] < LARGEST
    assert found["server"] + found["reader"] < MOST


@needs_proc
@pytest.mark.slow
def test_what_fits_just_within_the_limits_takes_little_memory_all_the_same(tmp_path):
    found = answered(tmp_path, "costly")
    assert set(found) == {one.name for one in COSTLY}
    taken = {name: one["server"] + one["reader"] for name, one in found.items()}
    assert {name: n for name, n in taken.items() if n > MOST} == {}
    assert [
        name for name, one in found.items() if one["sentence"] and faults_of(one["sentence"])
    ] == []
    assert max(one["bytes"] for one in found.values()) < LARGEST
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"data/matrix.npy": bytes(70 * MEGA)}, "unpacks to 73 MB, more than 67 MB"),
        ({"session.json": b"[" * 9 * MEGA}, "holds a text of 9,437,184 bytes"),
    ],
)
def test_a_small_session_file_does_not_unpack_to_much(members, words):
    data = packed(members)
    assert len(data) < LARGEST
    with pytest.raises(InputError, match=words) as refused:
        Packed("work.appca", io.BytesIO(data)).json("session.json")
    assert faults_of(str(refused.value), "work.appca") == ""
