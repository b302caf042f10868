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
def test_a_real_set_is_six_subspaces_with_images(visit, address, source, rows, n):
    page = visit(f"{address}/data").page
    open_real(page, source, rows)
    follow(page, "Explore")
    wait(page, f"explorer.dataset.rows == {n} && explorer.dataset.thumbnails > 20")
    wait(page, "explorer.dataset.panels == 6")
    page.wait_for_function(NO_PREVIEW, timeout=90 * SECOND)


def test_every_digit_is_in_the_picture_of_three_of_ten_components(visit, address):
    page = visit(f"{address}/data").page
    open_real(page, "mnist", "10,000 rows × 784")
    page.goto(f"{address}/?data={page.url.split('data=')[1][:64]}&k=10&l=3")
    wait(page, "explorer.dataset.rows == 10000 && explorer.dataset.settled == 'yes'")
    page.wait_for_function(NO_PREVIEW, timeout=90 * SECOND)
    for view, panels in (("Pairs", "== 45"), ("Subspaces", "> 60")):
        page.get_by_role("radio", name=view).click()
        shown = f"explorer.dataset.view == '{view.lower()}' && explorer.dataset.settled == 'yes'"
        wait(page, f"{shown} && explorer.dataset.rows == 10000")
        wait(page, f"explorer.dataset.panels {panels}")
