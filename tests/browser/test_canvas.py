"""Tests of the canvas in a browser without Streamlit: drawing, selection, details, rotation."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.canvas_files import N, served

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the canvas, its page and scenes."""
    with served(tmp_path_factory.mktemp("canvas")) as found:
        yield found


@pytest.fixture(scope="module")
def opened(visit: Any, address: str) -> Any:
    """One page for all tests."""
    page = visit(f"{address}?d=two", width=1000, height=760).page
    page.set_default_timeout(60_000)
    page.wait_for_function("window.ready")
    return page


@pytest.fixture
def page(opened: Any) -> Any:
    """The page at all panels with nothing selected."""
    opened.evaluate("checks.start()")
    settle(opened)
    return opened


def settle(page: Any) -> dict[str, str]:
    page.wait_for_function("canvas.stage.root.dataset.settled === 'yes' && !canvas.stage.morph")
    return page.evaluate("({ ...canvas.stage.root.dataset })")


def options(page: Any, **given: Any) -> None:
    page.evaluate("(options) => canvas.update({ options })", given)
    settle(page)


def lasso_of_a_panel(page: Any) -> tuple[int, int]:
    """Draw around the third panel; return how many rows are selected, and how many it has."""
    x, y, w, h = (page.evaluate("canvas.stage.placed[2].card")[key] for key in "xywh")
    page.keyboard.down("Shift")
    page.mouse.move(x + 2, y + 2)
    page.mouse.down()
    for px, py in ((x + w - 2, y + 2), (x + w - 2, y + h - 2), (x + 2, y + h - 2), (x + 2, y + 8)):
        page.mouse.move(px, py, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    of_panel = page.evaluate("canvas.stage.views[0].layout.panels[2].count")
    return int(settle(page)["selected"]), of_panel


def test_every_row_is_drawn_in_its_colour_with_images_and_panels_are_listed(page):
    said = settle(page)
    assert (said["rows"], said["points"], said["panels"]) == (str(N), str(N), "10")
    assert page.evaluate("checks.coloursDrawn()") > 20
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 20")
    page.wait_for_function("document.querySelectorAll('.appca-hidden tbody tr').length === 10")
    first = page.locator(".appca-hidden tbody tr").first
    full = page.evaluate("Math.max(...canvas.stage.views[0].layout.panels.map((p) => p.count))")
    assert first.locator("td").nth(2).text_content() == str(full)


def test_a_lasso_selects_in_all_layouts_and_the_host_gets_bits(page):
    selected, of_panel = lasso_of_a_panel(page)
    assert 0.95 * of_panel <= selected <= of_panel
    bits, count = page.evaluate("told.selections.map(([bits, count]) => [[...bits], count]).at(-1)")
    assert count == selected == int(np.unpackbits(np.array(bits, np.uint8)).sum())
    page.evaluate("canvas.morph('pca')")
    assert settle(page)["selected"] == str(selected)


def test_keys_reach_open_step_and_leave_a_panel_wherever_the_focus_is(page):
    page.evaluate("canvas.stage.hit.focus()")
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    first = settle(page)["view"]
    page.keyboard.press("ArrowRight")
    second = settle(page)["view"]
    assert first.startswith("subspaces {")
    assert second.startswith("subspaces {")
    assert first != second
    page.keyboard.press("a")
    assert int(settle(page)["selected"]) > 0
    page.get_by_role("button", name="Play the turn (T)").click()
    page.wait_for_function("canvas.stage.tour")
    page.keyboard.press("Escape")
    assert not page.evaluate("Boolean(canvas.stage.tour)")
    assert settle(page)["view"] == second
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    page.wait_for_selector(".appca-palette[open]")
    for left in (second, "subspaces"):  # the search is closed before the panel below it
        page.keyboard.press("Escape")
        assert settle(page)["view"] == left
    assert page.locator(".appca-live").text_content() == "All panels"
    page.evaluate("canvas.actions.open(canvas.stage.views[0], 0)")
    settle(page)
    page.get_by_role("button", name="All panels", exact=True).click()
    assert settle(page)["view"] == "subspaces"
    page.keyboard.press("Enter")
    assert settle(page)["view"].startswith("subspaces {")


def test_a_key_is_heard_as_soon_as_a_dialog_is_closed(page):
    for opens, opened in (("/", ".appca-palette"), ("?", ".appca-keycard")):
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press(opens)
        page.wait_for_selector(f"{opened}[open]")
        heard = page.evaluate(  # both keys in one turn: no time passes for the browser between them
            """() => {
                let heard = "";
                window.addEventListener("keydown", ({ key }) => { heard += key; }, { once: true });
                for (const key of ["Escape", "7"])
                    document.activeElement.dispatchEvent(
                        new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
                return heard
                    + (document.activeElement.matches(".appca-hit") ? " in the picture" : "");
            }"""
        )
        assert heard == "7 in the picture"


def test_a_double_click_opens_and_closes_a_panel_and_leaves_the_selection(page):
    page.evaluate("canvas.select([1, 2, 3])")
    x, y, w, h = (page.evaluate("canvas.stage.placed[2].plot")[key] for key in "xywh")
    for place in ((x + w / 2, y + h / 2), (x + 3, y + 3)):
        page.mouse.dblclick(*place)
        page.wait_for_function("canvas.stage.views[0].opened")
        assert settle(page)["selected"] == "3"
        page.mouse.dblclick(500, 400)
        page.wait_for_function("!canvas.stage.views[0].opened")
        assert settle(page)["selected"] == "3"


HOLDS = """() => {
  window.heard = [];
  canvas.stage.callbacks.onPoint = (row) => heard.push(row);
  canvas.stage.options.held = undefined;
  const one = canvas.stage.placed[2];
  const { layout } = one.part;
  const { start, count } = one.panel;
  const at = (i) => [
    one.plot.x + (layout.xy[2 * i] - one.range[0]) / (one.range[1] - one.range[0]) * one.plot.w,
    one.plot.y + one.plot.h
      - (layout.xy[2 * i + 1] - one.range[2]) / (one.range[3] - one.range[2]) * one.plot.h,
  ];
  const [px, py] = at(start);
  const near = [...layout.rows.slice(start + 1, start + 4)];
  return { row: layout.rows[start], x: px, y: py, near };
}"""
HELD = "canvas.stage.held"


def test_a_click_holds_a_row_and_selects_nothing_where_the_page_shows_details(page):
    page.evaluate("canvas.select([1, 2, 3])")
    settle(page)
    one = page.evaluate(HOLDS)
    page.mouse.click(one["x"], one["y"])
    row = page.evaluate(HELD)
    assert row >= 0
    page.wait_for_function("heard.length")
    assert page.evaluate("heard") == [row]
    assert settle(page)["selected"] == "3"
    near = [other for other in [one["row"], *one["near"]] if other != row][:3]
    before = page.evaluate("checks.ink()")
    options(page, held=row, near=near)
    assert page.evaluate("checks.ink()") > before + 50  # lines and rings over the points
    page.keyboard.press("Escape")
    assert page.evaluate(HELD) == -1
    page.wait_for_function("heard.length === 2")
    page.mouse.click(one["x"], one["y"])
    page.wait_for_timeout(700)  # not a double click
    page.mouse.click(one["x"], one["y"])  # again: let go
    assert page.evaluate(HELD) == -1
    page.wait_for_function("heard.length === 4")
    assert page.evaluate("heard") == [row, -1, row, -1]


def test_a_double_click_holds_nothing_and_an_old_answer_takes_no_row_away(page):
    page.wait_for_timeout(700)  # with the clicks of the test before it would be one of three
    one = page.evaluate(HOLDS)
    page.mouse.dblclick(one["x"], one["y"])
    page.wait_for_function("canvas.stage.views[0].opened")
    page.wait_for_timeout(400)
    assert page.evaluate("[heard, canvas.stage.held]") == [[], -1]
    page.keyboard.press("Escape")
    settle(page)
    page.mouse.click(one["x"], one["y"])
    row = page.evaluate(HELD)
    page.evaluate("canvas.update({ options: { held: -1, near: [] } })")  # said before the click
    assert page.evaluate(HELD) == row
    page.evaluate("(row) => canvas.update({ options: { held: row, near: [0] } })", row)
    page.evaluate("canvas.update({ options: { held: 5, near: [1] } })")  # by the page's buttons
    assert page.evaluate(HELD) == 5


COVERS = """(x) => {
  const { onPoint } = canvas.stage.callbacks;
  canvas.stage.callbacks.onPoint = (row) => {
    onPoint(row);
    const sheet = document.createElement('div');
    sheet.id = 'sheet';
    sheet.style = `position: fixed; inset: 0 0 0 ${x}px; z-index: 99`;
    document.body.append(sheet);
  };
}"""
PLACE_OF = """(row) => {
  const { layout } = canvas.stage.views[0];
  const point = layout.rows.indexOf(row);
  const { plot, range } = canvas.stage.placed.find(
    (one) => one.part.layout === layout && point >= one.panel.start
      && point < one.panel.start + one.panel.count,
  );
  const share = (layout.xy[2 * point] - range[0]) / (range[1] - range[0]);
  return plot.x + share * plot.w;
}"""


def test_a_row_that_the_page_covers_moves_to_where_it_is_seen_until_it_is_let_go(page):
    place = page.evaluate(HOLDS)
    edge, camera = place["x"] - 30, "({ ...canvas.stage.views[0].cam })"
    before = page.evaluate(camera)
    page.evaluate(COVERS, edge)
    page.mouse.click(place["x"], place["y"])
    page.wait_for_function("document.querySelector('#sheet')")
    settle(page)
    after = page.evaluate(camera)
    assert after["y"] == before["y"]
    assert 0 < place["x"] - (after["x"] - before["x"]) * before["k"] < edge
    page.keyboard.press("Escape")
    settle(page)
    assert page.evaluate(camera) == pytest.approx(before)
    page.evaluate("checks.start()")
    page.evaluate(HOLDS)
    page.evaluate(COVERS, edge := 200)
    page.evaluate("canvas.fly({ row: 17 })")  # one that is sought
    page.wait_for_function("document.querySelector('#sheet')")
    settle(page)
    assert page.evaluate(HELD) == 17
    assert 0 < page.evaluate(PLACE_OF, 17) < edge
    at_once = "new Promise((done) => setTimeout(() => done(heard)))"  # later it would undo a link
    assert page.evaluate(f"canvas.actions.hold(-1), {at_once}") == [17, -1]


def test_the_palette_paints_pictures_that_come_late_and_goes_to_a_panel_and_a_row(page):
    painted = """[...document.querySelectorAll('.appca-found canvas')].filter((one) => {
      const { data } = one.getContext('2d').getImageData(0, 0, one.width, one.height);
      return data.some((value) => value);
    }).length"""
    page.evaluate("canvas.stage.sheets.read = () => null")
    page.evaluate("canvas.stage.hit.focus()")
    page.keyboard.press("/")
    page.locator(".appca-found [role=option]").first.wait_for()
    before = page.evaluate(painted)
    page.evaluate("delete canvas.stage.sheets.read; canvas.stage.moved()")
    page.wait_for_function(f"{painted} > {before}")
    page.keyboard.type("3,2")
    page.keyboard.press("Enter")  # what is found comes a moment later
    page.wait_for_function("canvas.stage.root.dataset.view === 'subspaces {2,3}'")
    settle(page)
    page.evaluate("canvas.fly({ row: 17 })")
    assert settle(page)["selected"] == "1"


def test_one_selected_row_keeps_all_colours_and_two_grey_the_rest(page):
    colours = page.evaluate("checks.coloursDrawn()")
    page.evaluate("canvas.select([1])")
    settle(page)
    assert page.evaluate("checks.coloursDrawn()") == colours
    page.evaluate("canvas.select([1, 2])")
    settle(page)
    assert page.evaluate("checks.coloursDrawn()") < colours


def test_a_new_scene_a_second_view_and_a_lost_context_keep_the_selection(page):
    page.evaluate("canvas.select([1, 2, 3])")
    page.evaluate("load('six').then(canvas.update)")
    said = settle(page)
    assert (said["panels"], said["selected"]) == ("15", "3")
    assert page.evaluate("canvas.stage.views[0].layout.panels.at(-1).name") == "{5,6}"
    page.evaluate("load('two').then(canvas.update)")
    assert settle(page)["panels"] == "10"
    options(page, beside="pca")
    assert settle(page)["view"] == "subspaces+pca"
    legend = page.locator(".appca-class").first
    for event, only in (("pointerenter", 0), ("pointerleave", -1)):
        legend.dispatch_event(event)
        assert page.evaluate("canvas.stage.only") == only
    page.evaluate("checks.loseContext()")
    assert settle(page)["selected"] == "3"
    page.wait_for_function("Number(canvas.stage.root.dataset.thumbnails) > 20")


def test_a_panel_keeps_its_count_beside_names_of_components(page):
    page.evaluate("checks.listen(); load('six').then(canvas.update)")
    settle(page)
    named = "scene.meta.components.forEach((one) => { one.name = 'Wa'; }); written.all.length = 0;"
    page.evaluate(f"load('two').then((scene) => {{ {named} return canvas.update(scene); }})")
    settle(page)
    panels = page.evaluate("canvas.stage.views[0].layout.panels.map(({ count }) => `${count}`)")
    texts = {*page.evaluate("written.all")}
    assert any("Wa × Wa" in text for text in texts), texts
    assert {*panels} <= texts


def test_rows_of_three_components_open_in_two_views_that_follow_scenes_and_open_panels(page):
    page.evaluate("checks.listen(); load('three').then(canvas.update)")
    assert settle(page)["view"] == "subspaces+pairs"
    assert {"{1,2,3}", "{1,2}"} <= {*page.evaluate("written.all")}
    assert any(re.fullmatch("[1-5]→", text) for text in page.evaluate("written.all"))
    for name, view in (("pairs", "pairs"), ("both", "subspaces+pairs")):
        page.evaluate("(name) => canvas.show(name)", name)
        assert settle(page)["view"] == view
    page.evaluate("canvas.fly({ layout: 'pairs', panel: 0 })")
    page.get_by_role("button", name="All panels", exact=True).click()
    assert settle(page)["view"] == "subspaces+pairs"
    x, y = page.evaluate("(({ x, y, h }) => [x + 9, y + h / 2])(canvas.stage.views[1].rect)")
    camera = "canvas.stage.views[1].cam.k"
    before = page.evaluate(camera)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"(before) => {camera} > before", arg=before)
    page.evaluate("load('two').then(canvas.update)")
    assert settle(page)["view"] == "subspaces"


