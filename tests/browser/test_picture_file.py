"""Tests of pages opened from disk: 10,000 images in one file, and the page that fits."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import appca
from appca.analysis.components import principal_scores
from appca.canvas.html import picture_page
from appca.canvas.scene import Map, scene_shown
from appca.commands.page import live_page
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.runs.fit import preview
from appca.runs.run import RunConfig, defaults
from appca.runs.session import unpack
from tests.browser.conftest import WAIT_MS
from tests.browser.test_app import idle
from tests.browser.test_tasks import drop, see

pytestmark = pytest.mark.browser
N, MOST_BYTES = 10_000, 4_000_000


def images() -> Dataset:
    """The digits of scikit-learn, larger, shifted and noisy."""
    small, rng = load("digits"), np.random.default_rng(0)
    rows, wide = rng.integers(0, small.n_rows, N), np.zeros((N, 28, 28), np.uint8)
    wide[:, 2:26, 2:26] = (15 * small.X[rows].reshape(N, 8, 8)).repeat(3, 1).repeat(3, 2)
    ink = np.clip(wide + rng.integers(-3, 4, wide.shape), 0, 255) * (wide > 0)
    X = np.roll(ink, 1, axis=2).reshape(N, 784).astype(np.uint8)
    labels = {"digit": small.labels["digit"][rows]}
    return Dataset("images", X, np.arange(N).astype(str), labels, (28, 28))


def file_of(dataset: Dataset) -> bytes:
    parameters = defaults("aPPCA") | {"n_components": 5, "n_active": 2}
    config = RunConfig(dataset.digest, {"divide": 255.0}, "aPPCA", parameters)
    principal = principal_scores(dataset.X.astype(np.float32))[0]
    scene = scene_shown(dataset, preview(dataset, config).fitted, {"pca": Map("PCA", principal)})
    return picture_page([scene], dataset.name, next(iter(scene.meta["colourings"])))


@pytest.fixture
def opened(browsers):
    """Return what opens a file with all other requests blocked; at the end there was none."""
    blocked, errors, contexts = [], [], []

    def open_file(made):
        def only_files(route) -> None:
            if route.request.url == made.as_uri() or route.request.url.startswith("data:"):
                route.continue_()
            else:
                blocked.append(route.request.url)
                route.abort()

        contexts.append(browsers().new_context(viewport={"width": 1200, "height": 800}))
        contexts[-1].set_default_timeout(WAIT_MS)
        contexts[-1].route("**/*", only_files)
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(made.as_uri())
        page.locator("html[data-ready=yes]").wait_for()
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert (blocked, errors) == ([], [])


def settled(page, condition: str = "true") -> None:
    page.wait_for_function(
        "() => { const said = appca.stage.root.dataset;"
        f" return said.settled === 'yes' && Boolean({condition}); }}"
    )


def lasso(page, box) -> None:
    page.get_by_role("button", name="Lasso").first.click()
    corners = [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def test_ten_thousand_images_are_explored_found_and_turned_in_one_file(opened, tmp_path):
    made = tmp_path / "picture.html"
    made.write_bytes(file_of(images()))
    assert made.stat().st_size <= MOST_BYTES
    page = opened(made)
    settled(page, f"said.rows == {N} && said.thumbnails > 10")
    page.get_by_label("Colour", exact=True).select_option("residual")
    settled(page, "appca.stage.colouringName === 'residual'")
    page.get_by_label("Colour", exact=True).select_option("label:digit")
    page.get_by_role("radio", name="PCA").check(force=True)
    settled(page, "said.view === 'pca' && said.thumbnails > 10")
    box = page.locator(".appca-hit").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    card = page.locator(".appca-card")
    card.wait_for(state="visible")
    assert card.locator("canvas").is_visible()
    assert "digit" in card.text_content()
    lasso(page, box)
    settled(page, "said.selected > 1000")
    page.keyboard.press("Escape")
    page.get_by_role("radio", name="Subspaces").check(force=True)
    settled(page, "said.view === 'subspaces'")
    page.evaluate("appca.stage.hit.focus()")
    page.keyboard.press("/")
    page.keyboard.type("row 4321")
    page.locator(".appca-found [role=option]").first.wait_for()
    page.keyboard.press("Enter")
    settled(page, "said.selected == 1")
    page.evaluate("appca.actions.open(appca.stage.views[0], 0)")
    settled(page, "said.view.includes('{')")
    page.get_by_role("button", name="Play the turn (T)").click()
    page.wait_for_function("() => appca.stage.tour && appca.stage.tour.t > 0")


def test_sliders_of_k_and_l_move_between_the_fits_of_a_file(opened, tmp_path):
    made, wine = tmp_path / "sliders.html", load("wine")
    X = (wine.X - wine.X.mean(axis=0)) / wine.X.std(axis=0)
    model = appca.AdaptivePPCA(random_state=0)
    appca.save_html(made, model, X, wine.labels, n_components=(2, 3, 5), n_active=(1, 2, 3))
    page = opened(made)
    k = page.get_by_role("slider", name="Components, K")
    active = page.get_by_role("slider", name="Components a row uses, L")
    shown = lambda: [slider.get_attribute("aria-valuetext") for slider in (k, active)]  # noqa: E731
    assert shown() == ["K = 3", "L = 2"]
    assert not page.locator("header button").filter(visible=True).count(), "no step to undo"
    settled(page, "said.panels == 3")
    page.evaluate("appca.select([3, 5])")
    k.press("ArrowRight")
    settled(page, "said.panels == 10")
    assert shown() == ["K = 5", "L = 2"]
    active.press("ArrowRight")
    page.get_by_role("radio", name="Pairs").check(force=True)  # not there for L = 2
    settled(page, "said.view == 'pairs'")
    k.press("Home")
    settled(page, "said.panels == 1")
    assert shown() == ["K = 2", "L = 2"], "two components allow at most two in a row"
    assert page.evaluate("appca.stage.rows.selected") == 2, "the selection stays"
    assert page.locator("output.appca-count").inner_text() == "2 selected"
    k.press("End")
    settled(page, "said.panels == 10")
    assert shown() == ["K = 5", "L = 3"], "the L that was wanted comes back"
    active.press("Home")
    settled(page, "said.panels == 5")


SHOWS = """([k, n]) => window.appca && appca.stage.meta.components.length === k
  && appca.stage.meta.rows === n && appca.stage.root.dataset.settled"""
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True}
POINT = """() => { // the place, from the centre, of the image nearest to it
  const { images, placed, width, height } = appca.stage;
  return images.flatMap(({ wanted }) => wanted).map(({ key, raw: [u, v] }) => {
    const { plot, range: [x0, x1, y0, y1] } = placed.find((spot) => spot.key === key);
    return [plot.x + plot.w * (u - x0) / (x1 - x0) - width / 2,
      plot.y + plot.h * (y1 - v) / (y1 - y0) - height / 2];
  }).sort((a, b) => Math.hypot(...a) - Math.hypot(...b))[0]; }"""
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

    page.locator(".live-status[data-state=done]").wait_for()  # no better fit moves the points
    before = page.evaluate("appca.stage.views[0].cam.k")
    drag(*(((-20 - 5 * i, 0), (20 + 5 * i, 0)) for i in range(8)))
    page.wait_for_function("k => appca.stage.views[0].cam.k > 1.5 * k", arg=before)
    page.wait_for_function("() => appca.stage.root.dataset.settled")
    u, v = page.wait_for_function(POINT).json_value()
    page.touchscreen.tap(x + u, y + v)
    page.wait_for_function("appca.stage.rows.selected === 1")
    page.get_by_role("button", name="Lasso (L)").tap()
    drag(*(((u, v),) for u, v in ((-185, -200), (185, -200), (185, 200), (-185, 200))))
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


def test_a_page_without_server_fits_and_the_app_opens_its_session(
    browsers, tmp_path, visit, address
):
    saved, page = walk(browsers(), tmp_path), visit(f"{address}/data", still=True).page
    page.get_by_text("Drop a file").wait_for()
    idle(page, 60)
    drop(page, ("digits.appca", saved))
    see(page, 1797, images=True)
    page.wait_for_function("document.querySelector('.appca-explorer').dataset.selected == 2")
    assert (
        page.get_by_role("slider", name="Components, K").get_attribute("aria-valuetext") == "K = 9"
    )


def test_it_does_so_by_touch_on_a_phone(browsers, tmp_path):
    walk(browsers(), tmp_path, **PHONE)


@pytest.mark.firefox
def test_it_does_so_in_firefox(playwright_driver, tmp_path):
    walk(playwright_driver.firefox.launch(**FIREFOX), tmp_path)
