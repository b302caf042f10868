"""Nothing under 100 kB keeps a server busy or fills its memory, whichever door it comes by."""

import json
import subprocess
import sys
from pathlib import Path

from tests.attacks import small_inputs
from tests.attacks.small_inputs import MOST, PATIENCE, TEXTS
from tests.memory import needs_proc

ROOT = Path(__file__).parents[2]


@needs_proc
def test_no_small_input_takes_long_or_much():
    """What takes more than 10 s of the processor ends the program; what is allowed takes 1 s."""
    command = [sys.executable, "-m", small_inputs.__name__]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {rows[-1:]}: {done.stderr[-2000:]}"
    assert len(rows) > 200
    assert [row for row in rows if row["mb"] > 500] == []
    assert max(len(text.encode()) for text in TEXTS.values()) <= MOST < 100_000
    assert PATIENCE == 10
