"""Rules of where things stand in the package, as functions from sources to broken rules.

Sources are a dict from a path below the project's root, such as "appca/runs/fit.py", to the text.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Sources = dict[str, str]

LEAST_LINES = 80  # of a module with a single importer
ENTRY_POINTS = ("app.py", "pages/", "appca/commands/", "appca/cli.py", "appca/__main__.py")
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
    "appca/studies/": "the outcome of an experiment",
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
    return [f"{module} imports itself by way of others" for module in _in_circles(graph(sources))]


def folder_circles(sources: Sources) -> list[str]:
    """Folders below appca whose modules import one another."""
    folders: dict[str, set[str]] = defaultdict(set)
    places = {module_of(path): path.rpartition("/")[0] for path in sources}
    for module, targets in graph(sources).items():
        folders[places[module]] |= {places[target] for target in targets} - {places[module]}
    folders.pop("appca", None)  # what is public, which reaches into all, and words
    return [f"{folder} imports itself by way of others" for folder in _in_circles(folders)]


def graph(sources: Sources) -> dict[str, set[str]]:
    """Modules that each module imports, at its top or later."""
    modules = {module_of(path) for path in sources}
    return {
        module_of(path): {
            target for line in imports(ast.parse(text)) for target in _targets(line, modules)
        }
        for path, text in sources.items()
    }


def _in_circles(edges: dict[str, set[str]]) -> list[str]:
    circular = []
    for start in sorted(edges):
        reached, todo = set(), [start]
        while todo:
            for target in edges.get(todo.pop(), ()):
                if target not in reached:
                    reached.add(target)
                    todo.append(target)
        if start in reached:
            circular.append(start)
    return circular


def too_small(sources: Sources) -> list[str]:
    """Modules under `LEAST_LINES` lines that a single module imports, or none."""
    importers: dict[str, set[str]] = defaultdict(set)
    for module, targets in graph(sources).items():
        for target in targets:
            importers[target].add(module)
    return [
        f"{path} has {text.count(chr(10))} lines and one importer: join them"
        for path, text in sorted(sources.items())
        if text.count("\n") < LEAST_LINES
        and len(importers[module_of(path)]) < 2
        and not any(f'"{module_of(path)}' in other for other in sources.values())  # found by name
        and not path.startswith(ENTRY_POINTS)
        and not path.endswith("/__init__.py")
        and '__name__ == "__main__"' not in text
    ]


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
