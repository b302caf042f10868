"""The pages of this folder stand alone."""

import ast
from pathlib import Path

import tests.references

HERE = Path(__file__).parent
PAGES = sorted({*HERE.glob("*.py")} - {*HERE.glob("test_*.py"), HERE / "__init__.py"})
ALLOWED = {"itertools", "math", "numpy", "scipy", "tests", "typing"}


def test_pages_import_nothing_of_the_package_and_are_all_in_the_table():
    for page in PAGES:
        tree, found = ast.parse(page.read_text("utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [node.module] if isinstance(node, ast.ImportFrom) else node.names
                found |= {getattr(name, "name", name) for name in names}
        assert {name.split(".")[0] for name in found} <= ALLOWED, page
        within = [name for name in found if name.startswith("tests")]
        assert all(name.startswith("tests.references") for name in within), page
        assert "docs/mathematics.md" in ast.get_docstring(tree), page
        assert f"`{page.stem}`" in tests.references.__doc__
