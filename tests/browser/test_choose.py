"""Choose in a real browser: a grid whose cells open in Explore, a model in three clicks."""

import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from tests.browser.test_app import APP, SECOND, drawn, idle, press
from tests.models.synthetic import planted

pytestmark = pytest.mark.browser
WAIT = 30 * SECOND
PLACE = """([column, row]) => {
  const plot = [...document.querySelectorAll('.js-plotly-plot')].find(p => p.querySelector('.hm'));
  const box = plot.getBoundingClientRect(), {xaxis, yaxis} = plot._fullLayout;
  return [box.left + xaxis._offset + xaxis.c2p(column), box.top + yaxis._offset + yaxis.c2p(row)];
}"""


@pytest.mark.slow  # tests/ui/check/test_choose has the tab and tests/jobs the job: in every run
def test_a_grid_fills_and_a_click_on_a_cell_opens_it_in_explore(serve, visit, tmp_path):
    from playwright.sync_api import TimeoutError

    server = serve(APP, OMP_NUM_THREADS="1")
    X = planted(150, 6, 4, 2, seed=0, noise=0.1).X
    ids = np.array([f"{tmp_path.name} {row}" for row in range(150)])  # a rerun finds no grid there
    dataset = Dataset("planted", X, ids, {}, None, None, {})
    digest = DatasetStore(server.home).put(dataset)
    page = visit(f"{server.url}/check?tab=choose&data={digest}").page
    start = page.locator(".st-key-grid_start button")
    start.wait_for(timeout=60 * SECOND)
    start.click()
    page.get_by_text("Try K = 4 and L = 2").wait_for(timeout=120 * SECOND)
    idle(page)
    page.locator(".js-plotly-plot .heatmaplayer image").first.wait_for(timeout=60 * SECOND)
    for _ in range(5):  # a plot that is being redrawn does not hear a click
        page.mouse.click(*page.evaluate(PLACE, [4, 2]))  # of K = 2 to 6 and L = 1 to 4
        try:
            page.wait_for_url(lambda url: "k=6&l=3" in url and "/check" not in url, timeout=WAIT)
        except TimeoutError:
            continue
        break
    page.wait_for_url(lambda url: "k=6&l=3" in url and "/check" not in url, timeout=WAIT)
    assert page.locator("[data-testid=stException]").count() == 0


@pytest.mark.thorough  # tests/ui/check/test_which_model has each step: in every run
def test_which_model_is_answered_and_taken_in_three_clicks_from_the_first_picture(
    serve, visit, tmp_path
):
    server = serve(APP, OMP_NUM_THREADS="1")
    rng = np.random.default_rng(0)
    X = planted(200, 8, 4, 2, seed=0, noise=0.3).X * rng.choice([0.6, 1.8], (200, 1))
    ids = np.array([f"{tmp_path.name} {row}" for row in range(200)])
    digest = DatasetStore(server.home).put(Dataset("bright", X, ids, {}, None, None, {}))
    visited = visit(f"{server.url}/?data={digest}")
    page = visited.page
    drawn(page)
    first = page.url
    press(page, "bar_model")
    page.get_by_role("link", name="Which model suits these data?").click()
    press(page, "models_start")
    page.locator(".st-key-models_use button").wait_for(timeout=180 * SECOND)
    assert "tab=advanced" in page.url
    assert "a scale per row" in page.locator(".ca-answer-title").text_content()
    press(page, "models_use")
    page.locator(".st-key-models_use button[disabled]").first.wait_for(timeout=60 * SECOND)
    run = page.url.partition("run=")[2].partition("&")[0]
    assert run not in first
    page.goto(f"{server.url}/?run={run}")
    drawn(page)
    assert page.locator("[data-testid=stException]").count() == 0
    assert not visited.errors
