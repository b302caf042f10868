"""Keyboard, words for those who hear the page, contrast of every text, and a page at 200%."""

import pytest

from tests.browser.contrast import too_faint
from tests.browser.test_app import APP, SECOND, drawn, idle, open_page

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


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
    """The light page Explore, with its picture."""
    open_page(light, "Explore")
    drawn(light)
    return light


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
    for _ in range(20):
        if seen > 15 and not faint:
            break
        page.wait_for_timeout(SECOND / 2)  # on a busy machine words are still fading in
        seen, faint = too_faint(page)
    assert seen > 15
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


@pytest.mark.parametrize(("name", "pictures"), [("Components", 4), ("Explore", 4)])
def test_pictures_figures_and_controls_have_words(page, name, pictures):
    open_page(page, name)
    idle(page)
    if name == "Explore" and page.viewport_size["width"] < 1000:  # the drawer is closed
        page.locator("body:not([data-drawer=open]) .st-key-drawer_tab [role=radio]").first.click()
    page.wait_for_function(f"() => ({WITHOUT_WORDS})().count >= {pictures}", timeout=20 * SECOND)
    assert page.evaluate(WITHOUT_WORDS)["bad"] == []


@pytest.fixture
def twice_as_large(atlas):
    """At 200% a window of 1440 x 1000 holds what one of 720 x 500 holds."""
    atlas.set_viewport_size({"width": 720, "height": 500})
    yield atlas
    atlas.set_viewport_size({"width": 1440, "height": 1000})
    atlas.get_by_test_id("stSidebarNav").wait_for()


def test_twice_as_large_nothing_is_cut_off_and_all_can_be_used(twice_as_large):
    page = twice_as_large
    drawn(page, "explorer.clientWidth < 720")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for selector in (".st-key-bar_data", ".appca-explorer", ".st-key-drawer_tab"):
        box = page.locator(selector).first.bounding_box()
        assert box["x"] >= 0, selector
        assert box["x"] + box["width"] <= 720, selector
