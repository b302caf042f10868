"""Tests of the app in a browser: first picture, sliders, reloads, undo, fetched scenes."""

import json
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.conftest import ROOT

pytestmark, APP = pytest.mark.browser, Path(__file__).parents[2] / "app.py"
DIGITS = 1797
SECOND = 1000  # milliseconds
POLL = 50  # milliseconds: to look at every frame makes the browser draw sixty of them a second
CANVAS = "document.querySelector('.appca-explorer')"


def drawn(page, condition: str = "true", seconds: float = 60) -> None:
    """Wait until the picture stands still and its root fulfils a condition."""
    page.wait_for_function(
        f"() => {{ const explorer = {CANVAS};"
        f" return explorer?.dataset.settled === 'yes' && Boolean({condition}); }}",
        timeout=seconds * SECOND,
        polling=POLL,
    )


def idle(page, seconds: float = 60) -> None:
    """Wait until the script has ended: what is typed into a widget that is redrawn is lost."""
    page.locator("[data-test-script-state=notRunning]").wait_for(timeout=seconds * SECOND)


def size(page, name: str = "K", role: str = "slider"):
    """Return the slider of K or L, or as "spinbutton" its field."""
    return page.get_by_role(role, name={"K": "Components, K", "L": "a row uses, L"}[name])


def link(page, name: str):
    """Return the link of the navigation to a page."""
    return page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, exact=True)


def open_page(page, name: str) -> None:
    link(page, name).click()
    page.get_by_role("heading", name=name, exact=True, level=1).wait_for(timeout=60 * SECOND)


@pytest.mark.smoke
def test_the_first_page_is_a_finished_picture_and_a_slider_redraws_it_in_place(visit, address):
    page = visit(f"{address}/").page
    drawn(page, f"explorer.dataset.rows == {DIGITS} && explorer.dataset.thumbnails > 20")
    assert page.evaluate(f"{CANVAS}.dataset.panels") == "6"
    assert page.locator("[data-testid=stException]").count() == 0
    page.get_by_role("status").get_by_text("Converged after").wait_for()
    page.evaluate(f"{CANVAS}.dataset.mark = 'same element'")
    slider = size(page)
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


FETCHED = ".fetched[data-names]"


def fetched(page):
    page.wait_for_selector(FETCHED, state="attached", timeout=60_000)
    return page.evaluate(f"() => ({{...document.querySelector('{FETCHED}').dataset}})")


def test_a_scene_is_fetched_once_and_kept_over_a_reload_by_a_new_key(serve, visit):
    page = visit(serve(ROOT / "benchmarks" / "canvas_page.py").url).page
    first = fetched(page)
    assert first["status"] == "200"
    assert int(first["transferred"]) > int(first["bytes"]) > 10_000
    said = json.loads(first["said"])
    assert said["ids"] == ["3", "1"]
    assert [line["title"] for line in said["lines"]] == ["class"]
    page.reload()
    again = fetched(page)
    assert again["key"] != first["key"]
    assert (again["names"], again["bytes"]) == (first["names"], first["bytes"])
    assert int(again["transferred"]) == 0


def lasso(page) -> int:
    """Draw around the left half of the picture."""
    box = page.locator(".appca-hit").bounding_box()
    left, top, right, bottom = box["x"] + 20, box["y"] + 60, box["x"] + 0.6 * box["width"], 800
    page.keyboard.down("Shift")
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 5)):
        page.mouse.move(x, y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    drawn(page, "explorer.dataset.selected > 0")
    return int(page.evaluate("document.querySelector('.appca-explorer').dataset.selected"))


WAIT = 60 * SECOND


def here(page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def until(page, **wanted: str | None) -> None:
    """Wait until the address says this, and the page is drawn."""
    page.wait_for_function(
        """(wanted) => {
            const given = new URLSearchParams(location.search);
            return Object.entries(wanted).every(([name, value]) => given.get(name) === value);
        }""",
        arg=wanted,
        timeout=WAIT,
    )
    idle(page)


def test_five_mixed_steps_are_undone_by_key_button_and_back(visit, serve):
    page = visit(f"{serve(APP, OMP_NUM_THREADS='1').url}/").page
    until(page, k="4", l="2", step="0")
    k, l_ = (size(page, name) for name in "KL")
    name = page.locator(".st-key-drawer_components [data-act=rename]").first
    steps = [here(page) | {"name": ""}]

    def take(**wanted: str) -> None:
        until(page, step=str(len(steps)), **wanted)
        drawn(page)
        steps.append(here(page) | {"name": name.get_attribute("data-name")})

    k.press("ArrowRight")
    take(k="5")
    l_.press("ArrowRight")
    take(l="3")
    name.click()
    page.keyboard.type("round")
    page.keyboard.press("Enter")
    take()
    lasso(page)
    take()
    k.press("ArrowRight")
    take(k="6", l="3")
    assert ["sel" in step for step in steps] == [False] * 4 + [True] * 2
    assert [step["name"] for step in steps[2:5]] == ["", "round", "round"]

    def shows(place: int) -> None:
        wanted = {name: steps[place].get(name) for name in ("k", "l", "run", "step", "sel")}
        until(page, **wanted)
        page.wait_for_function(
            """([k, name]) => document.querySelector('.appca-sizes [type=number]').value === k
            && document.querySelector('.st-key-drawer_components [data-name]').dataset.name
                === name""",
            arg=[steps[place]["k"], steps[place]["name"]],
            timeout=WAIT,
        )
        idle(page)  # what is still on its way ends, so that the next key starts from here

    page.emulate_media(color_scheme="dark")  # Streamlit calls the listener for keys once more
    page.wait_for_function(
        "getComputedStyle(document.querySelector('.stApp')).colorScheme == 'dark'"
    )
    drawn(page)
    undo, redo = (page.get_by_role("button", name=name) for name in ("Undo", "Redo"))
    acts = [(partial(page.keyboard.press, "Control+z"), 4), (undo.click, 3)]
    acts += [(page.go_back, place) for place in (4, 5)]  # undo what was last, which was an undo
    acts += [(page.go_back, place) for place in (4, 3, 2, 1, 0)] + [(page.go_forward, 1)]
    acts += [(partial(page.keyboard.press, "Control+Shift+z"), 2), (redo.click, 3)]
    for act, place in acts:
        act()
        shows(place)
