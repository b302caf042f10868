"""Tests of the page Explore in a browser: canvas, sliders, clicks on points, long fits."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from tests.browser.test_app import APP, POLL, SECOND, idle, open_page, size

pytestmark, ROOT = pytest.mark.browser, "document.querySelector('.appca-explorer')"


@pytest.fixture(scope="module")
def page(visit: Any, address: str) -> Any:
    opened = visit(f"{address}/").page
    settled(opened, "said.rows === '1797'")
    return opened


def settled(page: Any, condition: str = "true") -> dict[str, str]:
    """Wait until the picture stands still and says this."""
    still = f"(said) => said?.settled === 'yes' && {condition}"
    page.wait_for_function(f"({still})({ROOT}?.dataset)", timeout=60 * SECOND, polling=POLL)
    return page.evaluate(f"({{ ...{ROOT}.dataset }})")


def choose(page: Any, k: int) -> None:
    """Type K."""
    idle(page, 60)
    box = size(page, "K", "spinbutton")
    box.fill(str(k))
    box.press("Enter")


def set_k(page: Any, k: int) -> None:
    """Type K, whatever the test before has left, and wait for its picture of L = 2."""
    choose(page, k)
    settled(page, f"said.panels === '{k * (k - 1) // 2}'")
    idle(page, 60)


def components(page: Any, k: int) -> dict[str, str]:
    """Number of each component in the drawer, and its picture."""
    page.get_by_role("radio", name="Components").click()
    cards = page.locator(".st-key-drawer_components .ca-piece")
    cards.nth(k - 1).wait_for(timeout=60 * SECOND)  # they come one after another
    idle(page)
    told = "[one.querySelector('[data-act=flip]').dataset.value, one.querySelector('img').src]"
    return dict(cards.evaluate_all(f"(all) => all.map((one) => {told})"))


def test_components_keep_their_numbers_when_k_goes_and_comes_back_and_little_is_sent(page):
    set_k(page, 6)
    before = components(page, 6)
    sizes: list[int] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))),
    )
    page.reload()
    settled(page)
    idle(page, 60)
    sizes.clear()
    set_k(page, 7)
    assert sizes
    assert max(sizes) < 30_000, "the websocket carries no code"
    assert len(set(before) & set(components(page, 7))) >= 4
    set_k(page, 6)
    assert components(page, 6) == before
    asked = (
        "performance.getEntriesByType('resource')"
        ".filter((one) => one.name.includes('/canvas/')).length"
    )
    count = page.evaluate(asked)
    page.get_by_role("radio", name="Point").click()
    page.locator(".ca-point").wait_for(timeout=60 * SECOND)
    idle(page)
    settled(page)
    assert page.evaluate(asked) == count, "a rerun without a change sends no scene again"


def test_the_picture_moves_while_k_is_dragged_and_the_address_when_it_is_dropped(page):
    set_k(page, 5)
    page.wait_for_url("**k=5**", timeout=60 * SECOND)
    before, slider = page.url, size(page).bounding_box()
    left, middle = slider["x"] + 8, slider["y"] + slider["height"] / 2  # half a thumb
    step = (slider["width"] - 16) / 11

    def under_the_hand() -> list[str]:
        return [size(page, name, "spinbutton").input_value() for name in "KL"]

    page.mouse.move(left + 4 * step, middle)
    page.mouse.down()
    page.mouse.move(left + 5 * step, middle, steps=4)
    settled(page, "said.panels === '15'")
    idle(page, 60)
    assert page.url == before
    assert "K = 6, L = 2" in page.locator(".ca-side").inner_text()
    page.mouse.move(left + 6 * step, middle, steps=4)
    assert under_the_hand() == ["7", "2"]
    page.mouse.move(left, middle, steps=4)
    assert under_the_hand() == ["1", "1"], "K pushes L"
    page.mouse.move(left + 5 * step, middle, steps=4)
    assert under_the_hand() == ["6", "2"]
    page.mouse.up()
    page.wait_for_url("**k=6**", timeout=60 * SECOND)
    idle(page, 60)
    assert under_the_hand() == ["6", "2"]


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (900, True), (390, True)])
def test_the_picture_fills_the_window_and_nothing_pushes_it(visit, address, width, dark):
    page = visit(address, width=width, height=844, dark=dark).page
    settled(page, "said.rows === '1797'")
    ground = page.evaluate("getComputedStyle(document.querySelector('.stApp')).backgroundColor")
    assert (sum(map(int, ground.strip("rgb()").split(","))) < 150) == dark
    box = page.locator(".appca-explorer").bounding_box()
    bar = page.locator(".st-key-explore_bar").bounding_box()
    assert box["y"] == bar["y"] + bar["height"] == 52
    assert box["height"] > 650
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator('.st-key-drawer_tab [role="radio"]').first.click()
    page.locator(".st-key-drawer_components .ca-piece").first.wait_for(timeout=60 * SECOND)
    assert page.locator(".appca-explorer").bounding_box() == box
    page.reload()  # the drawer of a narrow window is closed again
    settled(page)
    idle(page, 60)
    view = page.locator(".appca-views").get_by_text("Map", exact=True)
    before = view.bounding_box()
    view.click()
    page.locator(".st-key-bar_map").wait_for(timeout=60 * SECOND)
    idle(page)
    assert view.bounding_box() == before, "under the pointer"


def test_the_view_survives_another_page_and_the_bar_follows_a_search_to_another_view(page):
    page.get_by_role("radio", name="PCA").focus()
    page.keyboard.press("Space")
    settled(page, "said.view === 'pca'")
    open_page(page, "Components")
    open_page(page, "Explore")
    assert settled(page)["view"] == "pca"
    idle(page)
    page.locator(".appca-hit").focus()
    page.keyboard.press("/")
    page.keyboard.type("1,2")
    page.keyboard.press("Enter")
    settled(page, "said.view === 'subspaces {1,2}'")
    page.locator(".appca-views :checked[value=subspaces]").wait_for(state="attached")
    idle(page)
    assert settled(page)["view"] == "subspaces {1,2}", "the page moves nothing"


def test_the_palette_shows_a_named_selection_colours_and_lists_the_keys(page, server):
    digits = load("digits")
    mask = np.arange(digits.n_rows) < 7
    SelectionStore(server.home).save(digits.digest, "first seven", mask)
    page.goto(f"{server.url}/?k=4&l=2")
    settled(page, "said.rows === '1797'")
    idle(page, 60)
    palette = page.locator(".appca-palette")
    page.evaluate("addEventListener('keydown', () => { window.keys += 1 }, true)")

    def find(*keys: str) -> None:
        page.evaluate("document.activeElement.blur(); window.keys = 0")
        for key in ("/", *keys, "Enter"):
            page.keyboard.press(key)
        palette.wait_for(state="hidden")
        assert page.evaluate("window.keys") <= 4

    find("3")  # a component
    chip = page.locator(".appca-chip")
    assert chip.inner_text().startswith("with 3")
    chip.click()
    find("3", "Tab")  # a class: the digits 3
    settled(page, "said.selected === '183'")
    find("#", "8")  # a row, counted from 1
    settled(page, "said.held === '7'")
    page.keyboard.press("Escape")
    settled(page, "said.held === '-1'")
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
    settled(page, "document.querySelector('.appca-colour select').value === 'membership'")
    page.get_by_label("Colour", exact=True).select_option("component:2")  # which may have a name
    settled(page, "document.querySelector('.appca-keytitle').textContent.includes('Component 2')")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    card = page.get_by_role("dialog", name="Keys")
    assert card.get_by_text("Find anything").is_visible()
    page.keyboard.press("Escape")
    card.wait_for(state="hidden")
    page.keyboard.press("7")
    page.get_by_role("heading", name="Export").wait_for(timeout=60 * SECOND)


def test_a_class_is_renamed_in_the_legend_and_a_second_view_is_a_press_away(visit, address):
    page = visit(address, width=900).page
    settled(page)
    legend = page.locator(".appca-class")
    for name, text in (("3", "drei"), ("drei", "three"), ("three", "")):  # the last one restores it
        place = legend.filter(has=page.locator(f"b:text-is('{name}')"))
        place.dblclick() if name == "3" else place.press("F2")
        field = page.locator(".appca-legend .appca-field")
        assert field.input_value() == name
        field.fill(text)
        field.press("Enter")
        page.locator(f".appca-class b:text-is('{text or 3}')").wait_for(timeout=60 * SECOND)
    bar = page.locator(".st-key-explore_bar")
    assert bar.evaluate("(box) => box.scrollWidth <= box.clientWidth")
    bar.get_by_role("button", name="Split").click()
    settled(page, "said.view === 'subspaces+pca'")
    idle(page, 60)
    legend.first.press("Delete")  # 0 has 178 of 1,797 rows
    page.wait_for_function(f"Number({ROOT}.dataset.rows) === 1619", timeout=60 * SECOND)


NEAREST = ".st-key-near_data button"


def click_a_point(page: Any) -> int:
    """Click where a row stands on the map or in a panel; return the row that is held."""
    box = page.locator(".appca-hit").bounding_box()
    for share in range(30, 98, 2):
        page.mouse.click(box["x"] + box["width"] * share / 100, box["y"] + 0.62 * box["height"])
        page.wait_for_timeout(500)  # a second click on the same picture would let go
        held = int(page.evaluate(f"Number({ROOT}.dataset.held)"))
        if held >= 0:
            return held
    pytest.fail("no row stands on a line through the picture")


@pytest.mark.parametrize("width", [1440, 390])
def test_a_click_shows_the_row_and_keys_go_to_its_nearest_rows(visit, address, width):
    page = visit(f"{address}/?k=4&l=2", width=width, height=844).page
    settled(page, "said.panels === '6'")
    idle(page, 60)
    row, heading = click_a_point(page), page.locator(".ca-point .ca-name")
    heading.get_by_text(f"digit-{row}").wait_for(timeout=60 * SECOND)
    assert page.locator("figure", has_text="centre").first.is_visible()
    assert settled(page)["selected"] == "0", "all keep their colours"
    assert page.evaluate("document.body.dataset.drawer === 'open' || innerWidth >= 1000")
    near = page.locator(NEAREST)
    near.first.wait_for(state="attached", timeout=60 * SECOND)  # on a phone below the edge
    idle(page)
    near.first.dispatch_event("click")  # the picture follows the details
    settled(page, f"said.held !== '{row}' && said.held !== '-1'")
    row = int(settled(page)["held"])
    heading.get_by_text(f"digit-{row}").wait_for(timeout=60 * SECOND)
    near.first.wait_for(state="attached", timeout=60 * SECOND)
    idle(page, 60)
    page.locator(".appca-hit").focus()
    said = page.locator(".appca-live")
    for key, place in (("ArrowLeft", 6), ("ArrowRight", 1), ("ArrowRight", 2)):
        page.keyboard.press(key)
        page.locator(".appca-live", has_text=f", {place} of the 6 nearest").wait_for(
            state="attached"
        )
    nearest = re.search(r"[Rr]ow ([\d,]+),", said.text_content())
    page.keyboard.press("Enter")
    number = int(nearest[1].replace(",", "")) - 1  # rows are counted from 1
    assert number != row
    settled(page, f"said.held === '{number}'")
    heading.get_by_text(f"digit-{number}").wait_for()
    idle(page, 60)
    page.locator(".appca-hit").focus()
    page.keyboard.press("n")
    settled(page, "said.selected === '7'")
    page.keyboard.press("Escape")
    settled(page, "said.held === '-1'")


PLOTTED = """([panels, colours]) => {
  const all = (some) => [...document.querySelectorAll(`.st-key-canvas-flat ${some}`)];
  const points = all('.points path');
  return points.length === 1797 && all('.annotation-text').length === panels
    && new Set(points.map((one) => one.style.fill)).size >= colours;
}"""


def test_without_webgl_the_page_says_so_and_plotly_draws_the_panels(
    playwright_driver, chromium, address
):
    flags = ["--no-sandbox", "--disable-gpu", "--disable-3d-apis"]
    browser = playwright_driver.chromium.launch(executable_path=chromium, args=flags)
    page = browser.new_page()
    page.goto(f"{address}/?k=4&l=2")
    page.get_by_text("This browser does not offer WebGL 2").wait_for(timeout=60 * SECOND)
    for k, panels, colour, least in ((4, 6, "label:digit", 10), (5, 10, "component:2", 20)):
        choose(page, k)
        page.get_by_label("Colour", exact=True).select_option(colour)
        page.wait_for_function(PLOTTED, arg=[panels, least], timeout=60 * SECOND)
    browser.close()


HELD = """
import time

