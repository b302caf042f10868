"""The canvas's JavaScript: its logic under node, and how long it is."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from appca.canvas.image_placement import spread_order

HERE = Path(__file__).parent
NODE = shutil.which("node")
SCRIPTS = (HERE.parents[1] / "appca").rglob("*.js")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_logic_under_node():
    known = os.environ | {"SPREAD": json.dumps(spread_order(1000).tolist())}  # as Python has it
    command = [NODE, "--test", "--test-reporter=tap", *sorted(HERE.glob("canvas_*.test.js"))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=known
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 23


def test_no_script_is_too_long_to_read():
    assert {file.name for file in SCRIPTS if file.read_text().count("\n") > 900} == set()
