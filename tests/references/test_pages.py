"""The pages of this folder stand alone, on a normal distribution that is SciPy's."""

import ast
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from scipy.stats import multivariate_normal

import tests.references
from tests.references import low_rank

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


def test_the_low_rank_normal_is_that_of_scipy_and_of_conditioning(seed):
    rng = np.random.default_rng(seed)
    W, mu, tau2 = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.uniform(0.5, 2.0, 3)
    Y = 2.0 * rng.standard_normal((6, 4))
    C = 0.3 * np.eye(4) + W @ np.diag(tau2) @ W.T
    wanted = multivariate_normal(mu, C).logpdf(Y)
    close(low_rank.log_density(Y, W, mu, 0.3, tau2), wanted, rtol=1e-10)
    one = low_rank.log_density(Y[0], W, mu, 0.3, tau2)
    assert one == pytest.approx(wanted[0], rel=1e-10)
    m, V = low_rank.scores(Y, W, mu, 0.3, tau2)
    gain = np.diag(tau2) @ W.T @ np.linalg.inv(C)  # x given y from their joint normal
    close(m, (Y - mu) @ gain.T, atol=1e-10)
    close(V, np.diag(tau2) - gain @ W @ np.diag(tau2), atol=1e-10)
    wanted = multivariate_normal(np.zeros(2), 0.3 * np.eye(2)).logpdf(Y[0, :2])
    nothing = low_rank.log_density(Y[0, :2], np.empty((2, 0)), 0.0, 0.3)
    assert nothing == pytest.approx(wanted, rel=1e-12)
    assert low_rank.log_density(Y[0, :0], np.empty((0, 3)), np.zeros(0), 0.3) == 0.0
