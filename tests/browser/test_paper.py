"""Paper in a real browser: every figure there, few words; and two fits with one selection."""

import re

import pytest

from appca.studies.catalogue import shipped
from tests.browser.test_app import APP, SECOND

pytestmark = pytest.mark.browser
MOST_WORDS = 120  # of standing text: what stands beside titles, verdicts and numbers
WORDS = "document.querySelector('[data-testid=stMain]').innerText"


def test_paper_shows_every_figure_that_ships_at_once_with_few_words(serve, visit):
    server = serve(APP)
    page = visit(f"{server.url}/paper").page
    drawn = ".st-key-paper_cards .js-plotly-plot .main-svg"
    page.wait_for_function(
        "([css, n]) => new Set([...document.querySelectorAll(css)]"
        ".map(one => one.closest('.js-plotly-plot'))).size >= n",
        arg=[drawn, len(shipped())],
        timeout=60 * SECOND,
    )
    assert page.locator("[data-testid=stException]").count() == 0
    every = page.evaluate(WORDS)
    cards = page.locator(".ca-paper-title, .ca-chip, .ca-figures, .ca-verdicts").all_inner_texts()
    assert len(re.findall(r"\w+", every)) - len(re.findall(r"\w+", " ".join(cards))) < MOST_WORDS
    page.locator(".st-key-paper_why_planes button").click()
    page.get_by_text("python -m appca paper planes").wait_for(timeout=60 * SECOND)


def test_compare_draws_two_fits_and_a_selection_is_that_of_both(serve, visit):
    server = serve(APP)
    page = visit(f"{server.url}/check?tab=trust").page
    page.get_by_label("Compare with").click()
    page.get_by_role("option", name="Another start").click()  # a fit that has supports, too
    ready = ".appca-explorer[data-rows]"
    page.wait_for_function(
        "css => document.querySelectorAll(css).length === 2", arg=ready, timeout=60 * SECOND
    )
    page.locator(".st-key-moved_select button").click()
    page.wait_for_function(
        "css => [...document.querySelectorAll(css)].every(one => Number(one.dataset.selected) > 0)",
        arg=ready,
        timeout=60 * SECOND,
    )
    counts = page.locator(ready).evaluate_all("all => all.map(one => one.dataset.selected)")
    assert counts[0] == counts[1]
    page.set_viewport_size({"width": 390, "height": 844})
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    assert page.locator(".stMain, .ca-table").evaluate_all(wide) == 0