TEN = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag"]
TEN += ["Ankle boot"]
NAMED = """(names) => {
  const { rows, colouring } = canvas.stage;
  colouring.names = names;
  rows.codes.forEach((_, row) => { rows.codes[row] = row % names.length });
  rows.codesChanged += 1;
  canvas.stage.settle();
}"""
CUT = "(all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((b) => b.innerText)"


def test_windows_of_every_size_cut_no_name_cover_no_panel_and_offer_a_list(visit, address):
    page = visit(f"{address}?d=two", width=1440, height=900).page
    page.wait_for_function("window.ready")
    bar, title = page.locator(".appca-bar"), page.locator(".appca-title")
    for width, height in ((1440, 900), (1000, 760), (760, 520), (620, 440), (900, 800), (390, 760)):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function("(px) => canvas.stage.width === px", arg=width)  # it has noticed
        settle(page)
        page.evaluate(NAMED, TEN)
        if width not in (390, 900):
            legend = page.locator(".appca-block .appca-legend")
            assert legend.locator(".appca-class b").evaluate_all(CUT) == []
            assert legend.evaluate("(one) => one.scrollHeight <= one.clientHeight")
            continue
        title.wait_for()
        box, line = title.bounding_box(), bar.bounding_box()
        tools, bottom = page.locator(".appca-tools").bounding_box(), box["y"] + box["height"]
        assert bottom <= line["y"] + line["height"]
        below, above = box["y"] >= tools["y"] + tools["height"] - 1, bottom <= tools["y"]
        assert below or above or box["x"] + box["width"] <= tools["x"]
    jump = page.get_by_role("combobox", name="Go to a panel")
    fullest = jump.locator("option").nth(1).inner_text().split()[0]
    for chosen, view in (
        ({"index": 1}, f"subspaces {fullest}"),
        ({"label": "All panels"}, "subspaces"),
    ):
        jump.select_option(**chosen)
        page.wait_for_function("(view) => canvas.stage.root.dataset.view === view", arg=view)
    page.evaluate("load('four').then(canvas.update)")
    page.set_viewport_size({"width": 804, "height": 848})
    page.wait_for_function("canvas.stage.width === 804")
    settle(page)
    bar = page.locator(".appca-bar:not(.appca-block)")
    line = bar.bounding_box()
    top = page.evaluate("Math.min(...canvas.stage.placed.map(({ card }) => card.y))")
    assert top >= line["y"] + line["height"]
    page.set_viewport_size({"width": 1440, "height": 900})
    for width in (566, 390):  # a canvas narrower than its window
        page.evaluate("(px) => { canvas.stage.root.style.width = `${px}px` }", width)
        page.wait_for_function("(px) => canvas.stage.width === px", arg=width)
        settle(page)
        page.evaluate(NAMED, TEN)
        bar.locator(".appca-class b").nth(len(TEN) - 1).wait_for(state="attached")
        assert bar.locator(".appca-class b").evaluate_all(CUT) == []
        bar.get_by_role("button", name="more").press("Enter")  # lists those without room
        bar.get_by_role("button", name="Ankle boot").click()
        assert bar.get_by_role("button").all_inner_texts()[-len(TEN) - 1 : -1] == TEN
        assert bar.locator("[aria-pressed=true]").inner_text() == "Ankle boot"
        bar.get_by_role("button", name="fewer").click()


