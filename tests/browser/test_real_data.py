"""MNIST and COIL-20 from their files, from the Data page to the panels and the map's data."""

import pytest

from tests.browser.test_app import APP, SECOND, idle

pytestmark = [pytest.mark.browser, pytest.mark.real_data]
EXPLORER = "document.querySelector('.appca-explorer')"
NO_PREVIEW = (
    "() => ![...document.querySelectorAll('.stMarkdownBadge')]"
    ".some((badge) => badge.textContent === 'first look')"
)


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def wait(page, condition: str) -> None:
    page.wait_for_function(
        f"() => {{ const explorer = {EXPLORER}; return Boolean(explorer && ({condition})); }}",
        timeout=90 * SECOND,
    )


def open_real(page, source: str) -> None:
    """Open the data set on the page Data, which leads to Explore."""
    idle(page, 60)
    page.locator(f".st-key-source-{source}-open button:enabled").click(timeout=60 * SECOND)
    page.wait_for_url("**run=**", timeout=60 * SECOND)


@pytest.mark.parametrize(
    ("source", "n"),
    [("mnist", 10_000), pytest.param("coil20", 1440, marks=pytest.mark.slow)],
)
def test_a_real_set_is_six_subspaces_with_images(visit, address, source, n):
    page = visit(f"{address}/data").page
    open_real(page, source)
    wait(page, f"explorer.dataset.rows == {n} && explorer.dataset.thumbnails > 20")
    wait(page, "explorer.dataset.panels == 6")
    page.wait_for_function(NO_PREVIEW, timeout=90 * SECOND)


def test_every_digit_is_in_the_picture_of_three_of_ten_components(visit, address):
    page = visit(f"{address}/data").page
    open_real(page, "mnist")
    wait(page, "explorer.dataset.rows == 10000")
    page.goto(f"{address}/?data={page.url.split('data=')[1][:64]}&k=10&l=3")
    wait(page, "explorer.dataset.rows == 10000 && explorer.dataset.settled == 'yes'")
    page.wait_for_function(NO_PREVIEW, timeout=90 * SECOND)
    for view, panels in (("Pairs", "== 45"), ("Subspaces", "> 60")):
        page.get_by_role("radio", name=view).click()
        shown = f"explorer.dataset.view == '{view.lower()}' && explorer.dataset.settled == 'yes'"
        wait(page, f"{shown} && explorer.dataset.rows == 10000")
        wait(page, f"explorer.dataset.panels {panels}")
