"""Panels of the figure that stands alone: the right rows at the right places."""

import numpy as np
import pytest

from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.sources.builtin import load
from appca.plots.explore.scene import colours
from appca.plots.explore.sprites import sprites_of
from appca.plots.palette import MISSING, levels
from appca.ui.export import panels
from tests.fitted_runs import fitted_model, fitted_run


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


def drawn_components(panel) -> list[int]:
    titles = [panel.x_title, panel.y_title]
    return [int(t.removeprefix("component ")) - 1 for t in titles if t.startswith("component")]


def test_every_point_has_the_scores_of_its_own_row(digits, seed):
    fitted = run_of(digits.n_rows, 5, 2, seed)
    for panel in panels.fullest_panels(digits, fitted):
        first, second = drawn_components(panel)
        np.testing.assert_array_equal(panel.x, fitted.scores[panel.rows, first])
        np.testing.assert_array_equal(panel.y, fitted.scores[panel.rows, second])
        assert fitted.active[panel.rows][:, [first, second]].all()
        np.testing.assert_array_equal(panel.hollow, fitted.membership[panel.rows] < 0.5)


def test_rows_keep_their_identity_when_the_data_are_shuffled_and_thinned(digits, seed):
    fitted = run_of(digits.n_rows, 4, 2, seed)
    kept = np.random.default_rng(seed).permutation(digits.n_rows)[:600]
    part, numbers = digits.take(kept), fitted_model(k=4).with_rows(fitted.take(kept))
    where = {digits.ids[row]: row for row in kept}
    sprites = sprites_of(part)
    for panel in panels.fullest_panels(part, numbers):
        first, second = drawn_components(panel)
        original = np.array([where[part.ids[row]] for row in panel.rows])
        np.testing.assert_array_equal(panel.x, fitted.scores[original, first])
        np.testing.assert_array_equal(panel.y, fitted.scores[original, second])
        np.testing.assert_array_equal(sprites.images(panel.rows), digits.images(original))
        column = next(iter(digits.labels))
        np.testing.assert_array_equal(
            part.labels[column][panel.rows], digits.labels[column][original]
        )


def test_sign_cells_count_and_show_their_own_rows(digits):
    fitted = run_of(digits.n_rows, 4, 2)
    for panel in panels.fullest_panels(digits, fitted):
        members = np.concatenate([cell.rows for cell in panel.cells])
        assert sorted(members) == sorted(panel.rows)
        places = {row: place for place, row in enumerate(panel.rows)}
        for cell in panel.cells:
            inside = [places[row] for row in cell.rows]
            assert (np.sign(panel.x[inside]) == cell.corner[0]).all()
            assert (np.sign(panel.y[inside]) == cell.corner[1]).all()
            assert cell.n_rows == len(cell.rows)


def test_pairs_hold_every_row_that_uses_both(digits):
    fitted = run_of(digits.n_rows, 5, 3)
    found = panels.fullest_panels(digits, fitted, by_pair=True)
    assert len(found) == 10
    for panel in found:
        both = fitted.active[:, drawn_components(panel)].all(axis=1)
        assert panel.rows.tolist() == np.flatnonzero(both).tolist()


def test_strips_of_one_component_spread_each_row_the_same_way_each_time(digits):
    once = panels.fullest_panels(digits, run_of(digits.n_rows, 3, 1, seed=1))
    again = panels.fullest_panels(digits, run_of(digits.n_rows, 4, 1, seed=2))
    height = {row: y for panel in once for row, y in zip(panel.rows, panel.y, strict=True)}
    for panel in again:
        assert [height[row] for row in panel.rows] == panel.y.tolist()
    assert max(map(abs, height.values())) <= 1


def test_colours_are_offered_by_label_and_by_measure(digits):
    fitted = run_of(digits.n_rows, 4, 2)
    assert list(colours.colour_choices(digits)) == [
        "label:digit",
        "residual",
        "membership",
        "density",
    ]
    by_class = colours.colour_of(digits, fitted, "label:digit")
    assert by_class.kind == "category"
    named = [by_class.names[code] for code in by_class.values]
    assert named == digits.labels["digit"].astype(str).tolist()
    residual = colours.colour_of(digits, fitted, "residual")
    np.testing.assert_array_equal(residual.values, fitted.error.astype(float))


def test_a_feature_colours_each_row_by_its_own_number(digits, seed):
    fitted = run_of(digits.n_rows, 4, 2)
    column = int(np.random.default_rng(seed).integers(64))
    colour = colours.colour_of(digits, fitted, f"feature:{column}")
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
    colour = colours.colour_of(dataset, run_of(4, 2, 1), "feature:0")
    assert (colour.kind, colour.name) == ("number", "<b>")
    np.testing.assert_array_equal(colour.values, [0, np.nan, 2, 1])
    drawn = levels(colour, 4)
    assert [drawn.table[code] == MISSING for code in drawn.codes] == [False, True, False, False]