def test_words_say_what_a_component_was_until_the_next_fit_and_signs_once_it_has_a_name(page):
    page.evaluate("checks.listen()")
    options(page, came=["", "was 5", "new", "", ""])
    assert page.evaluate("[...new Set(written.dashed)]") == ["was 5", "new"]
    assert page.evaluate("canvas.stage.cameUntil - performance.now()") <= 3000
    page.wait_for_function("performance.now() > canvas.stage.cameUntil")
    page.evaluate("written.dashed.length = 0; canvas.stage.settle()")
    settle(page)
    assert page.evaluate("written.dashed") == []
    hint = page.locator(".appca-hit")
    page.mouse.move(*page.evaluate("checks.onDiagonal(1)"))
    assert hint.get_attribute("title") == "was 5"
    page.evaluate("load('six').then((one) => canvas.update({ ...one, options: { came: null } }))")
    settle(page)
    page.mouse.move(*page.evaluate("checks.onDiagonal(1)"))
    assert hint.get_attribute("title") == ""
    page.evaluate("load('two').then(canvas.update)")
    settle(page)
    page.evaluate("written.all.length = 0; canvas.actions.open(canvas.stage.views[0], 0)")
    settle(page)
    assert not [text for text in page.evaluate("written.all") if re.search("more |less ", text)]
    page.evaluate("canvas.stage.meta.components[0].name = 'Width'; canvas.stage.settleSoon()")
    settle(page)
    assert {"+2, more Width", "−2, less Width"} <= {*page.evaluate("written.all")}


