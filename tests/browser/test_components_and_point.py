"""Components and Point in a real browser: what is selected or flipped there is so on all pages."""

import pytest

from tests.browser.test_app import APP, SECOND, drawn, idle, open_page, select_a_corner

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def test_rows_beyond_a_limit_are_selected_by_a_click_and_a_flip_keeps_them(visit, address):
    seen = visit(f"{address}/point?row=digit-10")
    page = seen.page
    drawn(page, "explorer.dataset.points == 1797")
    assert page.locator(".ca-sum figure").count() == 6
    count = select_a_corner(page)
    page.get_by_text(f"not among the {count:,} selected").wait_for(timeout=20 * SECOND)
    page.wait_for_url("**row=digit-10**")
    idle(page)
    open_page(page, "Components")
    page.get_by_text(f"{count:,} of 1,797 rows").wait_for(timeout=20 * SECOND)
    idle(page)
    picture = "document.querySelector('.ca-pattern img').src"
    before = page.evaluate(picture)
    page.locator(".st-key-flip-0 button").first.click()  # a help text doubles a button
    page.wait_for_function(f"before => {picture} !== before", arg=before, timeout=20 * SECOND)
    idle(page)
    open_page(page, "Subspaces")
    drawn(page, f"explorer.dataset.selected == {count}")
    assert "row=" not in page.url
    assert seen.errors == []
    assert seen.outside == []
