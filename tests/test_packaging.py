"""Tests of the wheel, its requirements, its types, and star imports."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import appca
from appca.data.folders import project_folder
from appca.words import EXTRAS, MissingExtraError, naming_extra

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_version_and_repository_are_the_same_everywhere():
    """Compare with the version in `appca/__init__.py` and the address in `[project.urls]`."""
    citation = (ROOT / "CITATION.cff").read_text()
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "appca/__init__.py"
    assert f"\nversion: {appca.__version__}\n" in citation
    assert f'\n  version: "{appca.__version__}"\n' in (ROOT / "recipe" / "recipe.yaml").read_text()
    address = PROJECT["project"].get("urls", {}).get("Repository")
    stated = re.findall(r"^repository-code: (.*)$", citation, re.MULTILINE)
    assert stated == ([address] if address else [])


def test_the_oldest_and_the_newest_python_and_the_files_of_the_wheel_are_the_same_everywhere():
    named = [
        re.findall(r"^Programming Language :: Python :: (3\.\d+)$", one)
        for one in PROJECT["project"]["classifiers"]
    ]
    (oldest,), *_, (newest,) = named
    assert PROJECT["project"]["requires-python"] == f">={oldest}"
    for page in ("README.md", "docs/get_started.md"):
        assert f"Python {oldest} or newer" in (ROOT / page).read_text(), page
    assert f"python >={oldest}" in (ROOT / "recipe" / "recipe.yaml").read_text()
    assert PROJECT["tool"]["mypy"].get("python_version", oldest) == oldest
    images = re.findall(
        r"^FROM python:(\S+)-slim", (ROOT / "deploy/container/Containerfile").read_text(), re.M
    )
    assert set(images) == {newest}
    inside = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert set(inside) == {"app.py", "pages", "sample_data", ".streamlit/config.toml"}
    for name, place in inside.items():
        assert (ROOT / name).exists()
        assert place == f"appca/_app/{name}"
    assert project_folder() == ROOT


def test_every_package_of_an_extra_is_named_by_one_that_brings_it():
    extras = PROJECT["project"]["optional-dependencies"]
    brought = {
        key: {re.split(r"[\[><]", one)[0] for one in extras[key]}
        for key in ("app", "vae", "mcmc", "anndata", "dask", "notebook", "tables")
    }
    called = {"PIL": "pillow", "umap": "umap-learn", "python_calamine": "python-calamine"}
    called |= {"charset_normalizer": "charset-normalizer"}
    named = {called.get(package, package): extra for package, extra in EXTRAS.items()}
    assert set(named) == set().union(*brought.values())
    assert all(name in brought[extra] for name, extra in named.items())
    with pytest.raises(MissingExtraError, match=r"package arviz.*'appca\[mcmc\]'"), naming_extra():
        raise ModuleNotFoundError(name="arviz.data")
    with pytest.raises(ModuleNotFoundError), naming_extra():
        raise ModuleNotFoundError(name="appca.nowhere")


def test_requirements_are_the_core_and_the_app_also_in_the_conda_recipe():
    project = PROJECT["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["app"]
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert sorted(line.partition(" #")[0].strip() for line in lines if line) == sorted(wanted)
    run = (ROOT / "recipe" / "recipe.yaml").read_text().split("  run:\n")[1].split("\n\n")[0]
    stated = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert stated == {"python>=3.11", *project["dependencies"]}


ABSENT = """
import sys

class Absent:  # as if they were not installed
    def find_spec(name, *_):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
import numpy as np, appca
from appca import *
assert all(hasattr(appca, name) for name in appca.__all__)
assert not hasattr(appca, "pandas")
X = np.random.default_rng(0).normal(size=(60, 5))
model = appca.AdaptivePPCA(n_components=3, n_active=1, random_state=0).fit(X)
model.transform(X), model.score_samples(X), appca.load_model
try:
    explore(PPCA(), [[1.0]])
except ImportError as error:
    print(error)
from appca.cli import main
sys.exit(main(["data", "wine", "--columns"]) or main(["fit", "nothing.csv"]))
"""


def run(command: list[str | Path], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MYPYPATH": str(ROOT), "PYTHONPATH": str(ROOT)} | more
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_estimators_need_none_of_the_extras_and_the_rest_says_which_it_needs(tmp_path):
    (tmp_path / "nothing.csv").write_text("a,b\n1,2\n3,4\n5,7\n")
    done = run([sys.executable, "-c", ABSENT.format(names=sorted(EXTRAS))], tmp_path)
    assert "Traceback" not in done.stderr, done.stderr
    assert {*appca.__all__, "__version__"} <= set(dir(appca))
    assert "pip install 'appca[notebook]'" in done.stdout
    assert "pip install 'appca[tables]'" in done.stderr


KEPT = ROOT / ".pytest_cache" / "mypy_types"  # mypy's cache of NumPy and the package
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
