"""Seeds, markers, and a private home folder for every test.

Environment: ``APPCA_TEST_SEED`` (a number, a range such as ``0-99``, or ``all`` for 0 to 99;
default 42), ``APPCA_DATA`` (folder of MNIST and COIL-20), ``APPCA_REQUIRE_BROWSER`` (``1``: without
a browser, its tests fail instead of being skipped).
"""

import gc
import importlib
import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings

DEFAULT_SEED, ROOT = 42, Path(__file__).parents[1]

# Two processes import all tests, and hundreds of child processes the package, so bytecode is cached
# in pytest's folder if the environment forbids it next to the sources.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # as in `.ci/run`: waiting threads use the cores

HALVES = {  # packages that each process imports, and so compiles, first
    "gw0": ("pandas", "streamlit.testing.v1", "matplotlib.pyplot", "plotly.graph_objects", "zarr"),
    "gw1": ("numba", "sklearn.mixture", "sklearn.svm", "nibabel", "fontTools.ttLib"),
}
gc.disable()  # until all modules are imported
for _name in HALVES.get(os.environ.get("PYTEST_XDIST_WORKER", ""), ()):
    importlib.import_module(_name)


def seeds(text: str | None) -> tuple[int, ...]:
    """Return the seeds for a text: nothing, ``7``, ``3-5`` or ``all``."""
    if not text:
        return (DEFAULT_SEED,)
    if text == "all":
        return tuple(range(100))
    first, _, last = text.partition("-")
    return tuple(range(int(first), int(last or first) + 1))


SEEDS = seeds(os.environ.get("APPCA_TEST_SEED"))

# The default run is deterministic; with given seeds, Hypothesis draws new examples.
settings.register_profile(
    "appca", deadline=None, database=None, derandomize=(DEFAULT_SEED,) == SEEDS
)
settings.load_profile("appca")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test with an argument ``seed`` once per seed."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", SEEDS)


LONG = (  # slow groups; one process starts with compiled code, the other with pages
    *("browser", "arviz", "tests/ui/test_data.py"),
    *("tests/ui/test_export.py", "tests/ui/test_background.py", "tests/ui/parts/test_pages.py"),
    *("tests/attacks/test_sessions.py", "tests/faults/test_pages.py", "tests/models/test_gibbs.py"),
    *("tests/ui/test_explore.py", "tests/studies/test_experiments.py"),
    *("tests/models/test_supports.py", "tests/analysis/test_compare.py"),
    "tests/commands/test_annotated.py",
)
ARVIZ = (  # tests that import ArviZ, which takes three seconds
    *("tests/models/test_contract.py", "tests/analysis/test_diagnostics.py"),
    *("tests/docs/test_reference.py", "tests/ui/test_check.py"),
)


def group_of(nodeid: str) -> str:
    """
    Return the group of a test, which runs in one process: its file, with shared fixtures.

    All browser tests are one group, because two browsers at once are too slow on two cores.
    """
    file = nodeid.partition("::")[0]
    together = {"browser": file.startswith("tests/browser/"), "arviz": file in ARVIZ}
    return next((group for group, is_in in together.items() if is_in), file)


@pytest.hookimpl(optionalhook=True)  # a hook of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Schedule the groups in the order of `pytest_collection_modifyitems`."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)


def leave_to_the_thorough_run(items: list[pytest.Item]) -> None:
    """Mark the cases that `default_cases` omits; the remaining cases are evenly spaced."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if "default_cases" in marks and not marks & {"thorough", "slow"}:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for alike in cases.values():
        kept = alike[0].get_closest_marker("default_cases").args[0]
        step = max(len(alike) / kept, 1)
        spread = {int(step * i) for i in range(kept)}
        for i, item in enumerate(alike):
            if i not in spread:
                item.add_marker(pytest.mark.thorough)


@pytest.hookimpl(tryfirst=True)  # before pytest applies `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long groups first, so that all processes end at about the same time."""
    leave_to_the_thorough_run(items)
    sizes = Counter(group_of(item.nodeid) for item in items)

    def place(item: pytest.Item) -> tuple[int, int]:
        group = group_of(item.nodeid)
        return LONG.index(group) if group in LONG else len(LONG), -sizes[group]

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Exclude imported modules from garbage collection, which took a tenth of the pages' time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def real_data_folder() -> Path | None:
    """Return the folder of MNIST and COIL-20, or None if it is not set."""
    folder = os.environ.get("APPCA_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def chromium_path() -> str | None:
    """Return the path of Chromium, or None if it or Playwright is missing."""
    if importlib.util.find_spec("playwright") is None:
        return None
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that cannot run here, unless they are required."""
    if item.get_closest_marker("real_data") and real_data_folder() is None:
        pytest.skip("needs the real files: set APPCA_DATA to their folder")
    if item.get_closest_marker("browser") and chromium_path() is None:
        reason = "needs the Python package playwright and a Chromium on the PATH"
        if os.environ.get("APPCA_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, and APPCA_REQUIRE_BROWSER=1 does not allow skipping it")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of MNIST and COIL-20; for tests marked ``real_data``."""
    folder = real_data_folder()
    assert folder is not None, "mark the test with real_data"
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of Chromium; for tests marked ``browser``."""
    path = chromium_path()
    assert path is not None, "mark the test with browser"
    return path


@pytest.fixture(scope="session", autouse=True)
def _home_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Protect the user's home from fixtures of modules and sessions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APPCA_HOME", str(tmp_path_factory.mktemp("session_home")))
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield numbered homes; `mktemp` is slow, because it lists all existing folders."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def appca_home(_home_of_the_session: None, _homes: Iterator[Path], monkeypatch) -> Iterator[Path]:
    """Return an empty APPCA_HOME for one test, and end its workers afterwards."""
    folder = next(_homes)
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("APPCA_HOME", str(folder))
    yield folder
    services = sys.modules.get("appca.ui.services")
    for made in [] if services is None else list(services._made):
        if made.jobs.home == folder:
            services._made.remove(made)
            made.jobs.close()
