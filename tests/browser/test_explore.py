"""The page Explore: the canvas in a Streamlit page, beside sliders and the one selection."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from tests.browser.test_app import SECOND, idle, open_page

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
ROWS = 1797
ROOT = "document.querySelector('.appca-explorer')"
UNDER_THE_HAND = """["k", "l"].flatMap((name) => [
  getComputedStyle(document.querySelector(`[class*=st-key-${name}_typed-]`), "::after").content,
  document.querySelector(`.ca-side .ca-size-${name}`).textContent,
])"""


@pytest.fixture(scope="module")
def page(serve: Any, visit: Any) -> Any:
    opened = visit(f"{serve(APP, OMP_NUM_THREADS='1').url}/").page
    settled(opened, "said.rows === '1797'")
    return opened


def settled(page: Any, condition: str = "true") -> dict[str, str]:
    """Wait until the picture stands still and says this."""
    still = f"(said) => said?.settled === 'yes' && {condition}"
    page.wait_for_function(f"({still})({ROOT}?.dataset)", timeout=60 * SECOND)
    return page.evaluate(f"({{ ...{ROOT}.dataset }})")


def corner_of_the_map(page: Any) -> list[float]:
    """Left, top, right and bottom of the map's card, in pixels of the window."""
    box = page.locator(".appca-hit").bounding_box()
    x, y, width, height = (box[key] for key in ("x", "y", "width", "height"))
    return [x + 40, y + 0.52 * height, x + 0.28 * width, y + 0.95 * height]


def move_k(page: Any, key: str) -> None:
    idle(page)
    page.locator("[class*=st-key-k-] input").focus()
    page.keyboard.press(key)


def arrived(page: Any, k: int) -> None:
    """Wait for the rerun that a key of K's slider starts: it may overtake what is typed."""
    page.wait_for_url(f"**k={k}&**", timeout=60 * SECOND)
    idle(page)


def set_k(page: Any, k: int) -> None:
    """Type K, whatever the test before has left, and wait for its picture of L = 2."""
    idle(page, 60)
    box = page.locator("[class*=st-key-k_typed-] input")
    box.fill(str(k))
    box.press("Enter")
    settled(page, f"said.panels === '{k * (k - 1) // 2}'")
    idle(page, 60)


def test_every_row_is_in_one_picture_fetched_from_the_server_itself(page):
    set_k(page, 4)
    said = settled(page)
    assert (said["rows"], said["points"], said["panels"]) == ("1797", "1797", "6")
    requests = "performance.getEntriesByType('resource').map((one) => one.name)"
    assert sum("/canvas/" in one for one in page.evaluate(requests)) >= 5


def test_a_lasso_becomes_the_selection_of_all_pages_and_comes_back(page):
    left, top, right, bottom = corner_of_the_map(page)
    page.evaluate(f"{ROOT}.dataset.mark = 'same element'")
    page.keyboard.down("Shift")
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 5)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    count = int(settled(page, "Number(said.selected) > 100")["selected"])
    page.get_by_role("radio", name=f"Selection {count:,}").click(timeout=60 * SECOND)
    page.get_by_text(f"of {ROWS:,} rows").first.wait_for(timeout=60 * SECOND)
    idle(page)
    assert page.evaluate(f"{ROOT}.dataset.mark") == "same element", "a rerun mounts nothing anew"
    page.locator(".st-key-tray_invert button").first.click()
    settled(page, f"Number(said.selected) === {ROWS - count}")
    page.locator(".st-key-tray_clear button").first.click()
    settled(page, "said.selected === '0'")


def test_the_picture_stays_and_its_points_move_when_k_does(page):
    set_k(page, 4)
    page.evaluate(f"{ROOT}.dataset.mark = 'same element'")
    move_k(page, "ArrowRight")
    settled(page, "said.panels === '10'")
    move_k(page, "ArrowLeft")
    said = settled(page, "said.panels === '6'")
    assert said["mark"] == "same element"
    arrived(page, 4)