def test_the_hover_card_is_off_the_point_and_words_stand_on_no_words(page):
    x, y = page.evaluate("checks.openedPoint(0)")
    settle(page)
    page.mouse.move(x, y)
    card = page.locator(".appca-card")
    card.wait_for(state="visible")
    box = card.bounding_box()
    beside = not box["x"] - 8 < x < box["x"] + box["width"] + 8
    assert beside or not box["y"] - 8 < y < box["y"] + box["height"] + 8
    assert 0 <= box["x"] <= 1000 - box["width"]
    assert "bar " in card.text_content()
    page.mouse.move(2, 2)
    assert page.evaluate("checks.overlappingWords()") == []
    page.evaluate("canvas.actions.close(canvas.stage.views[0])")
    settle(page)
    assert page.evaluate("checks.overlappingWords()") == []


STRONG = "canvas.stage.placed.filter((one) => one.strength === 1).length"


def test_the_dock_filters_with_a_chip_colours_by_components_and_saves_the_picture(page):
    page.evaluate("canvas.actions.filter({ components: [0], classes: [1] })")
    settle(page)
    assert 0 < page.evaluate("canvas.stage.rows.count - canvas.stage.rows.hidden") < N
    assert page.evaluate(STRONG) == 4 + 1  # and the map
    page.evaluate("canvas.actions.filter({})")
    opener = page.get_by_role("button", name="Views and filters")
    opener.click()
    more = page.get_by_role("dialog", name="Views and filters")
    page.keyboard.press("Escape")
    assert not more.is_visible()
    opener.click()
    panels = more.get_by_role("group", name="Panels with")
    panels.get_by_role("button", name="2", exact=True).click()
    chip = page.locator(".appca-chip")
    assert "with 2" in chip.text_content()
    settle(page)
    assert page.evaluate(STRONG) == 4 + 1
    chip.click()
    settle(page)
    assert not chip.is_visible()
    by = page.get_by_role("group", name="Colour by one component or two")
    for number, name in (("1", "component:1"), ("2", "components:1,2"), ("5", "components:2,5")):
        by.get_by_role("button", name=number, exact=True).click()
        page.wait_for_function("(name) => canvas.stage.colouringName === name", arg=name)
    settle(page)
    assert page.evaluate("new Set(canvas.stage.rows.codes).size") > 20
    assert page.locator(".appca-plane").first.is_visible()
    for number in ("2", "5"):
        by.get_by_role("button", name=number, exact=True).click()
    page.wait_for_function("canvas.stage.colouringName === 'label'")
    with page.expect_download() as saved:
        more.get_by_role("button", name="Save picture").click()
    assert saved.value.suggested_filename == "subspaces.png"
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    settle(page)
    assert not more.is_visible()


