"""Tests of Components, Check and Export in a browser: hovered rows, two fits, downloads."""

import base64
from pathlib import Path

import numpy as np
import pytest

from appca.data.sources import load
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.store import RunStore
from tests.browser.test_app import APP, SECOND, idle

pytestmark, WAIT = pytest.mark.browser, 60 * SECOND
PIXELS = """() => {
  const canvas = document.querySelector('.ca-steer-image');
  const seen = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return btoa(String.fromCharCode(...seen.filter((_, i) => i % 4 === 0)));
}"""
Z = "() => JSON.parse(document.querySelector('.ca-steer').dataset.z)"


def known(server, page):
    """Return the fit on screen as people know it."""
    page.wait_for_url("**run=**", timeout=WAIT)
    run = RunStore(server.home).get(page.url.split("run=")[1].split("&")[0])
    return numbered(run.fitted, ComponentNumbers(server.home).of_run(run))


def test_the_rebuilt_row_is_that_of_numpy_under_pointer_and_keys(visit, server):
    page = visit(f"{server.url}/?tab=point&row=digit-7").page
    page.get_by_text("Steer this row").click(timeout=WAIT)
    page.locator(".ca-steer-plane").wait_for(timeout=WAIT)
    idle(page, 60)
    fitted, digits = known(server, page), load("digits")

    def is_rebuilt() -> list[float]:
        z = page.evaluate(Z)
        row = fitted.preprocessing.inverse_transform(fitted.mean + z @ fitted.components)
        wanted = 255 - digits.as_images(row[None])[0].astype(int)
        seen = np.frombuffer(base64.b64decode(page.evaluate(PIXELS)), np.uint8).reshape(8, 8)
        assert np.abs(wanted - seen).max() <= 1  # a value half way may be rounded either way
        return z

    start = is_rebuilt()
    assert np.count_nonzero(start) == 2
    page.locator(".ca-steer-plane").scroll_into_view_if_needed()
    box = page.locator(".ca-steer-plane").bounding_box()
    page.mouse.move(box["x"] + 150, box["y"] + 150)
    page.mouse.down()
    page.mouse.move(box["x"] + 240, box["y"] + 60, steps=4)
    moved = is_rebuilt()  # while the button is down
    page.mouse.up()
    assert sum(value != old for value, old in zip(moved, start, strict=True)) == 2
    sliders = page.locator(".ca-steer").get_by_role("slider")
    sliders.nth(0).focus()
    for key in ("End", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    first = is_rebuilt()[0]
    assert first == pytest.approx(float(np.abs(fitted.scores[:, 0]).max()) * 48 / 50, rel=1e-3)
    assert float(sliders.nth(0).input_value()) == pytest.approx(first, abs=1e-3)
    page.locator(".ca-steer-reset").click()
    assert is_rebuilt() == start
    across = page.get_by_label("Across:")
    chosen = int(across.input_value())
    across.press("ArrowUp" if chosen else "ArrowDown")
    assert int(across.input_value()) == (chosen - 1 if chosen else 1)


def test_a_name_is_typed_over_a_sign_turned_and_an_end_selected(visit, server):
    seen = visit(f"{server.url}/components", still=True)
    page = seen.page
    name = page.locator(".ca-named").nth(1)
    name.wait_for(timeout=WAIT)
    idle(page, 60)
    name.click()
    page.keyboard.type("slant")
    page.keyboard.press("Enter")
    page.locator(".ca-named", has_text="slant").wait_for(timeout=WAIT)
    idle(page, 60)
    picture = "() => document.querySelector('.ca-look img').src"
    before = page.evaluate(picture)
    page.locator("[data-act=flip]").first.click()
    page.wait_for_function(f"before => ({picture})() !== before", arg=before, timeout=WAIT)
    idle(page, 60)
    page.locator("[data-act=select]").first.click()
    page.wait_for_url("**sel=**", timeout=WAIT)
    assert seen.errors == []


def test_compare_draws_two_fits_and_a_selection_is_that_of_both(visit, address):
    page = visit(f"{address}/check?tab=trust", still=True).page
    page.get_by_label("Compare with").click(timeout=WAIT)
    page.get_by_role("option", name="Another start").click()  # a fit that has supports, too
    ready = ".appca-explorer[data-rows]"
    page.wait_for_function(
        "css => document.querySelectorAll(css).length === 2", arg=ready, timeout=WAIT
    )
    page.locator(".st-key-moved_select button").click()
    page.wait_for_function(
        "css => [...document.querySelectorAll(css)].every(one => Number(one.dataset.selected) > 0)",
        arg=ready,
        timeout=WAIT,
    )
    counts = page.locator(ready).evaluate_all("all => all.map(one => one.dataset.selected)")
    assert counts[0] == counts[1]
    page.set_viewport_size({"width": 390, "height": 844})
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    assert page.locator(".stMain, .ca-table").evaluate_all(wide) == 0


KINDS = {  # of the buttons: how a file begins
    "projection-csv": b"id",
    "components-csv": b"feature",
    **dict.fromkeys(("projection-npz", "components-npz", "model", "session"), b"PK"),
    **dict.fromkeys(("components-png", "figure-subspaces"), b"\x89PNG"),
    "projection-parquet": b"PAR1",
    **dict.fromkeys(("picture", "report"), b"<!doctype html>"),
}


@pytest.fixture(scope="module")
def sender(serve):
    """Start a server that no other test puts runs onto."""
    return serve(APP, OMP_NUM_THREADS="1", APPCA_TEST_SERVER="sender")


@pytest.fixture(scope="module")
def files(visit, sender, tmp_path_factory) -> dict[str, Path]:
    """Visit a server that has served nothing yet by a deep link, and press every button once."""
    page = visit(f"{sender.url}/export?k=5", still=True).page
    page.get_by_role("heading", name="Export", exact=True, level=1).wait_for(timeout=60 * SECOND)
    folder, found = tmp_path_factory.mktemp("saved"), {}
    page.locator(".st-key-download-projection-csv button").wait_for(timeout=60 * SECOND)
    assert page.get_by_text("Page not found").count() == 0
    idle(page)
    for key in KINDS:
        with page.expect_download(timeout=60 * SECOND) as waited:
            page.locator(f".st-key-download-{key} button").first.click()
        found[key] = folder / f"{key}{Path(waited.value.suggested_filename).suffix}"
        waited.value.save_as(found[key])
    return found


def test_every_file_arrives_and_the_report_opens_without_a_network(files, browsers):
    for key, start in KINDS.items():  # tests/ui/test_export.py reads them
        assert files[key].read_bytes()[:40].lower().startswith(start.lower()), key
    context = browsers().new_context(offline=True)
    page, asked, errors = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    own = files["report"].as_uri()
    page.goto(own)
    page.wait_for_function(
        "() => [...document.images].filter((one) => one.naturalWidth > 300).length >= 2",
        timeout=40 * SECOND,
    )
    assert [url for url in asked if not url.startswith(("data:", "blob:", own))] == []
    assert errors == []
    context.close()
