"""What rows can be coloured by: each row by its own value."""

import numpy as np
import pytest

from appca.analysis.fitted import FittedRun
from appca.canvas import panels
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.plots.style import MISSING, levels
from tests.fitted_runs import fitted_run


def run_of(n_rows: int, k: int, n_active: int, seed: int = 0) -> FittedRun:
    """Numbers as a run has them, with unevenly popular components."""
    rng = np.random.default_rng(seed)
    keys = rng.gumbel(size=(n_rows, k)) + np.linspace(1, 0, k)
    active = np.zeros((n_rows, k), dtype=bool)
    np.put_along_axis(active, np.argsort(-keys, axis=1)[:, :n_active], True, axis=1)
    return fitted_run(
        scores=(rng.normal(size=(n_rows, k)) * active).astype(np.float32),
        active=active,
        membership=rng.random(n_rows).astype(np.float32),
        error=rng.random(n_rows).astype(np.float32),
        log_likelihood_rows=rng.normal(size=n_rows),
    )


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits")


def test_colours_are_offered_by_label_and_by_measure(digits):
    fitted = run_of(digits.n_rows, 4, 2)
    assert list(panels.colour_choices(digits)) == [
        "label:digit",
        "residual",
        "membership",
        "likelihood",
    ]
    by_class = panels.colour_of(digits, fitted, "label:digit")
    assert by_class.kind == "category"
    named = [by_class.names[code] for code in by_class.values]
    assert named == digits.labels["digit"].astype(str).tolist()
    residual = panels.colour_of(digits, fitted, "residual")
    np.testing.assert_array_equal(residual.values, fitted.error.astype(float))


def test_a_feature_colours_each_row_by_its_own_number(digits, seed):
    fitted = run_of(digits.n_rows, 4, 2)
    column = int(np.random.default_rng(seed).integers(64))
    colour = panels.colour_of(digits, fitted, f"feature:{column}")
    assert (colour.kind, colour.name) == (
        "number",
        f"pixel row {column // 8 + 1}, column {column % 8 + 1}",
    )
    images = digits.X.reshape(-1, 8, 8)
    np.testing.assert_array_equal(colour.values, images[:, column // 8, column % 8].astype(float))


def test_a_feature_of_few_whole_numbers_is_a_scale_and_its_missing_cells_are_unknown():
    X = np.array([[0, 9], [1, 8], [2, 7], [1, 6]], dtype=np.uint8)
    missing = np.zeros(X.shape, dtype=bool)
    missing[1, 0] = True
    dataset = Dataset("few", X, list("abcd"), feature_names=("<b>", "c"), missing=missing)
    colour = panels.colour_of(dataset, run_of(4, 2, 1), "feature:0")
    assert (colour.kind, colour.name) == ("number", "<b>")
    np.testing.assert_array_equal(colour.values, [0, np.nan, 2, 1])
    drawn = levels(colour)
    assert [drawn.table[code] == MISSING for code in drawn.codes] == [False, True, False, False]
