"""Several canvases on one page of Streamlit, sharing the pages' selection or having their own."""

import pytest

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser
PATIENCE = 60_000


def settled(page, root: str) -> None:
    one = f"{root} .appca-explorer[data-settled=yes]"
    page.wait_for_selector(one, state="attached", timeout=PATIENCE)


def select_some(page, root: str) -> int:
    """Drag a box over a canvas; return how many rows it selected."""
    page.locator(f"{root} .appca-hit").scroll_into_view_if_needed()
    box = page.locator(f"{root} .appca-hit").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    for x, y in ((0.7, 0.3), (0.7, 0.7), (0.3, 0.7)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    page.wait_for_function(
        "(root) => Number(document.querySelector(root).dataset.selected) > 0",
        arg=f"{root} .appca-explorer",
        timeout=PATIENCE,
    )
    return int(page.locator(f"{root} .appca-explorer").get_attribute("data-selected"))


def test_canvases_on_one_page_share_a_selection_or_have_their_own(serve, visit):
    page = visit(serve(ROOT / "tests" / "browser" / "canvas_page.py").url, height=1300).page
    for root in ("", ".st-key-two", ".st-key-free"):
        settled(page, root)
    said = page.locator(".st-key-two .appca-explorer").evaluate("(one) => ({...one.dataset})")
    assert said["panels"] == "2"
    assert 0 < int(said["rows"]) < 600
    heights = [
        box["height"]
        for box in page.locator(".appca-explorer").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect())"
        )
    ]
    assert heights == [420, 220, 260]
    own = select_some(page, ".st-key-free")
    page.get_by_text(f"all: 0, own: {own}").wait_for(timeout=PATIENCE)
    shared = select_some(page, ".st-key-two")
    page.get_by_text(f"all: {shared}, own: {own}").wait_for(timeout=PATIENCE)
    first = page.locator(".appca-explorer").first
    page.wait_for_function(
        "([one, count]) => one.dataset.selected === String(count)",
        arg=[first.element_handle(), shared],
        timeout=PATIENCE,
    )
