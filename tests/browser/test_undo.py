"""The selection and undo in a browser, over pages, reloads, keys, buttons and Back."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.browser.test_app import APP, SECOND, drawn, idle, open_page, size

pytestmark = pytest.mark.browser
ROWS = 178  # of the wine table


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def says(page, count: int) -> None:
    """Wait until the drawer or the page Groups tells this number of rows."""
    told = page.get_by_text(f"of {ROWS} rows").first
    told.wait_for(timeout=60 * SECOND)
    page.get_by_text(re.compile(rf"(^|\b){count}\b")).first.wait_for(timeout=60 * SECOND)
    idle(page)


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


def press(page, key: str) -> None:
    """Press a button, or open what opens; Streamlit draws one with a hint twice, once hidden."""
    idle(page)
    page.locator(f".st-key-{key} button").first.click()


def test_a_selection_goes_over_pages_gets_a_name_is_undone_and_survives_a_reload(visit, address):
    page = visit(f"{address}/data").page
    idle(page)
    page.locator(".st-key-source-wine-open button").click()
    page.locator(".ca-side b", has_text="Wine").wait_for()
    open_page(page, "Explore")
    drawn(page, f"explorer.dataset.rows == {ROWS}")
    count = lasso(page)
    page.get_by_role("radio", name=f"Selection {count}").click(timeout=60 * SECOND)
    says(page, count)
    page.evaluate("document.querySelector('.appca-explorer').dataset.mark = 'same element'")

    press(page, "tray_named")
    page.locator(".st-key-named-new input").fill("my corner")
    page.keyboard.press("Enter")
    page.get_by_text("Named (1)").wait_for()
    idle(page)
    page.keyboard.press("Escape")
    press(page, "tray_invert")
    drawn(page, f"explorer.dataset.selected == {ROWS - count}")
    page.get_by_role("button", name="Undo").click()
    drawn(page, f"explorer.dataset.selected == {count}")
    press(page, "tray_clear")
    drawn(page, "explorer.dataset.selected == 0")
    assert page.evaluate("document.querySelector('.appca-explorer').dataset.mark") == "same element"

    press(page, "tray_named")
    press(page, "named-replace")
    drawn(page, f"explorer.dataset.selected == {count}")
    idle(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Compare with the rest").click()
    page.get_by_role("heading", name="Groups", exact=True, level=1).wait_for()
    says(page, count)
    page.get_by_text(f"The {count} selected rows differ from the rest most in").wait_for()
    page.wait_for_url("**sel=**")
    page.reload()
    says(page, count)
    press(page, "tray_invert")
    says(page, ROWS - count)
    open_page(page, "Explore")
    drawn(page, f"explorer.dataset.selected == {ROWS - count}")

    page.goto(f"{address}/?data={page.url.split('data=')[1][:64]}")  # a new session, nothing chosen
    drawn(page, f"explorer.dataset.rows == {ROWS} && explorer.dataset.selected == 0")
    page.get_by_role("radio", name="Selection").click()
    press(page, "tray_named")
    press(page, "named-replace")
    drawn(page, f"explorer.dataset.selected == {count}")


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
