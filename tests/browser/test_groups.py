"""Groups in a real browser: a click on a group selects it, and its panel shows it."""

import pytest

from tests.browser.test_app import APP, SECOND, idle

pytestmark = pytest.mark.browser
WAIT = 60 * SECOND


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def test_a_group_is_selected_by_a_click_and_drawn_in_its_panel(visit, address):
    seen = visit(f"{address}/groups")
    page = seen.page
    page.get_by_text("Groups of similar rows").click(timeout=WAIT)
    group = page.locator(".ca-group").nth(2)
    group.wait_for(timeout=WAIT)
    idle(page, 60)
    count = int(group.locator(".ca-quiet").first.inner_text().split()[0])
    panel = group.locator("b").first.inner_text()
    group.click()
    page.wait_for_url("**sel=**", timeout=WAIT)
    page.locator(".ca-group[aria-pressed=true]").wait_for(timeout=WAIT)
    root = "document.querySelector('.st-key-similar_panel .appca-explorer, .appca-explorer')"
    page.wait_for_function(
        f"() => {root} && Number({root}.dataset.selected) === {count}", timeout=WAIT
    )
    assert int(page.evaluate(f"{root}.dataset.panels")) == 1, panel
    page.reload()
    page.get_by_text("Groups of similar rows").click(timeout=WAIT)
    page.locator(".ca-group[aria-pressed=true]").wait_for(timeout=WAIT)
    assert seen.errors == []


def test_a_neighbour_is_looked_at_and_an_unusual_row_selected_by_a_click(visit, address):
    page = visit(f"{address}/?tab=point&row=digit-10").page
    near = page.locator("[class*='st-key-look-'] button").first
    near.wait_for(timeout=WAIT)
    idle(page, 60)
    near.click()
    page.wait_for_url(lambda url: "row=digit-10&" not in f"{url}&", timeout=WAIT)
    name = page.url.split("row=")[1].split("&")[0]
    page.get_by_text(f"Row {name}").wait_for(timeout=WAIT)
    page.get_by_test_id("stSidebarNav").get_by_role("link", name="Groups").click()
    page.get_by_role("radio", name="Unusual").or_(
        page.get_by_role("button", name="Unusual")
    ).first.click()
    row = page.locator(".st-key-unusual_row button")
    row.wait_for(timeout=WAIT)
    idle(page, 60)
    row.click()
    page.wait_for_url("**sel=**", timeout=WAIT)
