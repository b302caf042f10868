"""The tasks of a first-time user, in so many clicks or keys; then each by the keyboard alone.

Clicks are counted by the page itself, from the drop on; a keyboard alone means without any.
"""

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import TimeoutError as Late

from appca.analysis.selections import SelectionStore
from appca.data.sources import load
from tests.browser.test_app import APP, idle
from tests.browser.test_every_page import faults_of, press_by_key, sound
from tests.browser.test_explore import set_k, settled
from tests.browser.test_uploads import WAIT, clicks, count_clicks, drop, see
from tests.data.test_pixels import digits
from tests.ui.arrivals.test_uploads import recording
from tests.ui.parts.test_pages import PAGES

pytestmark = pytest.mark.browser
SIZES = [  # widths of the window, and whether it is dark
    (1440, False),
    pytest.param((900, True), marks=pytest.mark.slow),
    (390, True),
]
IMAGES = "16 × 16: show as images"
EVENTS = b"onset\tduration\n4\t6\n20\t6\n"


@pytest.fixture(scope="module")
def server(serve: Any) -> Any:
    return serve(APP, OMP_NUM_THREADS="1")


@pytest.fixture(scope="module")
def start(visit: Any, server: Any) -> Callable[..., Any]:
    """Return what opens a page of the app, whose clicks are counted."""

    def opened(place: str, width: int = 1440, dark: bool = False) -> Any:
        page = visit(f"{server.url}/{place}", width=width, height=844, dark=dark).page
        page.set_default_timeout(WAIT)
        idle(page, 60)
        count_clicks(page)
        return page

    return opened


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}")
def data(start: Any, request: Any) -> Any:
    page = start("data", *request.param)
    page.get_by_text("Drop a file").wait_for()
    return page


@pytest.fixture(params=SIZES, ids=lambda size: f"{size[0]}")
def picture(start: Any, request: Any) -> Any:
    page = start("?k=4&l=2", *request.param)
    settled(page, "said.panels === '6'")
    idle(page, 60)
    return page


@pytest.fixture
def keyboard(start: Any) -> Iterator[Any]:
    """The page Data, on which nothing is clicked."""
    page = start("data")
    page.get_by_text("Drop a file").wait_for()
    yield page
    assert clicks(page) == 0


def link(page: Any, name: str) -> Any:
    return page.get_by_test_id("stSidebarNav").get_by_role("link", name=name, exact=True)


