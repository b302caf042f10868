"""The rules of who may import what, read off the syntax tree of every file."""

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import house
from tests.house import Import, imports

ROOT = Path(__file__).resolve().parents[1]

# part of the package -> parts it may import besides itself and words; arrows never go back
MAY_IMPORT = {
    "words": set(),
    "storage": set(),
    "frames": set(),
    "models": {"storage", "frames"},
    "processes": set(),
    "data": {"storage", "processes", "frames"},
    "analysis": {"storage", "frames", "models", "data", "rivals"},
    "rivals": {"models"},
    "plots": {"storage", "data", "analysis"},
    "studies": {"storage", "processes", "models", "data", "analysis", "plots"},
    "runs": {"storage", "models", "data", "analysis"},
    "jobs": {"storage", "processes", "models", "data", "analysis", "studies", "runs"},
    "canvas": {"storage", "frames", "models", "data", "analysis", "plots", "runs"},
    "tl": {"frames", "models", "data", "analysis"},
    "ui": {
        "storage",
        "processes",
        "frames",
        "models",
        "data",
        "analysis",
        "plots",
        "studies",
        "runs",
    }
    | {"jobs", "canvas"},
    "commands": {"storage", "processes", "models", "data", "analysis", "plots", "studies"}
    | {"runs", "canvas"},
    "cli": {"storage", "data", "commands"},
    "__main__": {"storage", "cli"},
    "pages": {"storage", "models", "data", "analysis", "plots", "studies", "runs", "jobs", "ui"},
    "__init__": {
        "storage",
        "models",
        "analysis",
        "runs",
        "canvas",
        "tl",
        "commands",
    },  # when a name is asked for
}
STREAMLIT = {"ui", "pages"}
HEAVY = {"sklearn", "scipy", "numba", "umap", "pandas", "pymanopt", "arviz", "jax", "optax"}
HEAVY |= {"nibabel", "nilearn", "dask", "distributed"}
# compiled kernels import numba at their top, and are themselves imported inside functions only
KERNELS_END_IN = "_kernels"  # compiled modules, which may import one another
NOWHERE = {
    "pickle": "files are read without pickle",
    "joblib": "files are read without pickle",
    "multiprocessing": "its children would run the page's script again",
}
ONLY_IN = {  # the one file that may
    "umap": "appca/analysis/umap.py",
    "pymanopt": "appca/models/stiefel.py",
    "jax": "appca/studies/digits.py",
    "optax": "appca/studies/digits.py",
}
# how files come into their places, and who may change them, is decided in one part alone
WRITER = "storage"
MOVES = {"os.replace", "os.rename", "os.renames", "os.link", "os.fsync", "shutil.move"}
MOVES |= {f"tempfile.{name}" for name in ("mkstemp", "mkdtemp", "NamedTemporaryFile")}
FORBIDDEN_KEYWORDS = {"unsafe_allow_html", "allow_pickle"}  # with the value True
MOST_LINES = 900
NAMES_OF_NOTHING = {"found", "one", "own", "known", "given"}


def part_of(path: str) -> str:
    """Part of the package a file belongs to; "pages" for all that Streamlit runs."""
    first, _, rest = path.partition("/")
    return rest.split("/")[0].removesuffix(".py") if first == "appca" else "pages"


def is_kernel(module: str) -> bool:
    return module.endswith(KERNELS_END_IN)


def offences(path: str, source: str) -> list[str]:
    """Broken rules of one file, as sentences."""
    tree, part = ast.parse(source), part_of(path)
    broken = [
        f"line {line.line}: {sentence}"
        for line in imports(tree)
        for sentence in (*_of_own_parts(line, path, part), *_of_packages(line, path, part))
    ]
    broken += [
        f"line {node.value.lineno}: {node.arg} must not be switched on"
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword)
        and node.arg in FORBIDDEN_KEYWORDS
        and ast.unparse(node.value) != "False"
    ]
    broken += [
        f"line {node.lineno}: “{name}” names nothing; say what it is"
        for node in ast.walk(tree)
        if (name := _named(node)) in NAMES_OF_NOTHING
    ]
    if part != WRITER:
        broken += [
            f"line {node.lineno}: {ast.unparse(node.func)} is for appca.{WRITER}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and _moves(node)
        ]
    if source.count("\n") > MOST_LINES:
        broken.append(f"{source.count(chr(10))} lines are more than {MOST_LINES}: split the file")
    return [f"{path}, {sentence}" for sentence in broken]


