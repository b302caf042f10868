"""Tests of tasks of a new user: from a file to a picture in a few clicks or key presses."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browser.test_app import APP, POLL, SECOND, idle, link
from tests.browser.test_every_page import press_by_key, sound
from tests.browser.test_explore import settled
from tests.data.file_makers import encoded, noise
from tests.data.test_preprocessing import digits
from tests.ui.test_data import messy, recording

pytestmark, WAIT = pytest.mark.browser, 90 * SECOND
DROP = """([selector, files]) => {
  const given = new DataTransfer();
  files.forEach(([name, bytes]) => given.items.add(new File([new Uint8Array(bytes)], name)));
  const told = { bubbles: true, cancelable: true, dataTransfer: given };
  const place = document.querySelector(selector);
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    place.dispatchEvent(new DragEvent(kind, told));
  }
}"""
ANYWHERE, IMAGES = "[data-testid=stApp]", "16 × 16: show as images"
EVENTS = b"onset\tduration\n4\t6\n20\t6\n"
COUNT = """() => { window.clicks = 0;
  const count = (event) => { window.clicks += event.isTrusted; };
  addEventListener('pointerdown', count, true); }"""


@pytest.fixture(scope="module")
def start(visit: Any, address: str) -> Callable[..., Any]:
    """Return what opens a page of the app, whose clicks of the hand are counted."""

    def opened(place: str = "data", width: int = 1440, dark: bool = False) -> Any:
        page = visit(f"{address}/{place}", width=width, height=844, dark=dark, still=True).page
        page.set_default_timeout(WAIT)
        ready = page.get_by_text("Drop a file") if place == "data" else page.locator("h1").first
        ready.wait_for()
        idle(page, 60)
        page.evaluate(COUNT)
        return page

    return opened


def clicks(page: Any) -> int:
    return page.evaluate("window.clicks")


def drop(page: Any, *files: tuple[str, bytes], on: str = ANYWHERE) -> None:
    """Drop files on a place of the page."""
    page.evaluate(DROP, [on, [[name, list(content)] for name, content in files]])


def see(page: Any, points: int, images: bool = False) -> None:
    """Wait until Explore has drawn all rows."""
    pictured = " && root.dataset.thumbnails > 10" if images else ""
    page.wait_for_function(
        "() => { const root = document.querySelector('.appca-explorer'); "
        f"return Boolean(root && root.dataset.rows == {points}{pictured}); }}",
        timeout=WAIT,
        polling=POLL,
    )


def clean() -> bytes:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 8)) + rng.normal(size=(300, 8))
    lines = ["name,class," + ",".join(f"f{j}" for j in range(8))]
    lines += [f"item {i},{'abc'[i % 3]}," + ",".join(f"{x:.3f}" for x in X[i]) for i in range(300)]
    return "\n".join(lines).encode()


def test_a_clean_file_dropped_on_any_page_is_a_picture_and_saved_two_clicks_later(start):
    page = start("components")
    drop(page, ("my <b>table</b>.csv", clean()))
    see(page, 300)
    assert clicks(page) == 0
    page.locator(".st-key-assumed", has_text="Read as UTF-8 text, commas").wait_for()
    link(page, "Export").click()
    button = page.locator(".st-key-download-projection-csv button")
    button.wait_for()
    idle(page, 90)
    with page.expect_download() as started:
        button.click()
    lines = Path(started.value.path()).read_text(encoding="utf-8").splitlines()
    assert clicks(page) == 2
    assert len(lines) == 301
    assert lines[0].startswith("id,class,subspace,component_1")
    assert lines[300].startswith("item 299,c,")


CHOOSE_AT_ONCE = """([label, text]) => new MutationObserver((_, observer) => {
  const list = document.querySelector(`select[aria-label="${label}"]`);
  const place = list ? [...list.options].findIndex((option) => option.text === text) : -1;
  if (place < 0) return;
  observer.disconnect();
  list.selectedIndex = place;
  list.dispatchEvent(new Event('change', {bubbles: true}));
}).observe(document.body, {childList: true, subtree: true})"""


def test_a_messy_file_is_a_picture_and_read_otherwise_as_soon_as_a_list_is_there(start):
    page = start()
    drop(page, ("messy.csv", messy()))
    see(page, 90)
    assert clicks(page) == 0
    said = page.locator(".st-key-assumed")
    said.get_by_text("Read as Western European text (cp1252), semicolons, decimal comma").wait_for()
    page.evaluate(CHOOSE_AT_ONCE, ["Missing values", "50 cells missing: column mean"])
    said.get_by_role("link", name="Change").click()
    page.get_by_role("button", name="Explore", exact=True).click()
    said.get_by_text("filled with their column's mean").wait_for()
    see(page, 90)


def test_many_images_and_a_folder_come_whole_and_too_large_a_file_is_refused(
    start, serve, visit, tmp_path
):
    page = start()
    place = page.url.partition("?")[0]
    for count, on in ((120, ANYWHERE), (110, "[data-testid=stFileUploaderDropzone]")):
        drop(page, *((f"p{i}.png", encoded(noise(i, 4, 4))) for i in range(count)), on=on)
        see(page, count)  # none is lost
        page.goto(place)
        page.get_by_text("Drop a file").wait_for()
        idle(page, 60)
    for i in range(24):
        (folder := tmp_path / "animals" / ("cat", "dog")[i % 2]).mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.png").write_bytes(encoded(noise(i, 4, 4)))
    page.get_by_text("Choose a folder").click()
    page.locator("input[type=file][webkitdirectory]").set_input_files(tmp_path / "animals")
    see(page, 24)
    page.locator(".appca-legend", has_text="dog").first.wait_for()
    small = serve(APP, OMP_NUM_THREADS="1", STREAMLIT_SERVER_MAX_UPLOAD_SIZE="1")
    page = visit(f"{small.url}/data", still=True).page
    page.get_by_text("Drop a file").wait_for(timeout=WAIT)
    idle(page, 60)
    page.evaluate(
        DROP.replace("new Uint8Array(bytes)", "new Uint8Array(bytes[0] << 20)"),
        [ANYWHERE, [["large.csv", [2]]]],
    )
    page.get_by_text(re.compile("“large.csv”.* the limit is 1.0 MB")).first.wait_for(timeout=WAIT)


def mice() -> bytes:
    """Write proteins with gaps, labels, and a population in whole numbers that looks like one."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(160, 3)) @ rng.normal(size=(3, 12)) / 2)
    lines = ["MouseID," + ",".join(f"P{j}_N" for j in range(12)) + ",population,Genotype"]
    for i, row in enumerate(X):
        cells = ["" if (i + j) % 17 == 0 else f"{x:.4f}" for j, x in enumerate(row)]
        lines.append(f"{300 + i // 5}_{i % 5},{','.join(cells)},{i % 8 + 1},{'ab'[i % 2]}")
    return "\n".join(lines).encode()