def mice() -> bytes:
    """Write proteins with gaps, labels, and a population in whole numbers that looks like one."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(160, 3)) @ rng.normal(size=(3, 12)) / 2)
    lines = ["MouseID," + ",".join(f"P{j}_N" for j in range(12)) + ",population,Genotype"]
    for i, row in enumerate(X):
        cells = ["" if (i + j) % 17 == 0 else f"{x:.4f}" for j, x in enumerate(row)]
        lines.append(f"{300 + i // 5}_{i % 5},{','.join(cells)},{i % 8 + 1},{'ab'[i % 2]}")
    return "\n".join(lines).encode()


def wide() -> bytes:
    """Write 200 digits as a table of 256 columns."""
    lines = [",".join(f"{x:.3f}" for x in row) for row in digits().reshape(200, -1)]
    return "\n".join([",".join(f"p{j}" for j in range(256)), *lines]).encode()


def turned() -> bytes:
    """Write 200 digits as the columns of a MAT file."""
    from scipy.io import savemat

    file = io.BytesIO()
    savemat(file, {"X": digits().transpose(0, 2, 1).reshape(200, -1).T})
    return file.getvalue()


def point(page: Any) -> tuple[float, float]:
    """Where a row is drawn: a card says which, once the pointer rests there."""
    box = page.locator(".appca-hit").bounding_box()
    for share in range(30, 98, 2):
        x, y = box["x"] + box["width"] * share / 100, box["y"] + 0.62 * box["height"]
        page.mouse.move(x, y)
        try:
            page.locator(".appca-card").wait_for(timeout=400)
        except Late:
            continue
        return x, y
    pytest.fail("no row is drawn on a line through the picture")


def test_proteins_of_mice_with_a_wrong_role_are_the_right_picture_in_one_click(data):
    drop(data, ("mice.csv", mice()))
    see(data, 160)
    note = data.locator(".st-key-assumed")
    assert note.bounding_box()["height"] < 200, "the note hides the picture"
    note.get_by_role("button", name="population").click()
    data.locator(".ca-side", has_text="160 rows × 12").wait_for(state="attached")
    assert clicks(data) == 1


def test_a_table_of_256_columns_becomes_images_in_one_click(data):
    drop(data, ("digits.csv", wide()))
    see(data, 200)
    data.get_by_role("button", name=IMAGES).click()
    see(data, 200, images=True)
    assert clicks(data) == 1


def test_columns_of_a_mat_file_become_images_in_two_clicks(data):
    drop(data, ("digits.mat", turned()))
    see(data, 256)
    data.get_by_role("button", name="Columns are samples").click()
    see(data, 200)
    data.get_by_role("button", name=IMAGES).click()
    see(data, 200, images=True)
    assert clicks(data) == 2


def test_a_recording_with_its_events_shows_components_without_a_click(data):
    drop(data, ("own.nii", recording()), ("own_events.tsv", EVENTS))
    data.locator(".ca-side", has_text="× 20").wait_for(state="attached")
    data.locator("img[alt='Component 4']").first.wait_for(state="attached")
    assert clicks(data) == 0


def test_one_click_on_a_point_shows_its_nearest_rows(picture):
    picture.mouse.click(*point(picture))
    settled(picture, "said.held !== '-1'")
    near = picture.locator(".st-key-near_data button")
    near.nth(4).wait_for(state="attached")
    assert clicks(picture) == 1


def test_a_figure_is_saved_in_two_clicks_from_the_picture(picture):
    link(picture, "Export").click()
    sound(picture, "Export")
    with picture.expect_download() as started:
        picture.get_by_role("button", name="Save figure").click()
    assert Path(started.value.path()).read_bytes()[:4] == b"\x89PNG"
    assert clicks(picture) == 2


def test_the_palette_reaches_a_component_a_class_and_a_row_in_four_keys(start):
    page = start("?k=4&l=2")
    set_k(page, 4)
    palette = page.locator(".appca-palette")
    page.evaluate("addEventListener('keydown', () => { window.keys += 1 }, true)")

    def find(*keys: str) -> None:
        page.evaluate("document.activeElement.blur(); window.keys = 0")
        for key in ("/", *keys, "Enter"):
            page.keyboard.press(key)
        palette.wait_for(state="hidden")
        assert page.evaluate("window.keys") <= 4

    find("3")
    settled(page, "said.panels === '6'")
    chip = page.locator(".appca-chip")
    assert chip.inner_text().startswith("with 3")
    chip.click()
    find("3", "Tab")
    settled(page, "said.selected === '183'")  # of the digits 3
    find("#", "7")
    settled(page, "said.held === '7'")
    page.keyboard.press("Escape")
    settled(page, "said.held === '-1'")


def turn_to(page: Any, name: str, place: str = "[class*=st-key-tab-]") -> None:
    """Choose by the keyboard one of the words in a row, such as the tabs of a page."""
    focused = "place => document.activeElement.closest(place) && document.activeElement.innerText"
    idle(page, 60)
    for _ in range(150):
        word = page.evaluate(focused, place)
        if word == name:
            return page.keyboard.press("Enter")
        page.keyboard.press("ArrowRight" if word else "Tab")
    pytest.fail(f"the keyboard does not come to {name}")


def give_by_key(page: Any, *files: tuple[str, bytes]) -> None:
    """Open the dialog of files by the keyboard, and choose."""
    with page.expect_file_chooser() as chooser:
        press_by_key(page, page.get_by_role("button", name="Upload", exact=True))
    chooser.value.set_files(
        [{"name": name, "mimeType": "", "buffer": content} for name, content in files]
    )


def test_the_keyboard_makes_a_label_and_gives_a_column_its_role(keyboard):
    page = keyboard
    give_by_key(page, ("mice.csv", mice()))
    see(page, 160)
    note = page.locator(".st-key-assumed")
    press_by_key(page, note.get_by_role("button", name="population"))
    page.locator(".ca-side", has_text="160 rows × 12").wait_for(state="attached")
    press_by_key(page, note.get_by_role("link", name="Change"))
    role = page.get_by_label("Role of P3_N")
    role.wait_for()
    role.press("End")
    page.locator("select.ca-ignored").wait_for()
    page.wait_for_function("() => document.activeElement.ariaLabel === 'Role of P3_N'")
    press_by_key(page, page.get_by_role("button", name="Explore", exact=True))
    page.locator(".ca-side", has_text="160 rows × 11").wait_for(state="attached")
    see(page, 160)
    press_by_key(page, link(page, "Data"))
    sound(page, "Data")
    assert note.count() == 0, "it would hide what has the focus"


def test_the_keyboard_makes_images_of_columns_and_reads_them_in_another_order(keyboard):
    page = keyboard
    give_by_key(page, ("digits.mat", turned()))
    see(page, 256)
    press_by_key(page, page.get_by_role("button", name="Columns are samples"))
    see(page, 200)
    press_by_key(page, page.get_by_role("button", name=IMAGES))
    see(page, 200, images=True)
    press_by_key(page, page.locator(".st-key-assumed").get_by_role("link", name="Change"))
    shape = page.locator("[data-act=shape][aria-pressed=false]", has_text="row by row").first
    before = re.search(r"data=\w+", page.url)[0]
    press_by_key(page, shape)
    press_by_key(page, page.get_by_role("button", name="Explore", exact=True))
    see(page, 200, images=True)
    page.wait_for_url(re.compile(r"data=\w+"))
    assert re.search(r"data=\w+", page.url)[0] != before, "the same images again"


def test_the_keyboard_opens_a_recording_and_its_components(keyboard):
    page = keyboard
    give_by_key(page, ("own.nii", recording()), ("own_events.tsv", EVENTS))
    page.locator("img[alt='Component 4']").first.wait_for(state="attached")
    press_by_key(page, link(page, "Components"))
    sound(page, "Components")
    page.get_by_text("Component 4").first.wait_for()


def test_the_keyboard_finds_a_row_its_nearest_and_saves_a_figure(keyboard):
    page = keyboard
    press_by_key(page, page.locator(".st-key-source-wine-open button"))
    settled(page, "said.rows === '178'")
    idle(page, 60)
    page.keyboard.type("/#7")
    page.keyboard.press("Enter")
    settled(page, "said.held === '7'")
    near = page.locator(".st-key-near_data button")
    near.nth(4).wait_for(state="attached")
    press_by_key(page, near)
    settled(page, "said.held !== '-1' && said.held !== '7'")
    press_by_key(page, link(page, "Export"))
    sound(page, "Export")
    with page.expect_download() as started:
        press_by_key(page, page.get_by_role("button", name="Save figure"))
    assert Path(started.value.path()).read_bytes()[:4] == b"\x89PNG"


def test_the_keyboard_steers_a_row(keyboard):
    page = keyboard
    press_by_key(page, link(page, "Explore"))
    sound(page, "Explore")
    page.locator(".st-key-drawer_tab [role=radio]").first.focus()
    turn_to(page, "Point", ".st-key-drawer_tab")
    press_by_key(page, page.get_by_label("Steer this row"), "Space")
    page.locator(".ca-steer-plane").wait_for()
    score = "() => JSON.parse(document.querySelector('.ca-steer').dataset.z)[0]"
    start = page.evaluate(score)
    press_by_key(page, page.locator(".ca-steer").get_by_role("slider"), "End")
    assert page.evaluate(score) > start
    press_by_key(page, page.locator(".ca-steer-reset"))
    assert page.evaluate(score) == start


OPENERS = "[data-testid=stPopover] button, [data-testid=stExpander] summary"


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (390, True)])
def test_all_that_opens_can_be_read_by_everybody(start, server, width, dark):
    """Of every page, each popover and each card that unfolds, and both dialogs of the picture."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    table = load("digits")
    SelectionStore(server.home).save(table.digest, "first seven", np.arange(table.n_rows) < 7)
    page = start("", width, dark)
    faults, opened = {}, 0
    for place, title in PAGES.items():
        name, _, tab = place.partition("/")
        page.goto(f"{server.url}/{name if name != 'explore' else ''}?tab={tab}")
        sound(page, title)
        for number in range(page.locator(OPENERS).count()):
            opener = page.locator(OPENERS).nth(number)
            if not opener.is_visible() or opener.is_disabled():
                continue
            words = re.sub(r"\s+", " ", opener.inner_text())
            opener.dispatch_event("click")
            idle(page, 60)
            opened += 1
            faults[f"{place}: {words}"] = faults_of(page, axe, sizes=())
            page.keyboard.press("Escape")
    assert opened > 15
    page.goto(server.url)
    settled(page)
    idle(page, 60)
    for key, dialog in (("Control+k", "Find anything"), ("?", "Keys")):
        page.keyboard.press(key)
        page.get_by_role("dialog", name=dialog).wait_for()
        faults[dialog] = faults_of(page, axe, sizes=())
        page.keyboard.press("Escape")
    assert {place: some for place, some in faults.items() if some} == {}
