"""Changes of the code that tests should detect: 200 mutants, and 60 described faults.

Mutants are drawn with a fixed seed from the syntax trees of the package: for each part in turn, a
kind of change, then a change of this kind, at most one per function. Docstrings, annotations, code
for type checkers and one-line constructors are not changed. The faults are in faults.toml.
`benchmarks.caught` makes the changes and records which ones the tests detect.
"""

import ast
import random
import re
import tomllib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

COMMIT, SEED, MUTANTS = "9c3de8e7", 48, 200
PARTS = {
    "models": ["models"],
    "analysis, plots, rivals": ["analysis", "plots", "rivals.py", "tl.py"],
    "studies, runs": ["studies", "runs"],
    "data": ["data", "frames.py"],
    "ui, canvas": ["ui", "canvas"],
    "jobs, storage, commands": [
        "jobs",
        "storage",
        "commands",
        "processes.py",
        "words.py",
        "cli.py",
    ],
}
OFF_BY_ONE = {ast.Lt: b"<=", ast.LtE: b"<", ast.Gt: b">=", ast.GtE: b">"}
Row = dict[str, Any]


class Change(NamedTuple):
    """A replacement of some bytes of a file."""

    file: str
    start: int
    end: int
    new: bytes
    lines: tuple[int, int]  # first and last line; tests that may detect the change run one of them
    kind: str  # for a fault, its part
    words: str = ""


Edit = tuple[int, int, bytes, str]  # first byte, end, replacement, kind


class Source:
    """The text of a module, with the mutants of its nodes."""

    def __init__(self, text: bytes) -> None:
        lengths = map(len, text.splitlines(keepends=True))
        self.text, self.starts = text, [0, *accumulate(lengths)]

    def span(self, node: Any) -> tuple[int, int]:
        """Return the start and the end of a node in bytes."""
        first, last = self.starts[node.lineno - 1], self.starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def of(self, node: ast.AST) -> bytes:
        """Return the text of a node."""
        return self.text[slice(*self.span(node))]

    def between(self, left: ast.AST, right: ast.AST, new: bytes, kind: str) -> Edit:
        """Replace the operator between two nodes."""
        first, last = self.span(left)[1], self.span(right)[0]
        found = re.search(rb"[<>]=?|[+-]|\b(and|or)\b", self.text[first:last])
        assert found is not None, ast.unparse(left)
        return first + found.start(), first + found.end(), new, kind

    def operators(self, node: ast.AST) -> Iterator[Edit]:
        """Yield bounds off by one, wrong signs, `and` in place of `or`, and a missing `not`."""
        match node:
            case ast.Compare(ops=[op], comparators=[right]) if type(op) in OFF_BY_ONE:
                yield self.between(node.left, right, OFF_BY_ONE[type(op)], "bound")
            case ast.BinOp(left, ast.Add() | ast.Sub() as op, right) if not of_text(left, right):
                yield self.between(left, right, b"-" if isinstance(op, ast.Add) else b"+", "sign")
            case ast.BoolOp(op, [left, right]):
                other = b"or" if isinstance(op, ast.And) else b"and"
                yield self.between(left, right, other, "and/or")
            case ast.UnaryOp(op=ast.Not()):
                yield *self.span(node), b"(" + self.of(node.operand) + b")", "not dropped"

    def values(self, node: ast.AST) -> Iterator[Edit]:
        """Yield changed constants, returns of None, negated branches, and changed arguments."""
        match node:
            case ast.Constant(value=bool(value)):
                yield *self.span(node), str(not value).encode(), "constant"
            case ast.Constant(value=int() | float() as value):
                yield *self.span(node), repr(value + 1).encode(), "constant"
            case ast.Return(value=ast.expr() as result) if not isinstance(result, ast.Constant):
                yield *self.span(result), b"None", "return"
            case ast.If(test) | ast.While(test) | ast.IfExp(test):
                yield *self.span(test), b"not (" + self.of(test) + b")", "negated"
            case ast.Call(args=[*_, one, two], keywords=[]) if not starred(one, two):
                new = self.of(two) + b", " + self.of(one)
                yield self.span(one)[0], self.span(two)[1], new, "swapped"
            case ast.Call(args=[*_, one], keywords=[_, *_]) if not starred(one):
                yield self.span(one)[1], self.span(node.keywords[-1])[1], b"", "argument dropped"


