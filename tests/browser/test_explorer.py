"""The explorer in a real browser: what is drawn, what is selected, what stays."""

import io
import json
import math

import numpy as np
import pytest
from PIL import Image
from scipy.spatial import cKDTree

from appca.plots.explore.sprites import sprites_of
from tests.browser import explorer_demo

pytestmark = pytest.mark.browser
DEMO = explorer_demo.__file__
DIGITS = 1797
READY = "document.querySelector('.appca-explorer')?.dataset.renders > 0"


@pytest.fixture(scope="session")
def demo(serve) -> str:
    return serve(DEMO).url


@pytest.fixture(scope="module")
def atlas(visit, demo):
    return shown(visit(f"{demo}/").page)


@pytest.fixture(scope="module")
def linked(visit, demo):
    """Three panels that hold all rows each, without thumbnails."""
    return shown(visit(f"{demo}/?panels=map&px=0").page)


@pytest.fixture(scope="session")
def digits():
    return explorer_demo.dataset.__wrapped__("digits", 0)


@pytest.fixture(autouse=True)
def start_over(request):
    """Leave shared pages without selection and zoom, in the mode they began with."""
    yield
    for name in {"atlas", "linked"} & set(request.fixturenames):
        page = request.getfixturevalue(name)
        page.locator(".appca-button[data-action=pan]").click()
        page.locator(".appca-button[data-action=home]").click()
        page.locator(".appca-panel").first.press("Escape")
        until(page, "explorer.dataset.selected === '0'")


def shown(page):
    page.wait_for_function(READY, timeout=30_000)
    return page


def until(page, condition: str) -> None:
    """Wait for a condition on the root element ``explorer`` and Plotly's element ``plot``."""
    page.wait_for_function(
        "() => { const explorer = document.querySelector('.appca-explorer');"
        f" const plot = document.querySelector('.appca-plot'); return {condition}; }}"
    )


def attribute(page, name: str) -> int:
    return int(page.locator(".appca-explorer").get_attribute(f"data-{name}"))


def received(page, count: int) -> list[int]:
    """Wait until Python has ``count`` rows selected, and read which."""
    page.wait_for_function(
        f"JSON.parse(document.querySelector('code').innerText).selected === {count}"
    )
    return json.loads(page.locator("code").inner_text())["rows"]