def components(page: Any, k: int) -> dict[str, str]:
    """Number of each component in the drawer, and its picture."""
    page.get_by_role("radio", name="Components").click()
    cards = page.locator(".st-key-drawer_components .ca-piece")
    cards.nth(k - 1).wait_for(timeout=60 * SECOND)  # they come one after another
    idle(page)
    told = "[one.querySelector('[data-act=flip]').dataset.value, one.querySelector('img').src]"
    return dict(cards.evaluate_all(f"(all) => all.map((one) => {told})"))


def test_components_keep_their_numbers_and_signs_when_k_goes_and_comes_back(page):
    set_k(page, 6)
    before = components(page, 6)
    set_k(page, 7)
    assert len(set(before) & set(components(page, 7))) >= 4
    set_k(page, 6)
    assert components(page, 6) == before


def test_the_picture_moves_while_k_is_dragged_and_the_address_when_it_is_dropped(page):
    set_k(page, 5)
    page.wait_for_url("**k=5**", timeout=60 * SECOND)
    before = page.url
    slider = page.locator('[class*=st-key-k-] [role="group"]').bounding_box()
    left, middle = slider["x"] + 4, slider["y"] + slider["height"] / 2
    step = (slider["width"] - 8) / 11
    page.mouse.move(left + 4 * step, middle)
    page.mouse.down()
    page.mouse.move(left + 5 * step, middle, steps=4)
    settled(page, "said.panels === '15'")
    idle(page, 60)
    assert page.url == before
    page.mouse.move(left + 6 * step, middle, steps=4)
    assert page.evaluate(UNDER_THE_HAND) == ['"7"', "K = 7", '"2"', "L = 2"]
    page.mouse.move(left, middle, steps=4)
    assert page.evaluate(UNDER_THE_HAND) == ['"1"', "K = 1", '"1"', "L = 1"], "K pushes L"
    page.mouse.move(left + 5 * step, middle, steps=4)
    assert page.evaluate(UNDER_THE_HAND) == ['"6"', "K = 6", '"2"', "L = 2"]
    page.mouse.up()
    page.wait_for_url("**k=6**", timeout=60 * SECOND)
    idle(page, 60)
    assert page.locator("[class*=st-key-k_typed-] input").input_value() == "6"
    assert page.evaluate(UNDER_THE_HAND)[:2] == ["none", "K = 6"]


def test_a_chip_says_which_components_are_new(page):
    set_k(page, 4)
    page.evaluate(
        "window.written = new Set(); const all = CanvasRenderingContext2D.prototype;"
        "const write = all.fillText; all.fillText = function (text, ...more) {"
        " written.add(text); return write.call(this, text, ...more) }; void 0"
    )
    set_k(page, 5)
    page.wait_for_function("[...written].some((one) => /^(new|was [1-5])$/.test(one))")


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_map_stays_under_the_pointer_that_chooses_it(visit, page, width):
    other = visit(page.url.partition("?")[0], width=width, height=844).page
    settled(other)
    views = other.locator(".st-key-bar_views")
    before = views.get_by_text("Map", exact=True).bounding_box()
    views.get_by_text("Map", exact=True).click()
    views.locator(".st-key-bar_map").wait_for(timeout=60 * SECOND)
    idle(other)
    assert views.get_by_text("Map", exact=True).bounding_box() == before


def test_a_rerun_without_a_change_sends_no_scene_again(page):
    set_k(page, 4)
    sent = "performance.getEntriesByType('resource')"
    asked = f"{sent}.filter((one) => one.name.includes('/canvas/')).length"
    before = page.evaluate(asked)
    page.get_by_role("radio", name="Point").click()
    page.locator(".ca-point").wait_for(timeout=60 * SECOND)
    idle(page)
    settled(page)
    assert page.evaluate(asked) == before


def test_the_websocket_carries_no_code_with_another_k(page):
    window = page.context.new_page()
    sizes: list[int] = []
    window.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )
    window.goto(page.url)
    settled(window)
    idle(window, 60)
    sizes.clear()
    k = int(window.locator("[class*=st-key-k_typed-] input").input_value())
    set_k(window, 5 if k == 4 else 4)
    assert sizes
    assert max(sizes) < 30_000
    window.close()