from appca.ui import fits as fitting

if not hasattr(fitting, "fits"):
    fitting.fits, fitting.looks = fitting.fit_run, fitting.preview
    fitting.takes = fitting.estimate_seconds

    def held(dataset, config, callback=None, **more):
        while config.k == 7:
            time.sleep(0.05)
            callback(None)
        return fitting.fits(dataset, config, callback=callback, **more)

    def held_look(dataset, config, watch=bool, **more):
        while config.k == 8:
            time.sleep(0.05)
            watch()
        return fitting.looks(dataset, config, watch=watch, **more)

    def long(n_rows, n_features, config, **more):
        return 9.0 if config.k == 8 else fitting.takes(n_rows, n_features, config, **more)

    fitting.fit_run, fitting.preview, fitting.estimate_seconds = held, held_look, long
"""
STRENGTH = """() => {
  const stale = document.querySelectorAll('.st-key-explore_canvas [data-stale=true]').length;
  for (const one of document.getAnimations()) if (one instanceof CSSTransition) one.finish();
  let strength = 1;
  for (let one = document.querySelector('.appca-explorer'); one; one = one.parentElement)
    strength *= Number(getComputedStyle(one).opacity);
  return [stale > 0, strength];
}"""


def held_app(folder: Path) -> Path:
    """Write the app with fits of seven components and previews of eight that never end."""
    (folder / "pages").symlink_to(APP.parent / "pages")
    app = folder / "app.py"
    app.write_text(HELD + APP.read_text())
    return app


def test_fits_and_previews_are_stopped_by_a_press_or_another_k_and_the_picture_stays(
    serve, visit, tmp_path_factory
):
    app = held_app(tmp_path_factory.mktemp("held"))
    page = visit(f"{serve(app, OMP_NUM_THREADS='1').url}/").page
    settled(page, "said.rows === '1797'")
    fitting = page.locator(".st-key-fitting")
    stop = fitting.get_by_role("button", name="Stop")
    choose(page, 7)
    fitting.get_by_text("Fitting K = 7, L = 2 …").wait_for()
    assert page.evaluate(STRENGTH) == [True, 1], "it does not fade"
    assert not page.locator(".ca-outcome").is_visible()
    stop.click()
    page.get_by_role("button", name="Fit fully").wait_for(timeout=60 * SECOND)
    settled(page, "said.panels === '21'")
    idle(page)
    assert fitting.count() == 0
    assert page.locator(".ca-outcome").inner_text() == "Not fitted yet"
    set_k(page, 4)
    choose(page, 8)
    fitting.get_by_text("Fitting K = 8, L = 2 …").wait_for()
    stop.click()
    start = page.get_by_role("button", name="Start the fit")
    start.wait_for(timeout=60 * SECOND)
    idle(page)
    assert fitting.count() == 0
    assert settled(page)["panels"] == "6"
    start.click()
    settled(page, "said.panels === '28'")
    set_k(page, 4)
    page.get_by_role("button", name="Adaptive PPCA").click()
    seed = page.locator("[class*=st-key-set-random_state] input")
    seed.fill("1")
    seed.press("Enter")
    page.keyboard.press("Escape")
    choose(page, 7)
    fitting.get_by_text("Fitting K = 7").wait_for()
    size(page, "K", "spinbutton").fill("5")
    size(page, "K", "spinbutton").press("Enter")
    settled(page, "said.panels === '10'")
    page.wait_for_url("**k=5**", timeout=60 * SECOND)