def turned() -> bytes:
    """Write 200 digits as the columns of a MAT file."""
    from scipy.io import savemat

    file = io.BytesIO()
    savemat(file, {"X": digits().transpose(0, 2, 1).reshape(200, -1).T})
    return file.getvalue()


def test_on_a_phone_columns_of_a_mat_file_become_images_in_two_clicks(start):
    page = start(width=390, dark=True)
    drop(page, ("digits.mat", turned()))
    see(page, 256)
    page.get_by_role("button", name="Columns are samples").click()
    see(page, 200)
    page.get_by_role("button", name=IMAGES).click()
    see(page, 200, images=True)
    assert clicks(page) == 2


def give_by_key(page: Any, *files: tuple[str, bytes]) -> None:
    """Open the dialog of files by the keyboard, and choose."""
    with page.expect_file_chooser() as chooser:
        press_by_key(page, page.get_by_role("button", name="Upload", exact=True))
    chooser.value.set_files(
        [{"name": name, "mimeType": "", "buffer": content} for name, content in files]
    )


def test_the_keyboard_makes_a_label_gives_a_role_and_opens_a_recording(start):
    page = start()
    give_by_key(page, ("mice.csv", mice()))
    see(page, 160)
    note = page.locator(".st-key-assumed")
    assert note.bounding_box()["height"] < 200, "the note hides the picture"
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
    assert clicks(page) == 0
    page = start()
    give_by_key(page, ("own.nii", recording()), ("own_events.tsv", EVENTS))
    page.locator(".ca-side", has_text="× 20").wait_for(state="attached")
    page.locator("img[alt='Component 4']").first.wait_for(state="attached")
    press_by_key(page, link(page, "Components"))
    sound(page, "Components")
    page.get_by_text("Component 4").first.wait_for()
    assert clicks(page) == 0


def turn_to(page: Any, name: str, place: str) -> None:
    """Choose by the keyboard one of the words in a row, such as the tabs of a page."""
    focused = "place => document.activeElement.closest(place) && document.activeElement.innerText"
    idle(page, 60)
    for _ in range(150):
        word = page.evaluate(focused, place)
        if word == name:
            return page.keyboard.press("Enter")
        page.keyboard.press("ArrowRight" if word else "Tab")
    pytest.fail(f"the keyboard does not come to {name}")


def test_the_keyboard_finds_a_row_its_nearest_steers_it_and_saves_a_figure(start):
    page = start()
    press_by_key(page, page.locator(".st-key-source-wine-open button"))
    settled(page, "said.rows === '178'")
    idle(page, 60)
    page.keyboard.type("/#8")
    page.keyboard.press("Enter")
    settled(page, "said.held === '7'")
    near = page.locator(".st-key-near_data button")
    near.nth(4).wait_for(state="attached")
    press_by_key(page, near)
    settled(page, "said.held !== '-1' && said.held !== '7'")
    page.locator(".st-key-drawer_tab [role=radio]").first.focus()
    turn_to(page, "Point", ".st-key-drawer_tab")
    press_by_key(page, page.get_by_label("Steer this row"), "Space")
    page.locator(".ca-steer-plane").wait_for()
    score = "() => JSON.parse(document.querySelector('.ca-steer').dataset.z)[0]"
    before = page.evaluate(score)
    press_by_key(page, page.locator(".ca-steer").get_by_role("slider"), "End")
    assert page.evaluate(score) > before
    press_by_key(page, page.locator(".ca-steer-reset"))
    assert page.evaluate(score) == before
    press_by_key(page, link(page, "Export"))
    sound(page, "Export")
    with page.expect_download() as started:
        press_by_key(page, page.get_by_role("button", name="Save figure"))
    assert Path(started.value.path()).read_bytes()[:4] == b"\x89PNG"
    assert clicks(page) == 0