def _named(node: ast.AST) -> str | None:
    """Return the name that a node gives to something, if it does."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return node.arg
    return node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else None


def _moves(call: ast.Call) -> bool:
    """Whether a call moves a file; `Path.replace` takes one argument, `str.replace` two."""
    alone = len(call.args) == 1 and not call.keywords
    method = isinstance(call.func, ast.Attribute) and call.func.attr in {"replace", "rename"}
    return (method and alone) or ast.unparse(call.func) in MOVES


def _of_own_parts(line: Import, path: str, part: str) -> Iterator[str]:
    if line.module.startswith("."):
        yield "a relative import; write the whole name"
    if line.module.split(".")[0] != "appca":
        return
    modules = {line.module, *(f"{line.module}.{name}" for name in line.names)}
    light = line.module == "appca.models.settings"
    targets = {module.split(".")[1] for module in modules if "." in module} & set(MAY_IMPORT)
    for target in sorted(targets - {part, "words"}):
        if target not in MAY_IMPORT[part]:
            yield f"{part} must not import appca.{target}"
        elif target == "models" and not (line.late or light or is_kernel(_module_of(path))):
            yield "appca.models brings scikit-learn; import it inside the function that needs it"
    for kernel in sorted(filter(is_kernel, modules)):
        if not line.late and not is_kernel(_module_of(path)):
            yield f"{kernel} brings numba; import it inside the function that needs it"


def _module_of(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _of_packages(line: Import, path: str, part: str) -> Iterator[str]:
    package = line.module.split(".")[0]
    kernel = is_kernel(_module_of(path))
    allowed_early = {"sklearn", "scipy"} if part in ("models", "rivals") else set()
    if package == "streamlit" and part not in STREAMLIT:
        yield f"{part} must not import Streamlit"
    if package in HEAVY - allowed_early and not line.late and not (kernel and package == "numba"):
        yield f"{package} takes long to import; do it inside the function that needs it"
    if package in NOWHERE:
        yield f"{package} is not to be used: {NOWHERE[package]}"
    if package == "fcntl" and part != WRITER:
        yield f"locks are for appca.{WRITER}"
    if package in ONLY_IN and path != ONLY_IN[package]:
        yield f"{package} belongs into {ONLY_IN[package]}"
    private = any(name.startswith("_") for name in (*line.module.split("."), *line.names))
    if package == "sklearn" and private:
        yield "scikit-learn's private names change without notice; do without them"


def project_files() -> list[Path]:
    folders = (ROOT / "appca", ROOT / "pages", ROOT / "sample_data")
    return [ROOT / "app.py", *(path for folder in folders for path in sorted(folder.rglob("*.py")))]


def test_every_file_keeps_the_layers():
    files = project_files()
    found = [
        sentence
        for path in files
        for sentence in offences(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)
    assert {part_of(path.relative_to(ROOT).as_posix()) for path in files} == set(MAY_IMPORT)


@pytest.mark.parametrize(
    ("path", "source", "words"),
    [
        ("appca/models/a.py", "from appca.data.dataset import Dataset", "models must not import"),
        ("appca/models/a.py", "def f():\n    import appca.runs.fit", "models must not import"),
        ("appca/models/a.py", "import streamlit as st", "must not import Streamlit"),
        ("appca/words/a.py", "from appca.storage import atomic", "words must not import"),
        ("appca/models/a.py", "import numba", "numba takes long"),
        ("appca/models/a.py", "from appca.models import polynomial_kernels", "brings numba"),
        (
            "appca/models/a.py",
            "from appca.models.gibbs_kernels import pick",
            "brings numba",
        ),
        ("appca/storage/a.py", "from appca.data.dataset import Dataset", "storage must not import"),
        ("appca/data/a.py", "from appca import analysis", "data must not import appca.analysis"),
        ("appca/data/a.py", "from sklearn.datasets import load_digits", "sklearn takes long"),
        ("appca/analysis/a.py", "from appca.runs.home import home", "analysis must not import"),
        ("appca/analysis/a.py", "def f():\n    import umap", "umap belongs into"),
        ("appca/plots/a.py", "def f():\n    import appca.models.ppca", "plots must not import"),
        ("appca/plots/a.py", "from appca.ui import state", "plots must not import appca.ui"),
        ("appca/plots/a.py", "from appca.studies import store", "plots must not import"),
        ("appca/canvas/a.py", "from appca.ui import session", "canvas must not import appca.ui"),
        ("appca/canvas/a.py", "def f():\n    import streamlit", "must not import Streamlit"),
        ("appca/studies/a.py", "from appca.runs.home import home", "studies must not import"),
        ("appca/studies/a.py", "import appca.models.ppca", "brings scikit-learn"),
        ("appca/runs/a.py", "import appca.models.ppca", "brings scikit-learn"),
        ("appca/runs/a.py", "from . import store", "relative import"),
        ("appca/runs/a.py", "import multiprocessing.pool", "run the page's script again"),
        ("appca/runs/a.py", "import pickle", "without pickle"),
        ("appca/runs/a.py", "np.load(f, allow_pickle=True)", "allow_pickle must not"),
        ("appca/ui/a.py", "from appca.cli import main", "ui must not import appca.cli"),
        ("appca/ui/a.py", "class A:\n    import pandas", "pandas takes long"),
        ("appca/ui/a.py", "st.html(x, unsafe_allow_html=flag)", "unsafe_allow_html must not"),
        ("appca/models/a.py", "from sklearn.utils._tags import T", "private names change"),
        ("pages/data/a.py", "from appca.models.ppca import PPCA", "brings scikit-learn"),
        ("pages/data/a.py", "from appca.cli import main", "pages must not import appca.cli"),
        ("app.py", "import scipy.linalg", "scipy takes long"),
        ("appca/cli.py", "import streamlit", "must not import Streamlit"),
        ("appca/runs/a.py", "draft.replace(path)", "draft.replace is for appca.storage"),
        ("appca/data/a.py", "folder.rename(other / 'a')", "is for appca.storage"),
        ("appca/ui/a.py", "os.replace(a, b)", "os.replace is for appca.storage"),
        ("appca/studies/a.py", "os.fsync(file.fileno())", "is for appca.storage"),
        ("appca/analysis/a.py", "tempfile.NamedTemporaryFile()", "is for appca.storage"),
        ("appca/runs/a.py", "import fcntl", "locks are for appca.storage"),
        ("appca/runs/a.py", "x = 1\n" * 901, "split the file"),
        ("appca/runs/a.py", "for one in rows: pass", "names nothing"),
        ("appca/runs/a.py", "def found(): pass", "names nothing"),
        ("appca/runs/a.py", "def f(given): pass", "names nothing"),
    ],
)
def test_an_offending_file_is_rejected(path, source, words):
    found = offences(path, source)
    assert len(found) == 1, found
    assert words in found[0]
    assert found[0].startswith(path)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("appca/runs/a.py", "def f():\n    from appca.models.ppca import PPCA"),
        ("appca/runs/a.py", "if TYPE_CHECKING:\n    import pandas as pd"),
        ("appca/runs/a.py", "from appca.models.settings import MODELS"),
        ("appca/models/a.py", "import scipy.linalg\nfrom sklearn.base import BaseEstimator"),
        ("appca/models/polynomial_kernels.py", "import numba"),
        ("appca/models/a_kernels.py", "from appca.models.numeric_kernels import kernel"),
        ("appca/analysis/a_kernels.py", "from appca.models.numeric_kernels import kernel"),
        ("appca/analysis/umap.py", "def f():\n    from umap import UMAP"),
        ("appca/runs/a.py", "np.load(f, allow_pickle=False)"),
        ("appca/storage/a.py", "import fcntl\nos.fsync(1)\ndraft.replace(path)"),
        ("appca/runs/a.py", "a.replace('x', 'y')\nt.rename(columns=c)\nreplace(config, seed=1)"),
        ("pages/data/a.py", "import streamlit as st\nfrom appca.ui import state"),
    ],
)
def test_what_the_rules_allow_is_accepted(path, source):
    assert offences(path, source) == []


def sources(*folders: str) -> dict[str, str]:
    """Every module below folders of the project by its path, with its text."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def test_every_folder_says_what_it_holds():
    assert not house.unexplained(sources("appca"))
    said = {"appca/runs/__init__.py": '"""Runs."""', "appca/jobs/queue.py": ""}
    assert len(house.unexplained(said)) == 2


