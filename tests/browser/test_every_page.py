"""Tests of every page: accessibility, keyboard use, and 200% zoom."""

import re
from typing import Any

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from tests.browser.test_app import POLL, SECOND, drawn, idle, link, size
from tests.browser.test_explore import settled
from tests.ui.conftest import PAGES

pytestmark, WAIT = pytest.mark.browser, 120 * SECOND


def address_of(address: str, place: str, query: str = "") -> str:
    """Return the link to a page, or to one of its tabs."""
    name, _, tab = place.partition("/")
    return f"{address}/{name if name != 'explore' else ''}?{query}&tab={tab}"


def sound(page, title: str) -> None:
    page.get_by_role("heading", name=title, exact=True, level=1).wait_for(timeout=WAIT)
    idle(page, WAIT / SECOND)
    assert page.locator("[data-testid=stException]").count() == 0
    assert page.locator("[data-testid=stAlertContentError]").all_inner_texts() == []


AT_REST = """!document.querySelector('[data-stale="true"]')
    && document.getAnimations().every((one) => one.playState !== 'running'
      || one.effect.getComputedTiming().iterations === Infinity)"""
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
    return bad.map((element) => `without words: ${element.outerHTML.slice(0, 200)}`);
}"""


def faults_of(page, axe, widths=(), within: str = "html") -> list[str]:
    """Return what stands in the way of reading a page, in sentences; `widths` cut nothing off."""
    page.wait_for_function(
        AT_REST, polling=POLL
    )  # text that is drawn anew has less contrast for a moment
    for _ in range(2):  # what fades in while axe looks at it has its colours at the second look
        page.evaluate(STILL)
        faults = [
            f"{each['id']}: {each['nodes'][0]['html'][:120]}"
            for each in axe.run(page, within).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        if not faults:
            break
    words = page.evaluate(WORDS)
    if words >= MOST_WORDS:
        faults.append(f"{words} words of standing text")
    before = page.viewport_size
    for width in widths:
        page.set_viewport_size(before | {"width": width})
        if page.evaluate(CUT_OFF):
            faults.append(f"cut off at {width} pixels")
    page.set_viewport_size(before)
    return faults


OPENERS = "[data-testid=stPopover] button, [data-testid=stExpander] summary"
OPENED = "[data-testid=stPopoverBody], [data-testid=stExpander], dialog[open]"


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_every_page_and_all_that_opens_can_be_read_by_everybody(visit, server, width, dark):
    """Of every page, each popover and each card that unfolds, and both dialogs of the picture."""
    axe, table = pytest.importorskip("axe_playwright_python.sync_playwright").Axe(), load("digits")
    SelectionStore(server.home).save(table.digest, "first seven", np.arange(table.n_rows) < 7)
    page = visit(server.url, width=width, height=844, dark=dark, still=True).page
    faults, opened = {}, 0
    for place, title in PAGES.items():
        page.goto(address_of(server.url, place))
        sound(page, title)
        faults[place] = faults_of(page, axe, (1440, 900) if width > 1000 else (390,))
        if place in ("components/gallery", "explore"):
            faults[place] += page.evaluate(WITHOUT_WORDS)
        for number in range(page.locator(OPENERS).count()):
            opener = page.locator(OPENERS).nth(number)
            if not opener.is_visible() or opener.is_disabled():
                continue
            words = re.sub(r"\s+", " ", opener.inner_text())
            opener.dispatch_event("click")
            page.locator(OPENED).first.wait_for()
            idle(page, 60)
            opened += 1
            faults[f"{place}: {words}"] = faults_of(page, axe, (), OPENED)
            page.keyboard.press("Escape")
    assert opened >= 15
    page.goto(server.url)
    settled(page)
    idle(page, 60)
    for key, dialog in (("Control+k", "Find anything"), ("?", "Keys")):
        page.keyboard.press(key)
        page.get_by_role("dialog", name=dialog).wait_for()
        faults[dialog] = faults_of(page, axe, (), OPENED)
        page.keyboard.press("Escape")
    assert {place: some for place, some in faults.items() if some} == {}


def press_by_key(page, what: Any, key: str = "Enter") -> None:
    """Go by Tab to an element, and press a key on it."""
    idle(page, WAIT / SECOND)
    for _ in range(120):
        page.keyboard.press("Tab")
        if what.first.evaluate("(element) => element === document.activeElement"):
            return page.keyboard.press(key)
    pytest.fail(f"Tab does not come to {what}")


def test_a_keyboard_alone_reaches_every_page_and_does_the_main_job(visit, address):
    page = visit(f"{address}/", still=True).page
    sound(page, "Explore")
    for title in [*dict.fromkeys(PAGES.values()), "Data"]:
        press_by_key(page, link(page, title))
        sound(page, title)
    press_by_key(page, page.locator(".st-key-source-wine-open button"))
    drawn(page, "explorer.dataset.rows == 178", WAIT / SECOND)
    press_by_key(page, size(page), "ArrowRight")
    page.wait_for_url("**k=5**", timeout=WAIT)
    press_by_key(page, link(page, "Export"))
    sound(page, "Export")
    with page.expect_download(timeout=WAIT) as started:
        press_by_key(page, page.locator(".st-key-download-projection-csv button"))
    assert started.value.suggested_filename.endswith(".csv")


def test_nothing_moves_for_those_who_ask_for_it_and_twice_as_large_all_can_be_used(visit, address):
    page = visit(f"{address}/").page
    drawn(page)
    longest = """() => Math.max(...Array.from(document.querySelectorAll('.stApp *'), (element) => {
        const { transitionDuration, animationDuration } = getComputedStyle(element);
        return Math.max(...`${transitionDuration},${animationDuration}`.split(',').map(parseFloat));
    }))"""
    assert page.evaluate(longest) > 0.05
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(longest) <= 1e-4
    # at 200% a window of 1440 x 1000 holds what one of 720 x 500 holds
    page.set_viewport_size({"width": 720, "height": 500})
    drawn(page, "explorer.clientWidth < 720")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for selector in (".st-key-bar_data", ".appca-explorer", ".st-key-drawer_tab"):
        box = page.locator(selector).first.bounding_box()
        assert box["x"] >= 0, selector
        assert box["x"] + box["width"] <= 720, selector
