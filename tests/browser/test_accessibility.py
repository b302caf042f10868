"""Keyboard, words for those who hear the page, contrast of every text, and a page at 200%."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from tests.browser import explorer_demo
from tests.browser.contrast import too_faint
from tests.browser.test_app import APP, SECOND, drawn, idle, open_page
from tests.browser.test_explorer import (
    DEMO,
    on_screen,
    panel_circle,
    ranges,
    received,
    shown,
    until,
)

pytestmark = pytest.mark.browser
VOICE = "document.querySelector('.appca-voice').textContent"


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


@pytest.fixture(scope="module")
def linked(visit, serve):
    """Three panels that hold all rows each, without thumbnails."""
    return shown(visit(f"{serve(DEMO).url}/?panels=map&px=0").page)


@pytest.fixture(scope="module")
def digits():
    return explorer_demo.dataset.__wrapped__("digits", 0)


@pytest.fixture
def panel(linked):
    """The first panel with the focus; left as it was found."""
    first = linked.locator(".appca-panel").first
    first.focus()
    yield first
    first.focus()
    linked.keyboard.press("0")
    linked.keyboard.press("Escape")
    until(linked, "explorer.dataset.selected === '0'")


@pytest.fixture(scope="module")
def light(visit, address):
    """A light and wide page."""
    return visit(f"{address}/").page


@pytest.fixture(scope="module")
def dark(visit, address):
    """A dark and narrow page."""
    return visit(f"{address}/", width=900, dark=True).page


@pytest.fixture(params=["light", "dark"])
def page(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def atlas(light):
    """The light page on Explore, with its picture."""
    open_page(light, "Explore")
    drawn(light)
    return light


def cursor(page) -> int:
    """Wait for the card of a point, and return its row."""
    card = page.locator(".appca-card")
    card.wait_for()
    return int(card.get_attribute("data-row"))


def test_arrows_walk_from_point_to_point_and_read_each_out(linked, panel, digits):
    places = on_screen(linked, 0, *digits.scores[:, :2].T)
    box = panel.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    linked.keyboard.press("ArrowRight")
    distance, nearest = cKDTree(places).query(middle, k=2)
    assert cursor(linked) in nearest
    assert distance[0] < 40
    for key, axis, sign in (("ArrowRight", 0, 1), ("ArrowDown", 1, 1), ("ArrowLeft", 0, -1)):
        before = cursor(linked)
        linked.keyboard.press(key)
        after = cursor(linked)
        step = places[after] - places[before]
        assert sign * step[axis] >= max(0.4, abs(step[1 - axis]) - 0.1)
        assert linked.evaluate(VOICE).startswith(f"id {after}: class {digits.labels[after]},")


def test_enter_and_space_turn_the_point_on_and_off_and_escape_clears(linked, panel):
    linked.keyboard.press("ArrowUp")
    first = cursor(linked)
    linked.keyboard.press("Enter")
    assert received(linked, 1) == [first]
    assert linked.evaluate(VOICE) == f"id {first} selected."
    linked.keyboard.press("n")
    second = cursor(linked)
    assert second != first
    linked.keyboard.press("Space")
    assert received(linked, 2) == sorted([first, second])
    linked.keyboard.press("Space")
    assert received(linked, 1) == [first]
    assert linked.evaluate(VOICE) == f"id {second} no longer selected."
    linked.keyboard.press("Escape")
    assert received(linked, 0) == []


def test_all_points_in_view_are_selected_by_a_key(linked, panel, digits):
    before = ranges(linked)[0]
    for _ in range(3):
        linked.keyboard.press("+")
    until(linked, f"plot._fullLayout.xaxis.range[0] > {before[0]}")
    across, up, _ = ranges(linked)
    x, y = digits.scores[:, :2].T
    within = (x >= across[0]) & (x <= across[1]) & (y >= up[0]) & (y <= up[1])
    expected = np.flatnonzero(within).tolist()
    assert 20 < len(expected) < len(x) - 20
    linked.keyboard.press("a")
    assert received(linked, len(expected)) == expected


def test_the_card_stays_at_the_point_while_the_panel_moves(linked, panel):
    linked.keyboard.press("ArrowRight")
    row = cursor(linked)
    card = linked.locator(".appca-card")
    before = card.bounding_box()
    linked.keyboard.press("Shift+ArrowRight")
    linked.wait_for_function(
        "left => document.querySelector('.appca-card').getBoundingClientRect().left < left - 10",
        arg=before["x"],
    )
    assert cursor(linked) == row


def test_the_help_opens_by_key_and_button_and_gives_the_focus_back(linked, panel):
    help_box = linked.get_by_role("dialog", name="Keys and gestures")
    linked.keyboard.press("?")
    help_box.wait_for()
    assert "to the nearest point" in help_box.inner_text()
    linked.keyboard.press("Escape")
    help_box.wait_for(state="hidden")
    assert panel.evaluate("(element) => element === document.activeElement")
    linked.get_by_role("button", name="Keys and gestures").click()
    help_box.get_by_role("button", name="Close").click()
    help_box.wait_for(state="hidden")


def test_escape_gives_up_a_lasso_while_it_is_drawn_and_keeps_the_selection(linked, panel):
    linked.keyboard.press("ArrowRight")
    kept = cursor(linked)
    linked.keyboard.press("Enter")
    received(linked, 1)
    linked.keyboard.press("l")
    for given_up in (True, False):
        polygon = panel_circle(linked, 1)
        linked.mouse.move(*polygon[0])
        linked.mouse.down()
        for corner in polygon[1:]:
            linked.mouse.move(*corner)
        if given_up:
            linked.keyboard.press("Escape")
        linked.mouse.up()
        linked.keyboard.press("n")  # what comes after the release has come when this is answered
        linked.locator(".appca-card").wait_for()
        if given_up:
            assert received(linked, 1) == [kept]
        else:
            until(linked, "explorer.dataset.selected > 1")
    linked.keyboard.press("m")


def test_nothing_moves_for_those_who_ask_for_no_movement(atlas):
    longest = """() => Math.max(...Array.from(document.querySelectorAll('.stApp *'), (element) => {
        const { transitionDuration, animationDuration } = getComputedStyle(element);
        return Math.max(...`${transitionDuration},${animationDuration}`.split(',').map(parseFloat));
    }))"""
    assert atlas.evaluate(longest) > 0.05
    atlas.emulate_media(reduced_motion="reduce")
    assert atlas.evaluate(longest) <= 1e-4
    atlas.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("name", ["Explore", "Components", "Check", "Export"])
def test_every_text_can_be_read_against_its_ground(page, name):
    open_page(page, name)
    idle(page)
    seen, faint = too_faint(page)
    assert seen > 30
    assert faint == []


WITHOUT_WORDS = """() => {
    const shown = (element) => element.checkVisibility();
    const all = (selector) => Array.from(document.querySelectorAll(selector)).filter(shown);
    const named = (element) => [element.getAttribute('aria-label'), element.textContent,
        element.title, element.labels?.[0]?.textContent].some((words) => words?.trim());
    const bad = [
        ...all('img').filter((image) => !/[a-z]{3}/i.test(image.alt)),
        ...all('[data-testid=stPlotlyChart]').filter(
            (chart) => !/^Figure: .*[0-9]/.test(chart.getAttribute('aria-label'))),
        ...all('button, a[href], input').filter((control) => !named(control)),
        ...all('svg:not(.main-svg, #js-plotly-tester)').filter((icon) => !named(icon) &&
            !icon.closest('[aria-hidden=true], [aria-label], button, .js-plotly-plot')),
    ];
    const count = all('img').length + all('[data-testid=stPlotlyChart]').length;
    return { count, bad: bad.map((element) => element.outerHTML.slice(0, 200)) };
}"""


@pytest.mark.parametrize(("name", "pictures"), [("Components", 4), ("Groups", 1), ("Check", 0)])
def test_pictures_figures_and_controls_have_words(page, name, pictures):
    open_page(page, name)
    idle(page)
    page.wait_for_function(f"() => ({WITHOUT_WORDS})().count >= {pictures}", timeout=20 * SECOND)
    assert page.evaluate(WITHOUT_WORDS)["bad"] == []
