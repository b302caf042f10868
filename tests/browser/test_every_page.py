"""Every page: few words, no fault for a screen reader, nothing cut off; and on real data."""

from urllib.parse import urlsplit

import pytest

from tests.browser.test_app import APP, SECOND, drawn, idle
from tests.ui.parts.test_pages import PAGES, good_table

AT_REST = """!document.querySelector('[data-stale="true"]')
    && document.getAnimations().every((one) => one.playState !== 'running'
      || one.effect.getComputedTiming().iterations === Infinity)"""

pytestmark = pytest.mark.browser
WAIT = 120 * SECOND
DATA = {
    "wine": "178 rows × 13",
    "mnist": "10,000 rows × 784",
    "coil20": "1,440 rows × 1,024",
    "own": "40 rows × 4",
}


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def open_data(page, address: str, source: str) -> None:
    """Open a data set on the Data page: a built-in one, or an uploaded table."""
    page.goto(f"{address}/data")
    idle(page, WAIT / SECOND)
    if source == "own":
        file = {"name": "own.csv", "mimeType": "text/csv", "buffer": good_table().encode()}
        page.locator("[class*=st-key-upload-] input[type=file]").last.set_input_files(file)
    else:
        page.locator(f".st-key-source-{source}-open button:enabled").click(timeout=WAIT)


def sound(page, title: str) -> None:
    page.get_by_role("heading", name=title, exact=True, level=1).wait_for(timeout=WAIT)
    idle(page, WAIT / SECOND)
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stAlertContentError]").all_inner_texts() == []


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("source", DATA)
def test_every_page_works_by_its_link_and_after_a_reload(visit, address, source, dark):
    opened = visit(f"{address}/", width=900 if dark else 1440, dark=dark)
    page = opened.page
    open_data(page, address, source)
    drawn(page, f"explorer.dataset.rows == {int(DATA[source].split()[0].replace(',', ''))}", 120)
    idle(page, WAIT / SECOND)
    query = urlsplit(page.url).query.partition("&tab=")[0]
    assert "run=" in query
    for place, title in PAGES.items():
        name, _, tab = place.partition("/")
        page.goto(f"{address}/{name if name != 'explore' else ''}?{query}&tab={tab}")
        sound(page, title)
        page.reload()
        sound(page, title)
        named = page.locator(".ca-side", has_text=DATA[source])  # a narrow window hides it
        named.wait_for(state="attached", timeout=WAIT)


MOST_WORDS = 120
WORDS = """() => {
    const texts = ['stMarkdown', 'stCaptionContainer', 'stAlert'];
    const places = texts.map((one) => `[data-testid=stMain] [data-testid=${one}]`).join();
    const seen = [...document.querySelectorAll(places)]
        .filter((one) => one.checkVisibility() && !one.closest('label, button, table'));
    const outer = seen.filter((one) => !seen.some((other) => other !== one && other.contains(one)));
    return outer.map((one) => one.innerText).join(' ').split(/\\s+/)
        .filter((word) => /^[(“]?[a-z]{2,}/i.test(word)).length;
}"""
CUT_OFF = """() => document.documentElement.scrollWidth > innerWidth
    || document.querySelector('[data-testid=stMain]').scrollWidth > innerWidth"""
STILL = """() => Promise.allSettled(document.getAnimations()
    .filter((one) => one.effect.getComputedTiming().iterations !== Infinity)
    .map((one) => one.finished)).then(() => true)"""  # what fades in has less contrast
SIZES = ((1440, 900), (900, 900), (390, 844))


def faults_of(page, axe, sizes=SIZES) -> list[str]:
    """Return what stands in the way of reading a page, in sentences; `sizes` cut nothing off."""
    for _ in range(2):  # what fades in while axe looks at it has its colours at the second look
        page.evaluate(STILL)
        faults = [
            f"{each['id']}: {each['nodes'][0]['html'][:120]}"
            for each in axe.run(page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        if not faults:
            break
    words = page.evaluate(WORDS)
    if words >= MOST_WORDS:
        faults.append(f"{words} words of standing text")
    before = page.viewport_size
    for width, height in sizes:
        page.set_viewport_size({"width": width, "height": height})
        if page.evaluate(CUT_OFF):
            faults.append(f"cut off at {width} pixels")
    page.set_viewport_size(before)
    return faults


@pytest.mark.parametrize("dark", [False, True])
def test_every_page_can_be_read_by_everybody(visit, address, dark):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(f"{address}/", dark=dark).page
    found = {}
    for place, title in PAGES.items():
        name, _, tab = place.partition("/")
        page.goto(f"{address}/{name if name != 'explore' else ''}?tab={tab}")
        sound(page, title)
        idle(page, WAIT / SECOND)
        page.wait_for_function(AT_REST)  # text that is drawn anew has less contrast for a moment
        found[place] = faults_of(page, axe)
    assert {place: faults for place, faults in found.items() if faults} == {}


def press_by_key(page, what, key: str = "Enter") -> None:
    """Go by Tab to an element, and press a key on it."""
    idle(page, WAIT / SECOND)
    for _ in range(120):
        page.keyboard.press("Tab")
        if what.first.evaluate("(element) => element === document.activeElement"):
            return page.keyboard.press(key)
    pytest.fail(f"Tab does not come to {what}")


def test_a_keyboard_alone_reaches_every_page_and_does_the_main_job(visit, address):
    page = visit(f"{address}/").page
    sound(page, "Explore")
    links = page.get_by_test_id("stSidebarNav")
    for title in [*dict.fromkeys(PAGES.values()), "Data"]:
        press_by_key(page, links.get_by_role("link", name=title, exact=True))
        sound(page, title)
    press_by_key(page, page.locator(".st-key-source-wine-open button"))
    drawn(page, "explorer.dataset.rows == 178", WAIT / SECOND)
    press_by_key(page, page.locator("[class*=st-key-k-] input[type=range]"), "ArrowRight")
    page.wait_for_url("**k=5**", timeout=WAIT)
    press_by_key(page, links.get_by_role("link", name="Export", exact=True))
    sound(page, "Export")
    with page.expect_download(timeout=WAIT) as started:
        press_by_key(page, page.locator(".st-key-download-projection-csv button"))
    assert started.value.suggested_filename.endswith(".csv")
