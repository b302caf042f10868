"""Nothing under 100 kB keeps a server busy or fills its memory, whichever door it comes by."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from appca.cli import main
from tests.attacks import small_inputs
from tests.attacks.small_inputs import MOST, PATIENCE, TEXTS, hostile_home
from tests.memory import needs_proc

ROOT = Path(__file__).parents[2]


@needs_proc
@pytest.mark.parametrize("doors", ["quick", pytest.param("all", marks=pytest.mark.slow)])
def test_no_small_input_takes_long_or_much(doors):
    """What takes more than 10 s of the processor ends the program; what is allowed takes 1 s.

    The quick ones are texts, requests and messages; all have pages and files of a home, too.
    """
    command = [sys.executable, "-m", small_inputs.__name__, doors]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {rows[-1:]}: {done.stderr[-2000:]}"
    assert len(rows) > 200
    assert [row for row in rows if row["mb"] > 500] == []
    assert max(len(text.encode()) for text in TEXTS.values()) <= MOST < 100_000
    assert PATIENCE == 10


@pytest.mark.thorough  # tests/commands/test_check has each kind of damage
def test_a_check_names_every_damaged_file_of_a_hostile_home_in_a_sentence(tmp_path, capsys):
    written = hostile_home(tmp_path)
    assert main(["check", "--json", "--home", str(tmp_path)]) == 1
    damaged = json.loads(capsys.readouterr().out)["files"]
    folders = {Path(one["file"]).parts[0] for one in damaged}
    assert folders >= {"datasets", "runs", "selections", "numbers", "embeddings", "quality"}
    assert len(damaged) <= len(written)
    assert all(len(json.dumps(one)) < 2000 for one in damaged), "no file is quoted at length"