def test_no_modules_import_one_another():
    assert not house.circles(sources("appca"))
    bad = {
        "appca/a.py": "from appca import b",
        "appca/b.py": "from appca.c import name",
        "appca/c.py": "import appca.a",
        "appca/d.py": "import appca.a",
    }
    assert [one.split()[0] for one in house.circles(bad)] == ["appca.a", "appca.b", "appca.c"]
    for late in ("def f():\n    from appca.c import name", "if TYPE_CHECKING:\n    import appca.c"):
        assert len(house.circles(bad | {"appca/b.py": late})) == 3


def test_every_public_class_has_a_name_of_its_own():
    assert not house.defined_twice(sources("appca"))
    twice = {"appca/a.py": "class Fit: ...", "appca/b.py": "class Fit: ...\nclass _Fit: ..."}
    assert house.defined_twice(twice) == [
        "class Fit is defined in appca/a.py and appca/b.py: give each a name of its own"
    ]


def test_folders_do_not_import_one_another():
    assert not house.folder_circles(sources("appca"))
    bad = {
        "appca/a/x.py": "from appca.b.y import name",
        "appca/b/y.py": "",
        "appca/b/z.py": "def f():\n    from appca.a.w import name",
        "appca/a/w.py": "",
    }
    assert [line.split()[0] for line in house.folder_circles(bad)] == ["appca/a", "appca/b"]
    assert not house.circles(bad)


