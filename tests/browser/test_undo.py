"""Undo in a browser, by keys, buttons and Back."""

from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.test_app import APP, SECOND, drawn, idle, size

pytestmark = pytest.mark.browser


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
    opened = visit(f"{serve(APP, OMP_NUM_THREADS='1').url}/")
    page = opened.page
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
    page.keyboard.press("Control+z")
    shows(4)
    page.get_by_role("button", name="Undo").click()
    shows(3)
    page.go_back()  # undoes the last thing, which was an undo
    shows(4)
    page.go_back()
    shows(5)
    for place in (4, 3, 2, 1, 0):
        page.go_back()
        shows(place)
    page.go_forward()
    shows(1)
    page.keyboard.press("Control+Shift+z")
    shows(2)
    page.get_by_role("button", name="Redo").click()
    shows(3)
