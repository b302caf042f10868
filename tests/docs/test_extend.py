"""The sections “add a …” do what they say: their blocks run in a copy of the tree."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"^```\{code-block\} \w+\n:caption: (?P<caption>[^\n]+)\n\n(?P<code>.*?)^```$", re.M | re.S
)
KEPT = ROOT / ".pytest_cache" / "mypy_extend"  # what mypy has learned of NumPy and all others
COPIED = ("appca", "pages", "tests", "sample_data", "app.py", "pyproject.toml", ".streamlit")


class Written(NamedTuple):
    """A block of a page: a new file, or lines for an existing one; or commands."""

    path: str
    after: str | None  # a line of the file; "" for its end
    code: str


def blocks(section: str) -> list[Written]:
    found = []
    text = (ROOT / "docs/extend.md").read_text("utf-8").partition(f"\n## {section}\n")[2]
    for block in BLOCK.finditer(text.partition("\n## ")[0]):
        path, _, place = block["caption"].partition(", ")
        after = "" if place == "at its end" else place.removeprefix("after ").strip("`") or None
        found.append(Written(path, after, block["code"]))
    return found


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, with its compiled kernels, to which each page adds its own."""
    folder = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("*.pyc", "node_modules")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def write(folder: Path, block: Written) -> None:
    file = folder / block.path
    if block.after is None:
        assert not file.exists(), f"{block.path} is there already"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.code, encoding="utf-8")
        return
    text = file.read_text("utf-8")
    if not block.after:
        file.write_text(f"{text}\n\n{block.code}", encoding="utf-8")
        return
    assert text.count(block.after) == 1, f"{block.after!r} must stand once in {block.path}"
    more = block.code.rstrip("\n") if block.code.startswith(",") else "\n" + block.code.rstrip("\n")
    file.write_text(text.replace(block.after, block.after + more), encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["model", "page", "colour", "reader", "rival"])
def test_a_section_that_says_how_to_add_something_adds_it(what, tree):
    commands = []
    for block in blocks(f"Add a {what}"):
        if block.path == "in the folder of the project":
            commands += [line.removeprefix("$ ") for line in block.code.splitlines()]
        else:
            write(tree, block)
    assert commands
    ours = ("PYTEST_", "PYTHONPATH")
    usual = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *words],
            cwd=tree,
            env=usual | {"PYTHONPATH": str(tree), "MYPY_CACHE_DIR": str(KEPT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
