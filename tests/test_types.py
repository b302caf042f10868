"""What a type checker, a completion and a star import see of the package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import appca
from appca.words import EXTRAS

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".pytest_cache" / "mypy_types"  # what mypy has learned of NumPy and the package
SOUND = """
from typing import Any, assert_type

import numpy as np

import appca
from appca import PPCA, AdaptivePPCA, load_model

X = np.zeros((60, 5))
model = AdaptivePPCA(n_components=3, n_active=1, random_state=0).fit(X)
assert_type(model, AdaptivePPCA)
assert_type(model.score(X), float)
assert_type(appca.PPCA(2), PPCA)
appca.plot_map(model, X, dark=True).savefig("map.png")
load_model("model.npz").transform(X)
"""
WRONG = ("appca.AdaptivePCA", "appca.plot_map(model)", "appca.load_model(3)")


def run(command: list[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def mypy(folder: Path) -> list[str]:
    pytest.importorskip("mypy")
    done = run([sys.executable, "-m", "mypy", "--cache-dir", KEPT, "use.py"], folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def pyright(folder: Path) -> list[str]:
    program = shutil.which("pyright")
    if program is None:
        pytest.skip("pyright is not installed")
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    done = run([program, "--pythonpath", sys.executable, "--outputjson", "use.py"], folder)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return [f"{one['range']['start']['line']}: {one['message']}" for one in found]


@pytest.mark.parametrize("checker", [pytest.param(mypy, marks=pytest.mark.thorough), pyright])
def test_a_type_checker_knows_the_public_names(tmp_path, checker):
    (tmp_path / "use.py").write_text(SOUND)
    assert checker(tmp_path) == []
    (tmp_path / "use.py").write_text(SOUND + "\n".join(WRONG))
    assert len(checker(tmp_path)) == len(WRONG)


def test_completion_lists_the_public_names():
    assert set(appca.__all__) <= set(dir(appca))
    assert "__version__" in dir(appca)


WITHOUT_EXTRAS = """
import sys

class Absent:
    def find_spec(name, *_):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
import appca
from appca import *
assert all(hasattr(appca, name) for name in appca.__all__)
assert not hasattr(appca, "pandas")
try:
    explore(PPCA(), [[1.0]])
except ImportError as error:
    print(error)
"""


def test_all_names_are_there_without_extras_and_say_which_they_need(tmp_path):
    done = run([sys.executable, "-c", WITHOUT_EXTRAS.format(names=sorted(EXTRAS))], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pip install 'appca[notebook]'" in done.stdout