@pytest.mark.parametrize("width", [1440, 900, 390])
def test_the_picture_fills_the_window_and_nothing_pushes_it(visit, page, width):
    narrow = visit(page.url, width=width, height=844).page
    settled(narrow)
    box = narrow.locator(".appca-explorer").bounding_box()
    bar = narrow.locator(".st-key-explore_bar").bounding_box()
    assert box["y"] == bar["y"] + bar["height"] == 52
    assert box["height"] > 650
    assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth")
    narrow.locator('.st-key-drawer_tab [role="radio"]').first.click()
    narrow.locator(".st-key-drawer_components .ca-piece").first.wait_for(timeout=60 * SECOND)
    assert narrow.locator(".appca-explorer").bounding_box() == box


def test_the_view_is_chosen_and_survives_a_visit_to_another_page(page):
    page.get_by_role("radio", name="PCA").or_(page.get_by_text("PCA", exact=True)).first.click()
    settled(page, "said.view === 'pca'")
    open_page(page, "Components")
    open_page(page, "Explore")
    assert settled(page)["view"] == "pca"


def test_the_bar_follows_a_search_to_another_view(page):
    pressed = page.locator(".st-key-bar_views [aria-checked=true]")
    page.locator(".st-key-bar_views").get_by_text("PCA").click()
    settled(page, "said.view.startsWith('pca')")
    idle(page)
    page.locator(".appca-hit").focus()
    page.keyboard.press("/")
    page.keyboard.type("1,2")
    page.keyboard.press("Enter")
    settled(page, "said.view === 'subspaces {1,2}'")
    pressed.get_by_text("Subspaces").wait_for(timeout=60 * SECOND)
    idle(page)
    assert settled(page)["view"] == "subspaces {1,2}", "the page moves nothing"


def test_the_palette_shows_a_named_selection_colours_and_lists_the_keys(page, serve):
    digits = load("digits")
    mask = np.arange(digits.n_rows) < 7
    SelectionStore(serve(APP, OMP_NUM_THREADS="1").home).save(digits.digest, "first seven", mask)
    page.reload()
    settled(page, "said.rows === '1797'")
    idle(page, 60)
    page.keyboard.press("Control+k")
    page.keyboard.type("seven")
    page.keyboard.press("Enter")
    settled(page, "said.selected === '7'")
    idle(page, 60)
    page.keyboard.press("Control+k")
    page.get_by_role("group", name="Recent").get_by_text("first seven").wait_for()
    page.keyboard.type("membership")
    page.keyboard.press("Enter")
    page.locator(".st-key-bar_colour").get_by_text("Membership").wait_for(timeout=60 * SECOND)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    card = page.get_by_role("dialog", name="Keys")
    assert card.get_by_text("Find anything").is_visible()
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")
    page.keyboard.press("7")
    page.get_by_role("heading", name="Export").wait_for(timeout=60 * SECOND)


@pytest.mark.parametrize("width", [1440, 900])
def test_a_class_is_renamed_in_the_legend_and_a_second_view_is_a_press_away(visit, serve, width):
    page = visit(serve(APP, OMP_NUM_THREADS="1").url, width=width).page
    settled(page)
    legend = page.locator(".appca-class")
    for name, text in (("3", "drei"), ("drei", "three"), ("three", "")):  # the last one restores it
        place = legend.filter(has=page.locator(f"b:text-is('{name}')"))
        place.dblclick() if name == "3" else place.press("F2")
        field = page.locator(".appca-legend .appca-field")
        assert field.input_value() == name
        field.fill(text)
        field.press("Enter")
        shown = page.locator(f".appca-class b:text-is('{text or 3}')")
        shown.wait_for(timeout=60 * SECOND)
    bar = page.locator(".st-key-explore_bar")
    assert bar.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    bar.locator(".st-key-bar_split button").click()
    settled(page, "said.view === 'subspaces+pca'")
