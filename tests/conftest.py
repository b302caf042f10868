"""Seeds, markers and a private home folder for every test.

Environment: ``APPCA_TEST_SEED`` (a number, a range such as ``0-99``, or ``all`` for 0 to 99;
default 42), ``APPCA_DATA`` (folder of the real files), ``APPCA_REQUIRE_BROWSER`` (``1``: a missing
browser fails its tests instead of skipping them).
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

DEFAULT_SEED = 42
ROOT = Path(__file__).parents[1]

# Two processes read all tests, and hundreds the package: their bytecode is kept, below the cache
# of pytest where the environment forbids it beside the sources.
if sys.dont_write_bytecode:
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # as in `.ci/run`: threads that wait for work burn the cores

HALVES = {  # of the packages that both processes import before their first test
    "gw0": ("pandas", "streamlit.testing.v1", "matplotlib.pyplot", "plotly.graph_objects", "zarr"),
    "gw1": ("numba", "sklearn.mixture", "sklearn.svm", "nibabel", "fontTools.ttLib"),
}
gc.disable()  # until all is imported
for _name in HALVES.get(os.environ.get("PYTEST_XDIST_WORKER", ""), ()):
    importlib.import_module(_name)  # first, so that each compiles one half


def seeds(text: str | None) -> tuple[int, ...]:
    """Seeds named by a text: nothing, ``7``, ``3-5`` or ``all``."""
    if not text:
        return (DEFAULT_SEED,)
    if text == "all":
        return tuple(range(100))
    first, _, last = text.partition("-")
    return tuple(range(int(first), int(last or first) + 1))


SEEDS = seeds(os.environ.get("APPCA_TEST_SEED"))

# The default run is the same every time; asking for seeds also asks Hypothesis for new examples.
settings.register_profile(
    "appca", deadline=None, database=None, derandomize=(DEFAULT_SEED,) == SEEDS
)
settings.load_profile("appca")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every test that takes ``seed`` once for each asked seed."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", SEEDS)


LONG = (  # with few tests for their time; one process compiles, the other first draws pages
    *("browser", "arviz", "tests/ui/test_data.py"),
    *("tests/ui/test_export.py", "tests/ui/test_background.py", "tests/ui/parts/test_pages.py"),
    *("tests/attacks/test_sessions.py", "tests/faults/test_pages.py", "tests/models/test_gibbs.py"),
    *("tests/ui/test_explore.py", "tests/studies/test_experiments.py"),
    *("tests/models/test_supports.py", "tests/analysis/test_compare.py"),
    "tests/commands/test_annotated.py",
)
ARVIZ = (  # whose import takes three seconds
    *("tests/models/test_contract.py", "tests/analysis/test_diagnostics.py"),
    *("tests/docs/test_reference.py", "tests/ui/test_check.py"),
)


def group_of(nodeid: str) -> str:
    """
    Tests that run in one process: those of a file, which share what is costly to make.

    All browser tests are one group, because two browsers drawing at once on two cores are too slow
    to wait for.
    """
    file = nodeid.partition("::")[0]
    together = {"browser": file.startswith("tests/browser/"), "arviz": file in ARVIZ}
    return next((group for group, is_in in together.items() if is_in), file)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Hand out the groups in the order of `pytest_collection_modifyitems`."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False

    class ByGroup(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    return ByGroup(config, log)


def leave_to_the_thorough_run(items: list[pytest.Item]) -> None:
    """Mark the cases that `default_cases` leaves out; those that stay are spread over all."""
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


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what `-m` does not select
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put long groups first, so that no process waits for another in the end."""
    leave_to_the_thorough_run(items)
    sizes = Counter(group_of(item.nodeid) for item in items)

    def place(item: pytest.Item) -> tuple[int, int]:
        group = group_of(item.nodeid)
        return LONG.index(group) if group in LONG else len(LONG), -sizes[group]

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look again at what was imported: a tenth of the pages' time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def real_data_folder() -> Path | None:
    """Return the folder of MNIST and COIL-20, or None when it was not given."""
    folder = os.environ.get("APPCA_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def chromium_path() -> str | None:
    """Return the Chromium to drive, or None when it or Playwright is missing."""
    if importlib.util.find_spec("playwright") is None:
        return None
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what cannot run here, unless it was required."""
    if item.get_closest_marker("real_data") and real_data_folder() is None:
        pytest.skip("needs the real files: set APPCA_DATA to their folder")
    if item.get_closest_marker("browser") and chromium_path() is None:
        reason = "needs the Python package playwright and a Chromium on the PATH"
        if os.environ.get("APPCA_REQUIRE_BROWSER") == "1":
            pytest.fail(f"{reason}, and APPCA_REQUIRE_BROWSER=1 does not allow skipping it")
        pytest.skip(reason)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Folder of the real files; for tests marked ``real_data``."""
    folder = real_data_folder()
    assert folder is not None, "mark the test with real_data"
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of the Chromium; for tests marked ``browser``."""
    path = chromium_path()
    assert path is not None, "mark the test with browser"
    return path


@pytest.fixture(scope="session", autouse=True)
def _home_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep fixtures of modules and sessions out of the user's own runs, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APPCA_HOME", str(tmp_path_factory.mktemp("session_home")))
        yield


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Name a home for each test, counted here: `mktemp` looks at all before it finds a number."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count())


@pytest.fixture(autouse=True)
def appca_home(_home_of_the_session: None, _homes: Iterator[Path], monkeypatch) -> Iterator[Path]:
    """Return an empty APPCA_HOME that belongs to one test; end the workers that it began."""
    folder = next(_homes)
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("APPCA_HOME", str(folder))
    yield folder
    services = sys.modules.get("appca.ui.services")
    for made in [] if services is None else list(services._made):
        if made.jobs.home == folder:
            services._made.remove(made)
            made.jobs.close()
