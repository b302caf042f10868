"""The page that fits by itself, opened from the disk: digits, K moved, a table, a session."""

import io
from pathlib import Path

import pytest

from appca.commands.page import live_page
from appca.runs.session import unpack

GAPS = """() => { let last = performance.now(); window.gaps = [0]; setInterval(() => {
  const now = performance.now(); gaps.push(now - last); last = now; }, 5); }"""
SHOWS = """(k) => window.appca && appca.stage.meta.components.length === k
  && appca.stage.root.dataset.settled"""


def walk(browser, tmp_path: Path, **look) -> list[float]:
    """Fit digits and a table; return the pauses of the page while K moves."""
    (file := tmp_path / "live.html").write_bytes(live_page())
    assert file.stat().st_size < 1_200_000
    table = tmp_path / "irises.csv"
    table.write_text(
        "a,b,c,kind\n" + "".join(f"{i},{i * i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(40))
    )
    context = browser.new_context(accept_downloads=True, **look)
    page = context.new_page()
    errors, asked = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_function(SHOWS, arg=4)
    page.evaluate(GAPS)
    slider = page.get_by_role("slider", name="Components, K")
    for _ in range(5):
        slider.press("ArrowRight")
    page.wait_for_function(SHOWS, arg=9)
    gaps = page.evaluate("gaps")
    page.evaluate("appca.select([1, 2])")
    if browser.browser_type.name == "chromium":  # the other driver reports no downloads
        with page.expect_download() as download:
            page.get_by_label("Save", exact=True).select_option("appca")
        session = unpack("session", io.BytesIO(Path(download.value.path()).read_bytes()), tmp_path)
        assert (session.opened, session.selected.sum()) == (session.runs[0], 2)
    page.locator("input[type=file]").set_input_files(table)
    page.wait_for_function("() => appca.stage.meta.rows === 40 && appca.stage.root.dataset.settled")
    table.write_text("a,b\n1,2\n3,\n")
    page.locator("input[type=file]").set_input_files(table)
    page.get_by_text("Run: appca").wait_for()
    context.close()
    assert errors == []
    assert {url.split(":")[0] for url in asked} <= {"file", "blob", "data"}
    return gaps


@pytest.mark.browser
@pytest.mark.parametrize(
    "look", [{}, {"viewport": {"width": 390, "height": 800}, "has_touch": True}]
)
def test_a_page_without_server_fits_digits_and_dropped_files(browsers, tmp_path, look):
    assert max(walk(browsers(), tmp_path, **look)) < 500  # 50 ms on an idle machine


@pytest.mark.browser
@pytest.mark.firefox
def test_it_does_so_in_firefox(playwright_driver, tmp_path):
    firefox = {"channel": "moz-firefox", "executable_path": "/usr/bin/firefox-esr"}
    walk(playwright_driver.firefox.launch(headless=False, **firefox), tmp_path)