def of_text(*parts: ast.expr) -> bool:
    """Whether a sum may be of texts or lists, which cannot be subtracted."""
    listed = (ast.JoinedStr, ast.List, ast.Tuple)
    return any(isinstance(getattr(p, "value", None), str) or isinstance(p, listed) for p in parts)


def starred(*nodes: ast.expr) -> bool:
    """Whether an argument is starred."""
    return any(isinstance(node, ast.Starred) for node in nodes)


def mutants_of(file: str, text: bytes) -> Iterator[Change]:
    """Yield every mutant of a module."""
    source = Source(text)
    for node, statement in walk(ast.parse(text), None):
        body = getattr(statement, "body", None)  # for a compound statement, only its header
        last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno
        lines = statement.lineno, max(statement.lineno, last)
        for start, end, new, kind in (*source.operators(node), *source.values(node)):
            yield Change(file, start, end, new, lines, kind)


def walk(node: ast.AST, statement: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the nodes that may be changed, with their statements."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in {"annotation", "returns"}:
                continue
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if getattr(child, "name", "") == "__init__" and len(getattr(child, "body", ())) == 1:
                continue
            inside = child if isinstance(child, ast.stmt) else statement
            yield child, inside
            yield from walk(child, inside)


def place(text: bytes, line: int) -> tuple[str, bool]:
    """Return the function at a line, and whether the line runs only when it is called."""
    name, called = "", False
    if text.startswith(b"/*"):  # a script
        return name, called
    for node in ast.walk(ast.parse(text)):  # outer nodes first
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            continue
        if node.lineno <= line <= (node.end_lineno or 0):
            name = f"{name}.{node.name}".lstrip(".")
            called = isinstance(node, ast.FunctionDef) and line >= node.body[0].lineno
    return name, called


def part_of(file: str) -> str:
    """Return the part of the package that contains a file, or an empty text."""
    return next((part for part, names in PARTS.items() if file.split("/")[1] in names), "")


def mutants(tree: Path) -> list[Change]:
    """Return the mutants of a tree in a fixed order."""
    rng = random.Random(SEED)
    pools: dict[str, dict[str, list[Change]]] = {part: {} for part in PARTS}
    for path in sorted((tree / "appca").rglob("*.py")):
        file = path.relative_to(tree).as_posix()
        for change in mutants_of(file, path.read_bytes()) if part_of(file) else ():
            pools[part_of(file)].setdefault(change.kind, []).append(change)
    taken: dict[tuple[str, str], Change] = {}
    while len(taken) < MUTANTS:
        pool = pools[list(PARTS)[len(taken) % len(PARTS)]]
        change = rng.choice(pool[rng.choice(sorted(pool))])
        name, _ = place((tree / change.file).read_bytes(), change.lines[0])
        taken.setdefault((change.file, name), change)
    return list(taken.values())


def faults(tree: Path) -> list[Change]:
    """Return the described faults."""
    described, found = Path(__file__).with_name("faults.toml"), []
    for fault in tomllib.loads(described.read_text(encoding="utf-8"))["fault"]:
        text, old = (tree / fault["file"]).read_bytes(), fault["old"].encode()
        assert text.count(old) == 1, (text.count(old), fault["words"])
        start = text.index(old)
        first = text[:start].count(b"\n") + 1
        lines, new = (first, first + old.rstrip().count(b"\n")), fault["new"].encode()
        about = (fault["part"], fault["words"])
        found.append(Change(fault["file"], start, start + len(old), new, lines, *about))
    return found
