"""Choose K and L in a real browser: a grid fills, a cell is clicked and adopted, and stays."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from tests.browser.test_app import APP, SECOND, idle
from tests.models.synthetic import planted

pytestmark = pytest.mark.browser
CELLS = "[...document.querySelectorAll('.js-plotly-plot .heatmaplayer text')].map(t => t.innerHTML)"
PLACE = """([column, row]) => {
  const plot = document.querySelector('.js-plotly-plot'), box = plot.getBoundingClientRect();
  const {xaxis, yaxis} = plot._fullLayout;
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
}"""


def number(page, label: str, value: int) -> None:
    box = page.get_by_label(label, exact=True).first
    box.fill(str(value))
    box.press("Enter")
    idle(page)


@pytest.mark.slow  # tests/ui/test_choose has the page and tests/runs the job: in every run
def test_a_grid_fills_and_a_click_on_a_cell_adopts_it_and_survives_a_reload(serve, visit, tmp_path):
    from playwright.sync_api import TimeoutError, expect

    server = serve(APP, OMP_NUM_THREADS="1")
    X = planted(150, 6, 4, 2, seed=0, noise=0.1).X
    ids = np.array([f"{tmp_path.name} {row}" for row in range(150)])  # a rerun finds no grid there
    dataset = Dataset("planted", X, ids, {}, None, None, {})
    digest = DatasetStore(server.home).put(dataset)
    page = visit(f"{server.url}/choose?data={digest}").page
    start = page.get_by_role("button", name="Start", exact=True)
    start.wait_for(timeout=40 * SECOND)
    number(page, "K from", 3)
    start.click()
    page.wait_for_function(f"() => {CELLS}.some(text => text)", timeout=60 * SECOND)
    page.get_by_text("Take K = 4, L = 2.").wait_for(timeout=120 * SECOND)
    idle(page)
    page.locator(".js-plotly-plot .heatmaplayer image").first.wait_for(timeout=20 * SECOND)
    adopt = page.get_by_role("button", name="Adopt K = 6, L = 3", exact=True)
    for _ in range(5):  # a plot that is being redrawn does not hear a click
        page.mouse.click(*page.evaluate(PLACE, [3, 2]))  # of K = 3, 4, 5, 6 and L = 1, 2, 3, 4
        try:
            adopt.wait_for(timeout=6 * SECOND)
        except TimeoutError:
            continue
        break
    adopt.click()
    page.wait_for_url("**k=6&l=3**", timeout=20 * SECOND)
    page.reload()
    page.get_by_text("Take K = 4, L = 2.").wait_for(timeout=40 * SECOND)
    idle(page)
    expect(page.get_by_label("K from", exact=True).first).to_have_value("3", timeout=20 * SECOND)
    page.get_by_role("heading", name="Stability of the components: K = 6, L = 3").wait_for()
    assert page.locator("[data-testid=stException]").count() == 0
