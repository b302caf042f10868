"""Tests of the architecture: modules, allowed imports, and forbidden calls.

Sources map paths relative to the project's root, such as "appca/runs/fit.py", to texts.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

Sources, ROOT = dict[str, str], Path(__file__).resolve().parents[1]
LEAST_LINES = 80  # for a module with a single importer
ENTRY_POINTS = ("app.py", "pages/", "appca/commands/", "appca/cli.py", "appca/__main__.py")


class Import(NamedTuple):
    """An imported module, with the imported names."""

    module: str
    names: tuple[str, ...]
    line: int
    late: bool  # inside a function, or for type checkers only


parsed = cache(ast.parse)


@cache
def nodes(source: str) -> list[ast.AST]:
    return [*ast.walk(parsed(source))]


def imports(tree: ast.AST, late: bool = False) -> Iterator[Import]:
    """Yield the imports in a node, including nested statements."""
    for node in ast.iter_child_nodes(tree):
        inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inside |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield Import("." * node.level + (node.module or ""), names, node.lineno, inside)
        elif not isinstance(node, ast.expr):
            yield from imports(node, inside)


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def graph(sources: Sources) -> dict[str, set[str]]:
    """Map each module to the modules it imports, at its top or later."""
    modules, found = {module_of(path) for path in sources}, {}
    for path, text in sources.items():
        targets = found[module_of(path)] = set()
        for one in imports(parsed(text)):
            whole = {f"{one.module}.{name}" for name in one.names} & modules
            if len(whole) < len(one.names) or not one.names:
                whole |= {one.module} & modules
            targets |= whole
    return found


def in_circles(edges: dict[str, set[str]]) -> list[str]:
    """Return the modules in import cycles."""
    circular = []
    for start in sorted(edges):
        reached, todo = set(), [start]
        while todo:
            new = edges.get(todo.pop(), set()) - reached
            reached |= new
            todo += new
        if start in reached:
            circular.append(start)
    return circular


def circles(sources: Sources) -> list[str]:
    """Return modules and folders of appca in import cycles, including imports in functions."""
    edges = graph(sources)
    folders: dict[str, set[str]] = defaultdict(set)
    places = {module_of(path): path.rpartition("/")[0] for path in sources}
    for module, targets in edges.items():
        folders[places[module]] |= {places[target] for target in targets} - {places[module]}
    folders.pop("appca", None)  # the public names, which import from everywhere, and words
    return in_circles(edges) + in_circles(folders)


def too_small(sources: Sources) -> list[str]:
    """Return modules with fewer than `LEAST_LINES` lines and at most one importer."""
    importers = Counter(target for targets in graph(sources).values() for target in targets)
    return [
        path
        for path, text in sources.items()
        if text.count("\n") < LEAST_LINES
        and importers[module_of(path)] < 2
        and not path.startswith(ENTRY_POINTS)
        and not path.endswith("/__init__.py")
        and '__name__ == "__main__"' not in text
        and not any(f'"{module_of(path)}' in other for other in sources.values())  # by name
    ]


# part of the package -> other parts that it may import, in addition to words; without cycles
_ALLOWED = {
    "words": "",
    "storage": "",
    "frames": "",
    "models": "storage frames",
    "processes": "",
    "ordered": "",
    "preparation": "",
    "row_types": "",
    "class_overlap": "",
    "data": "storage processes frames ordered preparation",
    "analysis": "storage frames row_types class_overlap models data rivals",
    "rivals": "models",
    "plots": "storage ordered data analysis",
    "studies": "storage processes models data analysis plots",
    "runs": "storage preparation models data analysis annotated_file",
    "jobs": "storage processes models data analysis studies runs",
    "canvas": "storage frames ordered row_types models data analysis plots runs",
    "annotated_file": "frames data analysis",
    "tl": "annotated_file frames models data analysis",
    "ui": "storage processes frames ordered preparation models data analysis plots studies runs "
    "jobs canvas annotated_file class_overlap",
    "commands": "storage processes preparation models data analysis plots studies runs canvas "
    "annotated_file",
    "cli": "storage data commands",
    "__main__": "storage cli",
    "pages": "storage models data analysis plots studies runs jobs ui",
    "__init__": "storage models analysis runs canvas tl commands",  # on first use of a name
}
MAY_IMPORT = {part: set(others.split()) for part, others in _ALLOWED.items()}
STREAMLIT = {"ui", "pages"}
HEAVY = {"sklearn", "scipy", "numba", "umap", "pandas", "pymanopt", "arviz", "jax", "optax"}
HEAVY |= {"nibabel", "nilearn", "dask", "distributed"}
# kernels import numba at their top, and are imported only inside functions
KERNELS = "_kernels"  # compiled modules, which may import one another
NOWHERE = {
    "pickle": "files are read without pickle",
    "joblib": "files are read without pickle",
    "multiprocessing": "its children would run the page's script again",
}
ONLY_IN = {  # call -> the only file that may use it
    "umap": "appca/analysis/umap.py",
    "pymanopt": "appca/models/stiefel.py",
    "jax": "appca/studies/digits.py",
    "optax": "appca/studies/digits.py",
}
# the only part that moves files and sets permissions
WRITER = "storage"
MOVES = {"os.replace", "os.rename", "os.renames", "os.link", "os.fsync", "shutil.move"}
MOVES |= {f"tempfile.{name}" for name in ("mkstemp", "mkdtemp", "NamedTemporaryFile")}
FORBIDDEN_KEYWORDS = {"unsafe_allow_html", "allow_pickle"}  # with the value True
MOST_LINES, NAMES_OF_NOTHING = 900, {"found", "one", "own", "known", "given"}


def part_of(path: str) -> str:
    """Return the part of the package that contains a file; "pages" for scripts of Streamlit."""
    first, _, rest = path.partition("/")
    return rest.split("/")[0].removesuffix(".py") if first == "appca" else "pages"


def offences(path: str, source: str) -> list[str]:
    """Return a sentence for each rule that a file breaks."""
    part, broken = part_of(path), []
    for line in imports(parsed(source)):
        said = (*_of_own_parts(line, path, part), *_of_packages(line, path, part))
        broken += [(line.line, sentence) for sentence in said]
    for node in nodes(source):
        name = getattr(node, "arg" if isinstance(node, ast.arg) else "name", None)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        if name in NAMES_OF_NOTHING:
            broken.append((node.lineno, f"“{name}” names nothing; say what it is"))
        if isinstance(node, ast.keyword) and node.arg in FORBIDDEN_KEYWORDS:
            if ast.unparse(node.value) != "False":
                broken.append((node.value.lineno, f"{node.arg} must not be switched on"))
        elif isinstance(node, ast.Call) and part != WRITER and _moves(node):
            broken.append((node.lineno, f"{ast.unparse(node.func)} is for appca.{WRITER}"))
    if source.count("\n") > MOST_LINES:
        broken.append((MOST_LINES, "and those below are too many: split the file"))
    return [f"{path}, line {number}: {sentence}" for number, sentence in broken]


def _moves(call: ast.Call) -> bool:
    """Whether a call moves a file; `Path.replace` takes one argument, `str.replace` two."""
    name = getattr(call.func, "attr", "")
    if name in {"replace", "rename"} and len(call.args) == 1 and not call.keywords:
        return True
    return any(one.endswith(f".{name}") for one in MOVES) and ast.unparse(call.func) in MOVES


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
        elif target == "models" and not (line.late or light or module_of(path).endswith(KERNELS)):
            yield "appca.models brings scikit-learn; import it inside the function that needs it"
    kernels = any(module.endswith(KERNELS) for module in modules)
    if kernels and not line.late and not module_of(path).endswith(KERNELS):
        yield f"{line.module} brings numba; import it inside the function that needs it"


def _of_packages(line: Import, path: str, part: str) -> Iterator[str]:
    package, kernel = line.module.split(".")[0], module_of(path).endswith(KERNELS)
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


REJECTED = [
    ("appca/models/a.py", "def f():\n    import appca.runs.fit", "models must not import"),
    ("appca/data/a.py", "from sklearn.datasets import load_digits", "sklearn takes long"),
    ("appca/runs/a.py", "import appca.models.ppca", "brings scikit-learn"),
    ("appca/runs/a.py", "np.load(f, allow_pickle=True)", "allow_pickle must not"),
    ("appca/runs/a.py", "draft.replace(path)", "draft.replace is for appca.storage"),
    ("appca/runs/a.py", "x = 1\n" * 901, "split the file"),
    ("appca/runs/a.py", "def f(given): pass", "names nothing"),
]


@cache
def sources(*folders: str) -> Sources:
    """Return the modules of the project, or of some folders, by path."""
    paths = [path for name in folders for path in sorted((ROOT / name).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in paths}


def test_every_file_keeps_the_layers_and_what_breaks_them_is_seen():
    files = sources("appca", "pages", "sample_data")
    files = files | {"app.py": (ROOT / "app.py").read_text("utf-8")}
    found = [sentence for path, text in files.items() for sentence in offences(path, text)]
    assert not found, "\n".join(found)
    assert {part_of(path) for path in files} == set(MAY_IMPORT)
    for path, source, words in REJECTED:
        (sentence,) = offences(path, source)
        assert sentence.startswith(path)
        assert words in sentence
    assert offences("appca/runs/a.py", "if TYPE_CHECKING:\n    import pandas as pd") == []


def test_no_modules_nor_folders_import_one_another():
    assert not circles(sources("appca"))
    bad = {
        "appca/a/x.py": "def f():\n    from appca.b import y",
        "appca/b/y.py": "import appca.a.x",
    }
    assert circles(bad) == ["appca.a.x", "appca.b.y", "appca/a", "appca/b"]


def test_folders_are_explained_classes_have_names_and_small_modules_two_importers():
    for path, text in sources("appca").items():
        if path.endswith("/__init__.py"):
            said = (ast.get_docstring(parsed(text)) or "").partition("\n\n")[0]
            assert re.fullmatch(r"[A-Z].{15,}\.", said.replace("\n", " ")), path
    kinds = Counter(
        node.name
        for text in sources("appca").values()
        for node in parsed(text).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, times in kinds.items() if times > 1] == []
    assert not too_small(sources("appca", "pages"))
    few = {"appca/a.py": "x = 1\n", "appca/b.py": "from appca.a import x\n" * 80}
    assert too_small(few) == ["appca/a.py"]


def test_the_web_process_starts_without_the_slow_packages():
    """Import all modules except models, kernels and pages, and check for slow packages."""
    parts = ("words", "storage", "data", "analysis", "plots", "studies", "runs", "canvas")
    paths = sources(*(f"appca/{part}" for part in parts))
    names = [module_of(path) for path in paths if not module_of(path).endswith(KERNELS)]
    script = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"slow = {HEAVY | {'streamlit', 'appca.models.em'}!r}\n"
        "sys.exit(sorted(slow & set(sys.modules)) or None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert len(names) > 20


# calls that could run data as code, or send data

MAY_ASK = {
    "appca/data/sources.py",  # published data sets, on request
    "appca/commands/app.py",  # checks whether its server has started
    "appca/ui/streamlit_internals.py",  # a Unix socket of the server
}
ASK_OWN_SERVER = {"host.js", "dropping.js"}  # fetch a scene; upload a file
HTML = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc)\b")
CODE = re.compile(r"\beval\s*\(|\bnew\s+Function\b|\bFunction\s*\(|javascript:")
OUTSIDE = re.compile(
    r"https?:|\b(fetch|XMLHttpRequest|sendBeacon|WebSocket|EventSource|importScripts)\b"
)
CALLS = {"eval", "exec", "compile", "__import__"}
NETWORK = {"requests", "urllib3", "urllib.request", "http.client", "socket", "pooch", "aiohttp"}


def test_no_data_becomes_code_no_shell_is_started_and_only_the_downloader_knows_the_network():
    wrong, asking = [], set()
    files = sources("appca", "pages") | {"app.py": (ROOT / "app.py").read_text("utf-8")}
    for name, text in files.items():
        for line in imports(parsed(text)):
            if {line.module, *(f"{line.module}.{one}" for one in line.names)} & NETWORK:
                asking.add(name)
        for node in nodes(text):
            if isinstance(node, ast.Call):
                called = node.func
                is_code = isinstance(called, ast.Name) and called.id in CALLS
                last = getattr(called, "attr", getattr(called, "id", ""))
                shell = [one.value for one in node.keywords if one.arg == "shell"]
                by_shell = any(getattr(value, "value", None) is not False for value in shell)
                if is_code or by_shell or last in ("system", "popen"):
                    wrong.append(f"{name}:{node.lineno}")
    scripts = sorted((ROOT / "appca").rglob("*.js"))
    for path in scripts:
        for line in path.read_text(encoding="utf-8").splitlines():
            there = line.replace("http://www.w3.org/2000/svg", "")
            asks = path.name not in ASK_OWN_SERVER and OUTSIDE.search(there)
            is_code = HTML.search(line) or CODE.search(line) or asks
            if is_code and not line.strip().startswith(("//", "*", "/*")):
                wrong.append(f"{path.name}: {line.strip()}")
    assert wrong == []
    assert asking == MAY_ASK
    assert len(scripts) > 20


def test_the_settings_keep_the_server_to_this_machine_and_silent():
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    server = settings["server"]
    assert server["address"] == "127.0.0.1"
    assert set(server["allowedHosts"]) <= {"localhost", "127.0.0.1"}
    assert server.get("enableXsrfProtection", True)
    assert server.get("enableCORS", True)
    assert not server.get("enableAgentApi", False)
    assert not server.get("enableStaticServing", False)
    assert not server["showEmailPrompt"]
    assert not settings["browser"]["gatherUsageStats"]
    assert not settings["client"]["showErrorLinks"]
