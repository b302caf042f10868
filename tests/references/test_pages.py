"""The pages of this folder stand alone."""

import ast
from pathlib import Path

import pytest

PAGES = [
    path
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if not path.name.startswith(("test_", "__"))
]
ALLOWED = {"itertools", "math", "numpy", "scipy", "tests", "typing"}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_reference_imports_nothing_of_the_package(page):
    tree = ast.parse(page.read_text("utf-8"))
    found = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert {name.split(".")[0] for name in found} <= ALLOWED
    within = {name for name in found if name.startswith("tests")}
    assert all(name.startswith("tests.references") for name in within)
    assert "docs/mathematics.md" in ast.get_docstring(tree)