def test_a_small_module_has_two_importers():
    assert not house.too_small(sources("appca", "pages"))
    few = {"appca/a.py": "x = 1\n", "appca/b.py": "from appca.a import x\n" * 80}
    assert [line.split()[0] for line in house.too_small(few)] == ["appca/a.py"]
    assert not house.too_small(few | {"appca/c.py": "from appca.a import x\n" * 80})


def test_every_query_of_a_fitted_model_is_defined_once():
    """Nor is the way up from a model long: at most four classes of ours, none of them big."""
    from appca import AdaptivePPCA
    from appca.models.estimator import Queries

    public = [name for name in vars(Queries) if not name.startswith("_")]
    names = [name for name in public if name not in ("sample", "whiten", "random_state")]
    assert {"transform", "score_samples", "describe", "allocate", "impute"} <= set(names)
    models = sources("appca/models")
    assert not house.defined_again(models, names)
    again = "class A:\n    def transform(self, X):\n        return X"
    assert len(house.defined_again({"appca/models/a.py": again}, names)) == 1
    above = [kind for kind in AdaptivePPCA.__mro__[1:] if kind.__module__.startswith("appca")]
    assert len(above) <= 4
    assert max(len(inspect.getsource(kind).splitlines()) for kind in above) <= 300


def test_nobody_but_the_owner_of_a_type_looks_into_its_arrays():
    files = sources("appca", "pages")
    assert not [said for path, text in files.items() for said in house.untyped(path, text)]
    for text in ('shown.arrays["active"]', 'def f(arrays):\n    return arrays["scores"][0]'):
        assert len(house.untyped("appca/ui/explore/a.py", text)) == 1
    assert not house.untyped("appca/analysis/fitted.py", 'arrays["active"]')
    assert not house.untyped("appca/ui/explore/a.py", "arrays[0]")


def test_the_web_process_starts_without_the_slow_packages():
    """Import all but models, kernels and pages in one process, and look at what came along."""
    parts = ("words", "storage", "data", "analysis", "plots", "studies", "runs", "canvas")
    names = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for part in parts
        for path in sorted((ROOT / "appca" / part).rglob("*.py"))
    ]
    names = [name for name in names if not is_kernel(name)]
    script = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"slow = {HEAVY | {'streamlit', 'appca.models.em'}!r}\n"
        "print(sorted(slow & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert len(names) > 20
