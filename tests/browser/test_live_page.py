"""The page that fits by itself, opened from the disk: digits, K moved, a table, what it saves."""

import io
from pathlib import Path

import pytest
from PIL import Image

from appca.commands.page import live_page
from appca.runs.session import unpack
from tests.browser.test_app import idle
from tests.browser.test_tasks import drop, see

SHOWS = """([k, n]) => window.appca && appca.stage.meta.components.length === k
  && appca.stage.meta.rows === n && appca.stage.root.dataset.settled"""
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True}
POINT = """() => { const { images, placed, root, width, height } = appca.stage; // of an image
  const { left, top } = root.getBoundingClientRect();
  return images.flatMap(({ wanted }) => wanted).map(({ key, raw: [u, v] }) => {
    const { plot, range: [x0, x1, y0, y1] } = placed.find((spot) => spot.key === key);
    return [plot.x + plot.w * (u - x0) / (x1 - x0), plot.y + plot.h * (y1 - v) / (y1 - y0)];
  }).filter(([x, y]) => Math.abs(x - width / 2) < 150 && Math.abs(y - height / 2) < 150)
    .map(([x, y]) => [left + x, top + y])[0]; }"""
FIREFOX = {"channel": "moz-firefox", "executable_path": "/usr/bin/firefox-esr", "headless": False}


def touch(page) -> None:
    """Zoom by two fingers, tap a point and draw a lasso."""
    hand, box = page.context.new_cdp_session(page), page.locator(".appca-hit").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def send(kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x + u, "y": y + v, "id": i} for i, (u, v) in enumerate(places)]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def drag(*moves: tuple[tuple[float, float], ...]) -> None:
        send("touchStart", *moves[0])
        for move in moves[1:]:
            send("touchMove", *move)
        send("touchEnd")

    before = page.evaluate("appca.stage.views[0].cam.k")
    drag(*(((-20 - 5 * i, 0), (20 + 5 * i, 0)) for i in range(8)))
    page.wait_for_function("k => appca.stage.views[0].cam.k > 1.5 * k", arg=before)
    page.wait_for_function("""() => appca.stage.root.dataset.settled""")
    page.touchscreen.tap(*page.evaluate(POINT))
    page.wait_for_function("appca.stage.rows.selected === 1")
    page.get_by_role("button", name="Lasso (L)").tap()
    drag(*(((u, v),) for u, v in ((-150, -150), (150, -150), (150, 150), (-150, 150))))
    page.wait_for_function("appca.stage.rows.selected > 2")


def walk(browser, folder: Path, **look) -> bytes:
    """Use the page, by touch where there is one; return the session that it saved."""
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
    slider, saver = page.get_by_role("slider", name="Components, K"), page.get_by_label("Save")
    if touches := look.get("has_touch", False):
        slider.tap(position={"x": 0.72 * slider.bounding_box()["width"], "y": 8})
    for _ in range(0 if touches else 5):
        slider.press("ArrowRight")
    page.wait_for_function(SHOWS, arg=[9, 1797])
    assert page.evaluate("longest") < 500  # 50 ms on an idle machine
    if touches:
        touch(page)
        saver.tap()
    page.evaluate("appca.select([1, 2])")
    saved = b""
    if browser.browser_type.name == "chromium":  # the other driver reports no downloads
        with page.expect_download() as download:
            saver.select_option("png")
        image = Image.open(download.value.path())
        assert image.width == page.evaluate("appca.stage.canvas.width")
        assert len(image.convert("RGB").getcolors(1 << 24)) > 100
        with page.expect_download() as download:
            saver.select_option("appca")
        saved = Path(download.value.path()).read_bytes()
        session = unpack("session", io.BytesIO(saved), folder)
        assert (session.opened, session.selected.sum()) == (session.runs[0], 2)
    page.locator("input[type=file]").set_input_files(table)
    page.wait_for_function(SHOWS, arg=[3, 40])
    table.write_text("a,b\n1,2\n3,\n")
    page.locator("input[type=file]").set_input_files(table)
    page.get_by_text("Run: appca").wait_for()
    context.close()
    assert wrong == []
    return saved


@pytest.mark.browser
def test_a_page_without_server_fits_and_the_app_opens_its_session(
    browsers, tmp_path, visit, address
):
    saved = walk(browsers(), tmp_path)
    page = visit(f"{address}/data", still=True).page
    page.get_by_text("Drop a file").wait_for()
    idle(page, 60)
    drop(page, ("digits.appca", saved))
    see(page, 1797, images=True)
    page.wait_for_function("document.querySelector('.appca-explorer').dataset.selected == 2")
    assert (
        page.get_by_role("slider", name="Components, K").get_attribute("aria-valuetext") == "K = 9"
    )


@pytest.mark.browser
def test_it_does_so_by_touch_on_a_phone(browsers, tmp_path):
    walk(browsers(), tmp_path, **PHONE)


@pytest.mark.browser
@pytest.mark.firefox
def test_it_does_so_in_firefox(playwright_driver, tmp_path):
    walk(playwright_driver.firefox.launch(**FIREFOX), tmp_path)
