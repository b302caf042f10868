"""MNIST and COIL-20 from their files, from the Data page to the panels and the map's data."""

import pytest

from tests.browser.test_app import APP, SECOND, idle

pytestmark = [pytest.mark.browser, pytest.mark.real_data]
EXPLORER = "document.querySelector('.appca-explorer')"
NO_PREVIEW = (
    "() => ![...document.querySelectorAll('.stMarkdownBadge')]"
    ".some((badge) => badge.textContent === 'preview')"
)


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def follow(page, name: str) -> None:
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name=name).click()
    page.get_by_role("heading", name=name, exact=True, level=1).wait_for(timeout=30 * SECOND)


def wait(page, condition: str) -> None:
    page.wait_for_function(
        f"() => {{ const explorer = {EXPLORER}; return Boolean(explorer && ({condition})); }}",
        timeout=90 * SECOND,
    )


def open_real(page, source: str, rows: str) -> None:
    """Open the data set on the Data page."""
    page.get_by_role("tab", name="MNIST and COIL-20").click()
    idle(page, 60)
    page.locator(f".st-key-source-{source}-open button:enabled").click()
    page.locator(".ca-side", has_text=rows).wait_for(timeout=60 * SECOND)


@pytest.mark.parametrize(
    ("source", "rows", "n"),
    [
        ("mnist", "10,000 rows × 784", 10_000),
        pytest.param("coil20", "1,440 rows × 1,024", 1440, marks=pytest.mark.slow),
    ],
)
def test_a_real_set_is_six_subspaces_with_images_and_one_selection(visit, address, source, rows, n):
    page = visit(f"{address}/data").page
    open_real(page, source, rows)
    follow(page, "Subspaces")
    wait(page, f"explorer.dataset.points == {n} && explorer.dataset.thumbnails > 20")
    assert page.evaluate(f"{EXPLORER}.querySelectorAll('.appca-panel').length") == 6
    page.wait_for_function(NO_PREVIEW, timeout=90 * SECOND)
    page.locator(".appca-cell").first.click()
    wait(page, "explorer.dataset.selected > 0")
    count = int(page.evaluate(f"{EXPLORER}.dataset.selected"))
    page.wait_for_url("**sel=**")
    follow(page, "Export")
    page.get_by_text(f"Selected ({count:,})").wait_for(timeout=30 * SECOND)


@pytest.mark.slow  # test_pages counts its pairs, test_explorer draws twelve panels: in every run
def test_six_of_twelve_components_open_as_pairs_that_are_paged(visit, address):
    page = visit(f"{address}/data").page
    open_real(page, "mnist", "10,000 rows × 784")
    follow(page, "Subspaces")
    wait(page, "explorer.dataset.points == 10000")
    page.locator(".st-key-k input").focus()
    page.keyboard.press("End")
    wait(page, "explorer.querySelectorAll('.appca-panel').length == 12")
    page.locator(".st-key-l input").focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.get_by_text("1–12 of 66 pairs").wait_for(timeout=90 * SECOND)
    wait(page, "explorer.querySelectorAll('.appca-panel').length == 12")