def test_a_tour_of_the_fullest_panels_goes_on_until_it_is_stopped(page):
    page.evaluate(
        """() => {
          const { actions } = canvas, arrive = actions.arrive.bind(actions);
          window.opens = [];
          actions.arrive = (view, to) => { window.opens.push(to); arrive(view, to); };
        }"""
    )
    page.get_by_role("button", name="Tour of the fullest panels").click()
    page.wait_for_function("opens.length >= 3")
    page.get_by_role("button", name="Stop the tour").click()
    settle(page)
    opens = page.evaluate("opens")
    assert len(set(opens)) == len(opens)
    assert settle(page)["view"].startswith("subspaces {")


def test_two_fingers_zoom_and_pixels_are_those_of_the_screen(page):
    before, hand = page.evaluate("canvas.stage.views[0].cam.k"), page.context.new_cdp_session(page)

    def touch(kind: str, *xs: int) -> None:
        points = [{"x": x, "y": 300, "id": i} for i, x in enumerate(xs)]
        hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 600, 700)
    for step in range(1, 9):
        touch("touchMove", 600 - 10 * step, 700 + 10 * step)
    touch("touchEnd")
    page.wait_for_function("(before) => canvas.stage.views[0].cam.k > 1.5 * before", arg=before)
    for dpr in (3, 1):
        options(page, dpr=dpr)
        assert page.evaluate("canvas.stage.canvas.width / canvas.stage.root.clientWidth") == dpr


def test_a_frame_that_has_only_moved_is_copied(page):
    assert page.evaluate("checks.copied()") == [7, 9, True, None]


def test_destroy_leaves_nothing(page):
    assert page.evaluate("checks.mountOften('three')") == 0
    assert not page.evaluate("canvas.stage.gpu.gl.isContextLost()")


def test_images_stand_closer_when_asked_to_and_few_points_settle(page):
    page.evaluate("canvas.actions.open(canvas.stage.views[0], 0)")
    settle(page)
    page.wait_for_function("canvas.stage.stats.images > 5")
    usual = page.evaluate("canvas.stage.stats.images")
    options(page, dense=2)
    page.wait_for_function(f"canvas.stage.stats.images > 1.5 * {usual}")
    options(page, dense=1)
    page.evaluate("canvas.stage.layer.building = 'of many'; canvas.stage.moved()")
    assert settle(page)["drawn"] == "all", "though many were being drawn"
    assert page.evaluate("canvas.stage.layer.building") == ""
