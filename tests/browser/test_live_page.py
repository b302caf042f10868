"""The page that fits by itself, opened from the disk: digits, K moved, a table, a session."""

import io
from pathlib import Path

import pytest

from appca.commands.page import live_page
from appca.runs.session import unpack

SHOWS = """([k, n]) => window.appca && appca.stage.meta.components.length === k
  && appca.stage.meta.rows === n && appca.stage.root.dataset.settled"""
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True}
FIREFOX = {"channel": "moz-firefox", "executable_path": "/usr/bin/firefox-esr", "headless": False}


def walk(browser, folder: Path, **look) -> None:
    (file := folder / "live.html").write_bytes(live_page())
    assert file.stat().st_size < 1_200_000
    rows = "".join(f"{i},{i * i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(40))
    (table := folder / "table.csv").write_text(f"a,b,c,kind\n{rows}")
    context = browser.new_context(**look)
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: asked.url.startswith("http") and wrong.append(asked.url))
    page.goto(file.as_uri())
    page.wait_for_function(SHOWS, arg=[4, 1797])
    page.evaluate("""() => { let last = performance.now(); window.longest = 0; setInterval(() => {
      const gap = performance.now() - last; last += gap; longest = Math.max(longest, gap); }); }""")
    for _ in range(5):
        page.get_by_role("slider", name="Components, K").press("ArrowRight")
    page.wait_for_function(SHOWS, arg=[9, 1797])
    assert page.evaluate("longest") < 500  # 50 ms on an idle machine
    page.evaluate("appca.select([1, 2])")
    if browser.browser_type.name == "chromium":  # the other driver reports no downloads
        with page.expect_download() as download:
            page.get_by_label("Save", exact=True).select_option("appca")
        session = unpack("session", io.BytesIO(Path(download.value.path()).read_bytes()), folder)
        assert (session.opened, session.selected.sum()) == (session.runs[0], 2)
    page.locator("input[type=file]").set_input_files(table)
    page.wait_for_function(SHOWS, arg=[3, 40])
    table.write_text("a,b\n1,2\n3,\n")
    page.locator("input[type=file]").set_input_files(table)
    page.get_by_text("Run: appca").wait_for()
    context.close()
    assert wrong == []


@pytest.mark.browser
@pytest.mark.parametrize("look", [{}, PHONE])
def test_a_page_without_server_fits_digits_and_dropped_files(browsers, tmp_path, look):
    walk(browsers(), tmp_path, **look)


@pytest.mark.browser
@pytest.mark.firefox
def test_it_does_so_in_firefox(playwright_driver, tmp_path):
    walk(playwright_driver.firefox.launch(**FIREFOX), tmp_path)
