"""Rules of where things stand in the package, as functions from sources to broken rules.

Sources are a dict from a path below the project's root, such as "appca/runs/fit.py", to the text.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Sources = dict[str, str]

MOST_MODULES = 14  # in a folder

# the folders of appca/models; each may import from those before it, the estimators from all
MODEL_FOLDERS = (
    "settings",
    "algebra",
    "polynomials",
    "rows",
    "decompositions",
    "sampling",
    "supports",
    "base",
    "orthonormal",
    "factors",
    "variants",
    "incomplete",
)

# the seven pages; analysis, plots, ui and pages have a folder for each that they need
PAGES = ("explore", "data", "components", "groups", "check", "paper", "export")
BY_PAGE = ("appca/analysis", "appca/plots", "appca/ui", "pages")
SHARED_UI = (
    "session",
    "frame",
    "server",
    "parts",
    "rows",
    "settings",
    "arrivals",
    "canvas",
)  # rooms of appca/ui for several pages
# what a feature is called everywhere, and the page it belongs to
FEATURES = {
    "brain": "paper",
    "choose": "check",
    "compare": "check",
    "diagnostics": "check",
    "group": "groups",
    "masked": "check",
    "new_data": "data",
    "outliers": "explore",
    "point": "explore",
    "sharing": "components",
    "similar": "groups",
    "subspaces": "explore",
    "table1": "paper",
    "umap": "explore",
    "whitening": "paper",
}
OTHER_WORDS = {  # what features were called before
    "differences": "group",
    "embedding": "umap",
    "grid": "choose",
    "jobfolder": "folder",
    "matching": "compare",
    "new_rows": "new_data",
    "side_by_side": "compare",
    "similar_objects": "similar",
    "traces": "diagnostics",
}
QUERIES = "appca/models/estimator.py"  # the class that has every query of a fitted model
WRAPPER = "appca/models/preprocessed.py"  # asks the model in it
BEFORE = "appca/models/pearson_residuals.py"  # no model: a step before one
# who may look into a dict of arrays by name: the module that owns the type they belong to
OWNERS_OF_ARRAYS = {
    "appca/analysis/fitted.py": "a fitted run",
    "appca/analysis/brain.py": "the maps of a recording",
    "appca/data/preprocessing.py": "fitted preprocessing",
    "appca/data/readers/": "the arrays of an uploaded file",
    "appca/models/estimator.py": "a fitted estimator",
    "appca/studies/experiments/": "the outcome of that experiment",
    "appca/studies/fitting.py": "the panels that such outcomes hold",
}
# folders of tests that look at no single module, and what they look at instead
OTHER_TESTS = {
    "attacks": "hostile input",
    "benchmarks": "the benchmarks",
    "browser": "the app in a browser",
    "commands": "the command line as a whole",
    "docs": "the documents",
    "faults": "killed processes and full disks",
    "fixtures": "a home that holds one of everything",
    "references": "the algorithms in plain NumPy",
}


class Import(NamedTuple):
    """One imported module, with the names taken from it."""

    module: str
    names: tuple[str, ...]
    line: int
    late: bool  # inside a function, or for type checkers only


def imports(tree: ast.AST, late: bool = False) -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        inside = late or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        inside |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, (), node.lineno, inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            yield Import("." * node.level + (node.module or ""), names, node.lineno, inside)
        yield from imports(node, inside)


def module_of(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def crowded(paths: Iterable[str]) -> list[str]:
    """Folders with more modules than a person keeps in mind."""
    counts = Counter(path.rpartition("/")[0] for path in paths if not path.endswith("/__init__.py"))
    return [
        f"{folder} has {n} modules, more than {MOST_MODULES}: make a folder of those that belong "
        "together"
        for folder, n in sorted(counts.items())
        if n > MOST_MODULES
    ]


def unexplained(sources: Sources) -> list[str]:
    """Folders whose ``__init__.py`` does not say in one sentence what they hold."""
    folders = {path.rpartition("/")[0] for path in sources}
    found = []
    for folder in sorted(folders):
        text = sources.get(f"{folder}/__init__.py", "")
        said = ast.get_docstring(ast.parse(text)) or ""
        if not re.fullmatch(r"[A-Z][^\n]{15,}\.", said.partition("\n\n")[0].replace("\n", " ")):
            found.append(f"{folder}/__init__.py must say in one sentence what the folder holds")
    return found


def circles(sources: Sources) -> list[str]:
    """Modules that import one another, inside functions or for types only included."""
    modules = {module_of(path) for path in sources}
    graph = {
        module_of(path): {
            target for one in imports(ast.parse(text)) for target in _targets(one, modules)
        }
        for path, text in sources.items()
    }
    found = []
    for start in sorted(graph):
        reached, todo = set(), [start]
        while todo:
            for target in graph.get(todo.pop(), ()):
                if target not in reached:
                    reached.add(target)
                    todo.append(target)
        if start in reached:
            found.append(f"{start} imports itself by way of others")
    return found


def _targets(one: Import, modules: set[str]) -> set[str]:
    whole = {f"{one.module}.{name}" for name in one.names} & modules
    from_itself = len(whole) < len(one.names) or not one.names
    return whole | ({one.module} & modules if from_itself else set())


def defined_twice(sources: Sources) -> list[str]:
    """Public classes of one name in several modules."""
    places = defaultdict(list)
    for path, text in sorted(sources.items()):
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    return [
        f"class {name} is defined in {' and '.join(paths)}: give each a name of its own"
        for name, paths in sorted(places.items())
        if len(paths) > 1
    ]


def arrows_back(path: str, text: str) -> list[str]:
    """Imports among the folders of appca/models that go up instead of down."""
    parts = path.split("/")
    if parts[:2] != ["appca", "models"] or len(parts) < 4:
        return []
    own = MODEL_FOLDERS.index(parts[2])
    found = []
    for one in imports(ast.parse(text)):
        names = {one.module, *(f"{one.module}.{name}" for name in one.names)}
        folders = {name.split(".")[2] for name in names if name.startswith("appca.models.")}
        up = sorted(folders - set(MODEL_FOLDERS[: own + 1]))
        found += [f"{path}, line {one.line}: {parts[2]} must not import {name}" for name in up]
    return found


def borrowed(path: str, text: str) -> list[str]:
    """Imports of another page's folder of appca/ui; the server alone loads all of them."""
    room = path.removeprefix("appca/ui/").removeprefix("pages/").split("/")[0]
    if not path.startswith(("appca/ui/", "pages/")) or room == "server":
        return []
    modules = {
        f"{line.module}.{name}" for line in imports(ast.parse(text)) for name in ("", *line.names)
    }
    folders = {module.split(".")[2] for module in modules if module.startswith("appca.ui.")}
    return [
        f"{path}: {room} must not import appca.ui.{page}, a page's folder"
        for page in sorted(folders & set(PAGES) - {room})
    ]