def on_screen(page, panel: int, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Place data on the screen by Plotly's own axes, (n, 2) pixels of the window."""
    script = """([number, xs, ys]) => {
        const plot = document.querySelector('.appca-plot');
        const box = plot.getBoundingClientRect();
        const tail = number === 0 ? '' : number + 1;
        const across = plot._fullLayout[`xaxis${tail}`];
        const up = plot._fullLayout[`yaxis${tail}`];
        return xs.map((x, i) => [
            box.left + across._offset + across.d2p(x),
            box.top + up._offset + up.d2p(ys[i]),
        ]);
    }"""
    return np.array(page.evaluate(script, [panel, list(map(float, x)), list(map(float, y))]))


def ranges(page) -> list[list[float]]:
    script = """() => {
        const layout = document.querySelector('.appca-plot')._fullLayout;
        return ['xaxis', 'yaxis', 'xaxis2'].map((key) => layout[key].range.map(Number));
    }"""
    return page.evaluate(script)


def circle(centre: tuple[float, float], radius: float, corners: int = 24) -> list[tuple]:
    """Round a polygon's corners to whole pixels, as the mouse has them."""
    angles = [2 * math.pi * i / corners for i in range(corners)]
    return [
        (round(centre[0] + radius * math.cos(a)), round(centre[1] + 0.8 * radius * math.sin(a)))
        for a in angles
    ]


def draw(page, polygon: list[tuple]) -> None:
    page.mouse.move(*polygon[0])
    page.mouse.down()
    for corner in polygon[1:]:
        page.mouse.move(*corner)
    page.mouse.up()


def inside(polygon: list[tuple], points: np.ndarray) -> np.ndarray:
    """Find the points inside by the sum of angles, not by the component's rule."""
    corners = np.array(polygon, float)
    spokes = corners[None] - points[:, None]
    angle = np.arctan2(spokes[..., 1], spokes[..., 0])
    turn = np.diff(np.concatenate([angle, angle[:, :1]], axis=1), axis=1)
    turn = (turn + np.pi) % (2 * np.pi) - np.pi
    return np.abs(turn.sum(axis=1)) > np.pi


def panel_circle(page, panel: int, radius: float = 0.25) -> list[tuple]:
    box = page.locator(".appca-panel").nth(panel).bounding_box()
    centre = (box["x"] + box["width"] * 0.45, box["y"] + box["height"] * 0.5)
    return circle(centre, radius * box["width"])


def test_every_row_is_drawn_once_with_images_in_every_panel(atlas):
    assert attribute(atlas, "points") == DIGITS
    until(atlas, "explorer.dataset.thumbnails > 30")
    titles = atlas.locator(".appca-title b").all_inner_texts()
    counts = [int(title.split(" · ")[1].split()[0].replace(",", "")) for title in titles]
    assert len(counts) == 6
    assert sum(counts) == DIGITS


def test_the_size_slider_changes_images_at_once_and_turns_them_off(atlas):
    slider = atlas.get_by_role("slider", name="Thumbnail size")
    before = attribute(atlas, "thumbnails")
    slider.fill("40")
    until(atlas, f"explorer.dataset.thumbnails < {before}")
    slider.fill("0")
    until(atlas, "explorer.dataset.thumbnails === '0'")
    slider.fill("22")
    until(atlas, f"explorer.dataset.thumbnails === '{before}'")


def test_zooming_in_shows_images_of_more_rows_of_the_part(atlas):
    panel = atlas.locator(".appca-panel").first
    before = ranges(atlas)
    for _ in range(4):
        panel.press("+")
    until(atlas, f"plot._fullLayout.xaxis.range[0] > {before[0][0]}")
    after = ranges(atlas)
    assert (after[0][1] - after[0][0]) < 0.5 * (before[0][1] - before[0][0])
    assert after[2] == before[2]


def test_a_lasso_selects_exactly_the_rows_inside_in_all_panels_and_in_python(linked, digits):
    linked.get_by_role("button", name="Lasso").click()
    polygon = panel_circle(linked, 1)
    places = on_screen(linked, 1, *digits.scores[:, :2].T)
    expected = np.flatnonzero(inside(polygon, places)).tolist()
    assert 50 < len(expected) < DIGITS - 50
    draw(linked, polygon)
    assert received(linked, len(expected)) == expected
    assert attribute(linked, "selected") == len(expected)
    until(linked, f"plot._fullData[2].selectedpoints?.length === {len(expected)}")
    marked = linked.evaluate(
        "document.querySelector('.appca-plot')._fullData.map((t) => Array.from(t.selectedpoints))"
    )
    assert marked == [expected] * 3  # a place is a row where panels hold all rows in order
    words = linked.locator(".appca-title-selected").all_inner_texts()
    assert words == [f"{len(expected):,} selected"] * 3


def test_shift_adds_and_alt_takes_away(linked, digits):
    linked.get_by_role("button", name="Box").click()
    box = linked.locator(".appca-panel").first.bounding_box()
    places = on_screen(linked, 0, *digits.scores[:, :2].T)
    expected = np.zeros(DIGITS, bool)
    for key, (left, right) in {"": (0.3, 0.5), "Shift": (0.6, 0.7), "Alt": (0.4, 0.65)}.items():
        x0, x1 = (round(box["x"] + box["width"] * share) for share in (left, right))
        y0, y1 = round(box["y"] + 40), round(box["y"] + box["height"] - 40)
        if key:
            linked.keyboard.down(key)
        draw(linked, [(x0, y0), (x1 - 5, y1 - 5), (x1, y1)])
        if key:
            linked.keyboard.up(key)
        within = inside([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], places)
        expected = expected & ~within if key == "Alt" else (expected | within)
    assert received(linked, int(expected.sum())) == np.flatnonzero(expected).tolist()


def test_a_click_turns_one_row_on_or_off_and_leaves_the_others(linked, digits):
    rows = lonely_rows(linked, digits, 2)
    first, second = on_screen(linked, 0, *digits.scores[rows, :2].T)
    linked.mouse.click(*first)
    assert received(linked, 1) == [rows[0]]
    linked.mouse.click(*second)
    assert received(linked, 2) == sorted(rows)
    linked.mouse.click(*first)
    assert received(linked, 1) == [rows[1]]


def lonely_rows(page, digits, count: int) -> list[int]:
    """Rows with no other point within 5 pixels in the first panel, some from every part."""
    places = on_screen(page, 0, *digits.scores[:, :2].T)
    distance, _ = cKDTree(places).query(places, k=2)
    lonely = np.flatnonzero(distance[:, 1] > 5)
    assert len(lonely) >= count
    return lonely[np.linspace(0, len(lonely) - 1, count).astype(int)].tolist()


def test_the_hover_card_shows_the_image_the_id_and_the_class_of_the_row(linked, digits):
    for row in lonely_rows(linked, digits, 8):
        linked.mouse.move(*on_screen(linked, 0, *digits.scores[[row], :2].T)[0])
        linked.wait_for_function(
            f"document.querySelector('.appca-card').dataset.row === '{row}' &&"
            " document.querySelector('.appca-card').dataset.image === 'drawn'"
        )
        np.testing.assert_array_equal(card_image(linked, (8, 8)), digits.pixels[row])
        assert linked.locator(".appca-card-id").inner_text() == f"id {row}"
        values = linked.locator(".appca-card dd").all_inner_texts()
        assert values[0] == digits.labels[row]
        x = float(values[2].replace("−", "-"))
        assert x == pytest.approx(digits.scores[row, 0], rel=6e-3)


def card_image(page, shape: tuple[int, int]) -> np.ndarray:
    """Read the card's canvas back: strokes are drawn with the grey level as opacity."""
    script = """([height, width]) => {
        const canvas = document.querySelector('.appca-card-image');
        const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const cell = canvas.width / width;
        const middle = (place) => Math.floor((place + 0.5) * cell);
        const at = (line, column) =>
            pixels.data[4 * (middle(line) * canvas.width + middle(column)) + 3];
        return Array.from({ length: height }, (_, line) =>
            Array.from({ length: width }, (_, column) => at(line, column)));
    }"""
    return np.array(page.evaluate(script, list(shape)))


def test_what_lies_under_the_pointer_is_the_image_drawn_there(atlas):
    """A thumbnail is hit by its whole square, not by the point that happens to be nearest."""
    box = atlas.locator(".appca-panel").first.bounding_box()
    seen = set()
    for step in range(12):
        atlas.mouse.move(box["x"] + box["width"] * (0.2 + 0.05 * step), box["y"] + 90)
        card = atlas.locator(".appca-card")
        if card.is_visible():
            seen.add(card.get_attribute("data-row"))
    assert len(seen) > 1
    atlas.mouse.move(5, 5)
    atlas.locator(".appca-card").wait_for(state="hidden")


def test_recolouring_keeps_element_zoom_and_selection(atlas):
    atlas.evaluate("document.querySelector('.appca-plot').tagged = true")
    atlas.locator(".appca-panel").first.press("+")
    atlas.get_by_role("button", name="Lasso").click()
    draw(atlas, panel_circle(atlas, 0, 0.4))
    until(atlas, "explorer.dataset.selected > 0")
    before, selected = ranges(atlas), attribute(atlas, "selected")
    for name, legend in (("Error", ".appca-bar"), ("Class", ".appca-chip")):
        renders = attribute(atlas, "renders")
        atlas.get_by_text(name, exact=True).first.click()
        until(atlas, f"explorer.dataset.renders > {renders}")
        atlas.locator(legend).first.wait_for()
        assert ranges(atlas) == before
        assert attribute(atlas, "selected") == selected
    assert atlas.evaluate("document.querySelector('.appca-plot').tagged")


def test_another_page_and_back_keeps_selection_and_zoom(atlas):
    start = ranges(atlas)
    atlas.locator(".appca-panel").first.press("-")
    until(atlas, f"plot._fullLayout.xaxis.range[0] < {start[0][0]}")
    atlas.locator(".appca-chip", has_text="3").click()
    rows = received(atlas, attribute(atlas, "selected"))
    before = ranges(atlas)
    atlas.get_by_role("link", name="other").click()
    atlas.get_by_text("Another page").wait_for()
    atlas.get_by_role("link", name="explore").click()
    shown(atlas)
    assert attribute(atlas, "selected") == len(rows) > 0
    assert ranges(atlas) == before
    assert atlas.evaluate("document.querySelectorAll('.js-plotly-plot').length") == 1


def test_a_class_chip_selects_the_class(atlas, digits):
    chip = atlas.locator(".appca-chip", has_text="7")
    chip.click()
    expected = np.flatnonzero(digits.labels == "7").tolist()
    assert received(atlas, len(expected)) == expected
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    until(atlas, "explorer.dataset.selected === '0'")


def test_a_sign_cell_names_counts_and_selects_its_rows(atlas, digits):
    panels = explorer_demo.subset_panels(digits, sprites_of(digits))
    cell = panels[1].cells[3]
    button = atlas.locator(".appca-panel").nth(1).locator(".appca-cell").nth(3)
    assert button.inner_text().split("\n") == [cell.label, f"{cell.n_rows:,}"]
    button.click()
    assert received(atlas, cell.n_rows) == cell.rows.tolist()
    assert button.get_attribute("aria-pressed") == "true"


def test_python_can_change_the_selection_too(atlas):
    atlas.get_by_text("Select every seventh row").click()
    until(atlas, f"explorer.dataset.selected === '{-(-DIGITS // 7)}'")


def test_the_keyboard_reaches_and_moves_everything(atlas):
    atlas.locator(".appca-chip").first.focus()
    names = []
    for _ in range(60):
        atlas.keyboard.press("Tab")
        names.append(
            atlas.evaluate(
                "document.activeElement.getAttribute('aria-label')"
                " ?? document.activeElement.getAttribute('title') ?? ''"
            )
        )
    for word in ("Move", "Lasso", "Box", "Reset", "Thumbnail size", "Panel {", "with signs"):
        assert any(word in name for name in names), word
    panel = atlas.locator(".appca-panel").nth(1)
    panel.focus()
    atlas.keyboard.press("ArrowRight")
    outline = panel.evaluate("(element) => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
    before = ranges(atlas)[2]
    atlas.keyboard.press("Shift+ArrowRight")
    until(atlas, f"plot._fullLayout.xaxis2.range[0] > {before[0]}")
    atlas.keyboard.press("0")
    until(atlas, f"plot._fullLayout.xaxis2.range[0] <= {before[0]}")
    atlas.keyboard.press("l")
    assert atlas.get_by_role("button", name="Lasso").get_attribute("aria-pressed") == "true"
    atlas.locator(".appca-chip").first.click()
    until(atlas, "explorer.dataset.selected > 0")
    atlas.keyboard.press("Escape")
    until(atlas, "explorer.dataset.selected === '0'")


def test_the_wheel_scrolls_the_page_until_a_panel_was_clicked(linked):
    box = linked.locator(".appca-panel").nth(2).bounding_box()
    before = ranges(linked)
    linked.mouse.move(box["x"] + 40, box["y"] + 15)
    linked.mouse.wheel(0, -200)
    linked.get_by_text("hold Ctrl to zoom").wait_for()
    assert ranges(linked) == before
    linked.keyboard.down("Control")
    box = linked.locator(".appca-panel").first.bounding_box()
    linked.mouse.move(box["x"] + 40, box["y"] + 15)
    linked.mouse.wheel(0, -200)
    until(linked, f"plot._fullLayout.xaxis.range[1] < {before[0][1]}")
    linked.keyboard.up("Control")


@pytest.mark.parametrize(("width", "most", "least"), [(900, 2, 1), (1440, 3, 3)])
def test_panels_fit_the_width_and_no_part_covers_another(atlas, width, most, least):
    atlas.set_viewport_size({"width": width, "height": 1000})
    until(atlas, "Math.abs(plot._fullLayout.width - explorer.clientWidth) < 1")
    boxes = [panel.bounding_box() for panel in atlas.locator(".appca-panel").all()]
    columns = len({round(box["x"]) for box in boxes})
    assert least <= columns <= most
    assert min(box["width"] for box in boxes) >= 180
    assert all(box["x"] + box["width"] <= width for box in boxes)
    head = atlas.locator(".appca-head").bounding_box()
    titles = [title.bounding_box() for title in atlas.locator(".appca-title").all()]
    assert all(title["y"] >= head["y"] + head["height"] - 1 for title in titles)


def test_following_the_window_moves_the_panels_but_keeps_the_zoom(atlas):
    start = ranges(atlas)
    atlas.locator(".appca-panel").first.press("+")
    until(atlas, f"plot._fullLayout.xaxis.range[0] > {start[0][0]}")
    before = ranges(atlas)
    atlas.set_viewport_size({"width": 1000, "height": 1000})
    until(atlas, "plot._fullLayout.width < 800")
    assert ranges(atlas) == before
    atlas.set_viewport_size({"width": 1440, "height": 1000})
    until(atlas, "plot._fullLayout.width > 900")


def test_dark_mode_recolours_the_figure(atlas):
    def brightness() -> float:
        text = atlas.evaluate("document.querySelector('.appca-plot')._fullLayout.font.color")
        return sum(int(text[i : i + 2], 16) for i in (1, 3, 5)) / 3

    assert brightness() < 90
    for scheme, lowest, highest in (("dark", 180, 255), ("light", 0, 90)):
        renders = attribute(atlas, "renders")
        atlas.emulate_media(color_scheme=scheme)
        until(atlas, f"explorer.dataset.renders > {renders}")
        assert lowest <= brightness() <= highest


def test_twelve_panels_are_drawn_and_no_webgl_context_is_lost(visit, demo):
    page = shown(visit(f"{demo}/?count=12&px=0", height=1900).page)
    assert page.locator(".appca-panel").count() == 12
    lost = page.evaluate(
        "Array.from(document.querySelectorAll('.appca-plot canvas'), (canvas) => {"
        " const gl = canvas.getContext('webgl') ?? canvas.getContext('webgl2');"
        " return gl ? gl.isContextLost() : false; })"
    )
    assert len(lost) >= 2
    assert not any(lost)
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        screen = np.asarray(picture.convert("RGB"))
    for panel in page.locator(".appca-panel").all():
        box = {key: round(value) for key, value in panel.bounding_box().items()}
        part = screen[box["y"] + 40 :][: box["height"] - 80, box["x"] :][:, : box["width"]]
        assert len(np.unique(part.reshape(-1, 3), axis=0)) > 40


def test_without_webgl_a_part_is_drawn_and_a_lasso_acts_on_all_rows(visit, demo, digits):
    url = f"{demo}/?panels=map&px=0&hostile=1"
    page = shown(visit(url, flags=("--disable-3d-apis",)).page)
    drawn = attribute(page, "points")
    assert 0.9 * 5000 < drawn < 3 * DIGITS
    assert f"{drawn:,} of {3 * DIGITS:,} points drawn" in page.locator(".appca-note").inner_text()
    texts_are_shown_and_never_run(page, digits)
    page.get_by_role("button", name="Lasso").click()
    polygon = panel_circle(page, 0)
    places = on_screen(page, 0, *digits.scores[:, :2].T)
    expected = np.flatnonzero(inside(polygon, places)).tolist()
    draw(page, polygon)
    assert received(page, len(expected)) == expected


def texts_are_shown_and_never_run(page, digits):
    """Ids that look like markup appear as they are."""
    row = lonely_rows(page, digits, 1)[0]
    page.mouse.move(*on_screen(page, 0, *digits.scores[[row], :2].T)[0])
    page.wait_for_function("document.querySelector('.appca-card').dataset.row !== undefined")
    assert page.locator(".appca-card-id").inner_text() == f"{explorer_demo.HOSTILE} {row}"
    assert page.locator(".appca-card img").count() == 0
    assert page.title() != "1"


def test_the_modebar_the_logo_and_the_cloud_are_not_there(atlas):
    assert atlas.locator(".modebar").count() == 0
    assert atlas.get_by_text("Share chart").count() == 0


@pytest.mark.real_data
def test_images_beyond_the_first_sheets_are_fetched_and_are_the_right_ones(visit, demo):
    """MNIST, 10,000 rows on ten sheets: hover rows whose images were not sent at first."""
    page = shown(visit(f"{demo}/?data=mnist&panels=map&px=0").page)
    data = explorer_demo.dataset.__wrapped__("mnist", 10_000)
    order = sprites_of(data).priority
    lonely = np.array(lonely_rows(page, data, 40))
    late = lonely[order[lonely] >= 2 * 1024][:4]
    assert len(late) == 4
    for row in late:
        place = on_screen(page, 0, *data.scores[[row], :2].T)[0]
        page.mouse.move(*place)
        page.wait_for_function(
            f"document.querySelector('.appca-card').dataset.row === '{row}' &&"
            " document.querySelector('.appca-card').dataset.image === 'drawn'"
        )
        np.testing.assert_array_equal(card_image(page, (28, 28)), data.pixels[row])
        assert page.locator(".appca-card dd").first.inner_text() == data.labels[row]
