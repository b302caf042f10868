"""The canvas's JavaScript: its logic under node, its types, and what no script may do."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from appca.canvas.image_placement import spread_order

HERE = Path(__file__).parent
APPCA = Path(__file__).parents[2] / "appca"
CANVAS = APPCA / "canvas" / "js"
NODE, TSC = shutil.which("node"), shutil.which("tsc")
SCRIPTS = sorted([*CANVAS.rglob("*.js"), *(APPCA / "ui" / "canvas").glob("*.js")])


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_logic_under_node():
    known = os.environ | {"SPREAD": json.dumps(spread_order(1000).tolist())}  # as Python has it
    command = [NODE, "--test", "--test-reporter=tap", *sorted(HERE.glob("canvas_*.test.js"))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=known
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 23


@pytest.mark.slow
@pytest.mark.skipif(TSC is None, reason="tsc is not installed: npm install --global typescript@5")
def test_the_types():
    done = subprocess.run([TSC, "-p", CANVAS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_script_sets_markup_or_reaches_out():
    """One module alone fetches, what the page's own server offers."""
    for file in SCRIPTS:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        reaching = () if file.name == "host.js" else ("fetch(",)
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", "http", *reaching):
            assert word not in text, f"{file.name} has {word}"


def test_no_script_is_too_long_to_read():
    assert {file.name for file in SCRIPTS if file.read_text().count("\n") > 900} == set()
