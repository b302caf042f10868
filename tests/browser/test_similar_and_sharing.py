"""Similar objects and Sharing in a real browser: the selection travels, circles do not overlap."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
SECOND = 1000  # milliseconds
SELECTED = "Number(document.querySelector('.appca-explorer')?.dataset.selected)"
# The boxes of the filled circles; the rings are the other trace.
CIRCLES = """() => [...document.querySelectorAll('.st-key-sharing_grid .scatterlayer .trace')[0]
    .querySelectorAll('path.point')].map(point => {
        const box = point.getBoundingClientRect();
        return [(box.left + box.right) / 2, (box.top + box.bottom) / 2, box.width];
    })"""


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def test_a_group_of_similar_objects_is_selected_on_the_other_pages_and_after_a_reload(
    visit, address
):
    page = visit(f"{address}/similar").page
    page.locator("img.ca-row").first.wait_for(timeout=60 * SECOND)
    assert page.locator("img.ca-row").evaluate_all(
        "all => all.every(one => one.naturalWidth > 300)"
    )
    words = page.locator(".st-key-similar-group-0").inner_text()
    count = int(words.split(" rows within")[0].split()[-1])
    page.locator(".st-key-similar-select-0 button:visible").click()
    page.wait_for_url("**sel=**")
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name="Subspaces").click()
    page.wait_for_function(f"() => {SELECTED} === {count}", timeout=60 * SECOND)
    page.wait_for_url("**sel=**")
    page.reload()
    page.wait_for_function(f"() => {SELECTED} === {count}", timeout=60 * SECOND)


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 900])
def test_circles_stand_in_a_square_grid_and_do_not_overlap(visit, address, width):
    page = visit(f"{address}/sharing", width=width).page
    page.locator(".st-key-sharing_grid path.point").first.wait_for(timeout=60 * SECOND)
    circles = page.evaluate(CIRCLES)
    assert len(circles) == 100
    across = circles[1][0] - circles[0][0]
    down = circles[10][1] - circles[0][1]
    assert across == pytest.approx(down, rel=0.06)
    assert max(size for _, _, size in circles) < min(across, down)
