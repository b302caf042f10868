"""The app in a real browser: the first picture, live sliders, jobs and reloads."""

import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"
DIGITS = 1797
SECOND = 1000  # milliseconds
CANVAS = "document.querySelector('.appca-explorer')"


def drawn(page, condition: str = "true", seconds: float = 60) -> None:
    """Wait until the picture stands still and its root fulfils a condition."""
    page.wait_for_function(
        f"() => {{ const explorer = {CANVAS};"
        f" return explorer?.dataset.settled === 'yes' && Boolean({condition}); }}",
        timeout=seconds * SECOND,
    )


def idle(page, seconds: float = 60) -> None:
    """Wait until the script has ended: what is typed into a widget that is redrawn is lost."""
    page.locator("[data-test-script-state=notRunning]").wait_for(timeout=seconds * SECOND)


def link(page, name: str):
    """Return the link of the navigation to a page."""
    return page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, exact=True)


def open_page(page, name: str) -> None:
    link(page, name).click()
    page.get_by_role("heading", name=name, exact=True, level=1).wait_for(timeout=60 * SECOND)


def press(page, key: str) -> None:
    """Press a button, or open what opens; Streamlit draws one with a hint twice, once hidden."""
    idle(page)
    page.locator(f".st-key-{key} button").first.click()


def set_number(page, name: str, value: int) -> None:
    idle(page)
    box = page.locator(f"[class*=st-key-{name}] input[type=number]")
    box.fill(str(value))
    box.press("Enter")
    idle(page)


def start_a_long_fit(page, seed: int) -> str:
    """Start what takes minutes, many restarts on many components; return the job's name."""
    drawn(page)
    press(page, "bar_model")
    set_number(page, "set-n_init", 50)
    set_number(page, "set-random_state", seed)
    page.keyboard.press("Escape")
    set_number(page, "k_typed", 30)
    page.wait_for_url("**k=30**")
    set_number(page, "l_typed", 15)
    page.wait_for_url("**l=15**")
    offered = page.locator(".st-key-refine button, .st-key-start_fit button")
    last = time.monotonic() + 60
    while time.monotonic() < last:  # on a slow machine the job of a setting on the way comes first
        idle(page)
        if offered.count():
            offered.first.click()
        job = page.url.partition("job=")[2].partition("&")[0]
        page.wait_for_timeout(500)
        if job and page.locator(f".st-key-cancel-{job} button").count():
            return job
    raise AssertionError(page.url)


@pytest.mark.smoke
def test_the_first_page_is_a_finished_picture_and_a_slider_redraws_it_in_place(visit, address):
    page = visit(f"{address}/").page
    drawn(page, f"explorer.dataset.rows == {DIGITS} && explorer.dataset.thumbnails > 20")
    assert page.evaluate(f"{CANVAS}.dataset.panels") == "6"
    assert page.locator("[data-testid=stException]").count() == 0
    page.get_by_role("status").get_by_text("Converged after").wait_for()
    page.evaluate(f"{CANVAS}.dataset.mark = 'same element'")
    slider = page.locator("[class*=st-key-k-] input[type=range]")
    slider.press("ArrowRight")
    page.wait_for_url("**k=5**")
    drawn(page, f"explorer.dataset.panels == 10 && explorer.dataset.rows == {DIGITS}")
    assert page.evaluate(f"{CANVAS}.dataset.mark") == "same element"
    page.reload()
    drawn(page, "explorer.dataset.panels == 10")
    for _ in range(5):  # no key of a quick hand is lost
        slider.press("ArrowRight")
    page.wait_for_url("**k=10**")
    drawn(page, "explorer.dataset.panels == 45")
    for _ in range(4):
        slider.press("ArrowLeft")
        page.wait_for_timeout(40)  # milliseconds, in which the callback or the page is under way
    page.wait_for_url("**k=6**")
    drawn(page, "explorer.dataset.panels == 15")


def test_a_fit_survives_pages_and_reloads_and_is_stopped(visit, address):
    page = visit(f"{address}/").page
    job = start_a_long_fit(page, seed=3)
    stop = page.locator(f".st-key-cancel-{job}")
    open_page(page, "Groups")
    stop.wait_for()
    open_page(page, "Explore")
    page.wait_for_url(f"**job={job}**")  # a link of the navigation takes it away for a moment
    idle(page)
    page.reload()
    stop.wait_for(timeout=60 * SECOND)
    assert job in page.url
    stop.locator("button").click()
    stop.wait_for(state="detached", timeout=60 * SECOND)