def defined_again(sources: Sources, names: Iterable[str]) -> list[str]:
    """Classes of the models that define a query of fitted models, beside `Queries`."""
    wanted = set(names)
    return [
        f"{path}, line {node.lineno}: {node.name} is a query of every model, of {QUERIES}"
        for path, text in sorted(sources.items())
        if path not in (QUERIES, WRAPPER, BEFORE)
        for kind in ast.walk(ast.parse(text))
        if isinstance(kind, ast.ClassDef)
        for node in kind.body
        if isinstance(node, ast.FunctionDef) and node.name in wanted
    ]


def untyped(path: str, text: str) -> list[str]:
    """Looks into a dict called ``arrays`` by name outside of the module that owns the type."""
    if path.startswith(tuple(OWNERS_OF_ARRAYS)):
        return []
    return [
        f"{path}, line {node.lineno}: {ast.unparse(node)} belongs to the module that owns the type"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
        and ast.unparse(node.value).split(".")[-1] == "arrays"
    ]


def misplaced(paths: Iterable[str]) -> list[str]:
    """Modules that stand in no page's folder or not in their feature's, or use another word."""
    return [f"{path}: {said}" for path in sorted(paths) for said in _of_place(path)]


def _of_place(path: str) -> Iterator[str]:
    folder, _, file = path.rpartition("/")
    stem = file.removesuffix(".py").removeprefix("test_")
    top = next((top for top in BY_PAGE if folder.startswith(f"{top}/") or folder == top), None)
    if stem in OTHER_WORDS:
        yield f"this feature is called {OTHER_WORDS[stem]} everywhere"
    if top is None or folder == top:
        return
    room = folder.removeprefix(f"{top}/").split("/")[0]
    if room not in (*PAGES, *(SHARED_UI if top == "appca/ui" else ())):
        yield f"{room} is no page; the folders are called {', '.join(PAGES)}"
    feature = _feature(stem)
    if feature and FEATURES[feature] != room and room in PAGES:
        yield f"{feature} belongs to the page {FEATURES[feature]}"


def _feature(stem: str) -> str | None:
    found = [name for name in FEATURES if stem == name or stem.startswith(f"{name}_")]
    return max(found, key=len) if found else None


def unmirrored(tests: Iterable[str], paths: Iterable[str]) -> list[str]:
    """Folders of tests that mirror no folder of the package."""
    folders = {path.rpartition("/")[0].removeprefix("appca").strip("/") for path in paths}
    mine = {path.rpartition("/")[0].removeprefix("tests").strip("/") for path in tests}
    return [
        f"tests/{folder} mirrors no folder of appca"
        for folder in sorted(mine)
        if folder.split("/")[0] not in OTHER_TESTS and folder not in folders
    ]
