"""Own files of every kind in the browser: dropped anywhere or chosen, to the picture at once."""

import io
import re
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.browser.test_app import APP, SECOND, idle
from tests.data.file_makers import encoded, noise
from tests.ui.arrivals.test_uploads import messy

pytestmark = pytest.mark.browser
WAIT = 90 * SECOND
DROP = """([selector, files]) => {
  const given = new DataTransfer();
  files.forEach(([name, bytes]) => given.items.add(new File([new Uint8Array(bytes)], name)));
  const told = { bubbles: true, cancelable: true, dataTransfer: given };
  const place = document.querySelector(selector);
  for (const kind of ['dragenter', 'dragover', 'drop']) {
    place.dispatchEvent(new DragEvent(kind, told));
  }
}"""
ANYWHERE = "[data-testid=stApp]"


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


@pytest.fixture
def data(visit, address):
    """Open the page Data."""
    page = visit(f"{address}/data").page
    page.set_default_timeout(WAIT)
    page.get_by_text("Drop a file").wait_for()
    idle(page, 60)
    return page


def drop(page, *files: tuple[str, bytes], on: str = ANYWHERE) -> None:
    """Drop files on a place of the page."""
    page.evaluate(DROP, [on, [[name, list(content)] for name, content in files]])


def give(page, files: list[Path]) -> None:
    """Put files into the uploader."""
    page.locator("[class*=st-key-upload-] input[type=file]").last.set_input_files(files)


def see(page, points: int, images: bool = False) -> None:
    """Wait until Explore has drawn all rows."""
    pictured = " && root.dataset.thumbnails > 10" if images else ""
    page.wait_for_function(
        "() => { const root = document.querySelector('.appca-explorer'); "
        f"return Boolean(root && root.dataset.rows == {points}{pictured}); }}",
        timeout=WAIT,
    )


CHOOSE_AT_ONCE = """([label, text]) => new MutationObserver((_, observer) => {
  const list = document.querySelector(`select[aria-label="${label}"]`);
  const place = list ? [...list.options].findIndex((option) => option.text === text) : -1;
  if (place < 0) return;
  observer.disconnect();
  list.selectedIndex = place;
  list.dispatchEvent(new Event('change', {bubbles: true}));
}).observe(document.body, {childList: true, subtree: true})"""


def count_clicks(page) -> None:
    """Count the clicks of the hand from now on, as `window.clicks`."""
    page.evaluate(
        """() => { window.clicks = 0;
        const count = (event) => { window.clicks += event.isTrusted; };
        addEventListener('pointerdown', count, true); }"""
    )


def clicks(page) -> int:
    return page.evaluate("window.clicks")


def saved(page) -> list[str]:
    """Save the projections as CSV, in two clicks, and return the lines."""
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name="Export").click()
    button = page.locator(".st-key-download-projection-csv button")
    button.wait_for(timeout=WAIT)
    idle(page, 90)
    with page.expect_download(timeout=WAIT) as started:
        button.click()
    return Path(started.value.path()).read_text(encoding="utf-8").splitlines()


def clean() -> bytes:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 8)) + rng.normal(size=(300, 8))
    lines = ["name,class," + ",".join(f"f{j}" for j in range(8))]
    lines += [f"item {i},{'abc'[i % 3]}," + ",".join(f"{x:.3f}" for x in X[i]) for i in range(300)]
    return "\n".join(lines).encode()


def test_a_clean_file_dropped_on_any_page_is_a_picture_and_saved_two_clicks_later(visit, address):
    page = visit(f"{address}/components").page
    page.set_default_timeout(WAIT)
    page.get_by_role("heading", name="Components", exact=True, level=1).wait_for()
    idle(page, 60)
    count_clicks(page)
    drop(page, ("my <b>table</b>.csv", clean()))
    see(page, 300)
    assert clicks(page) == 0
    page.locator(".st-key-assumed", has_text="Read as UTF-8 text, commas").wait_for()
    lines = saved(page)
    assert clicks(page) <= 3
    assert len(lines) == 301
    assert lines[0].startswith("id,class,subspace,component_1")
    assert lines[300].startswith("item 299,c,")


def test_a_messy_file_is_a_picture_and_read_otherwise_as_soon_as_a_list_is_there(data):
    count_clicks(data)
    drop(data, ("messy.csv", messy()))
    see(data, 90)
    assert clicks(data) == 0
    said = data.locator(".st-key-assumed")
    said.get_by_text("Read as Western European text (cp1252), semicolons, decimal comma").wait_for()
    said.get_by_text("Missing: 50 cells, filled from the model").wait_for()
    data.evaluate(CHOOSE_AT_ONCE, ["Missing values", "50 cells missing: column mean"])
    said.get_by_role("link", name="Change").click()
    data.get_by_role("button", name="Explore", exact=True).click()
    said.get_by_text("filled with their column's mean").wait_for()
    see(data, 90)


def spectra(n: int = 167) -> bytes:
    """Write spectra of honey as an instrument's program does: wavelengths are the header."""
    rng = np.random.default_rng(0)
    nm = np.arange(400, 852, 2)
    lines = [f"Probe;Sorte;{';'.join(map(str, nm))}"]
    for i in range(n):
        place = 450 + 60 * (i % 5) + rng.normal(0, 4)
        band = np.exp(-(((nm - place) / 40) ** 2)) + np.exp((400 - nm) / 200)
        cells = ";".join(f"{x:.4f}".replace(".", ",") for x in band + rng.normal(0, 0.01, len(nm)))
        lines.append(
            f"Honig {i % 152};{('Akazie', 'Linde', 'Raps', 'Tanne', 'Wald')[i % 5]};{cells}"
        )
    return "\r\n".join(lines).encode("cp1252")


def test_spectra_are_lines_coloured_by_their_kind_without_a_click(data):
    count_clicks(data)
    drop(data, ("honey.csv", spectra()))
    see(data, 167)
    lines = "document.querySelector('.appca-explorer').dataset.thumbnails > 5"
    data.wait_for_function(lines, timeout=WAIT)
    data.locator(".appca-explorer", has_text="Linde").wait_for()
    said = data.locator(".st-key-assumed")
    said.get_by_text("semicolons, decimal comma · Row names: Probe").wait_for()
    said.get_by_text("Labels: Sorte").wait_for()
    assert clicks(data) == 0


def test_what_is_larger_than_a_file_may_be_is_refused_in_one_sentence(visit, serve):
    server = serve(APP, OMP_NUM_THREADS="1", STREAMLIT_SERVER_MAX_UPLOAD_SIZE="1")
    page = visit(f"{server.url}/data").page
    page.get_by_text("Drop a file").wait_for(timeout=WAIT)
    idle(page, 60)
    page.evaluate(
        DROP.replace("new Uint8Array(bytes)", "new Uint8Array(bytes[0] << 20)"),
        [ANYWHERE, [["large.csv", [2]]]],
    )
    page.get_by_text(re.compile("“large.csv”.* a file may have 1.0 MB")).first.wait_for(
        timeout=WAIT
    )


@pytest.mark.parametrize("on", [ANYWHERE, "[data-testid=stFileUploaderDropzone]"])
def test_a_hundred_and_twenty_images_come_without_loss(data, on):
    drop(data, *((f"p{i}.png", encoded(noise(i, 4, 4))) for i in range(120)), on=on)
    see(data, 120)


@pytest.mark.slow
@pytest.mark.real_data
def test_sixty_thousand_digits_arrive_with_their_labels(data, data_folder, tmp_path):
    for part, end in (("images", "images-idx3"), ("labels", "labels-idx1")):
        shutil.copy(data_folder / "mnist" / f"train-{end}-ubyte.gz", tmp_path / f"my-{part}.idx.gz")
    give(data, [tmp_path / "my-images.idx.gz", tmp_path / "my-labels.idx.gz"])
    see(data, 60_000)
    lines = saved(data)
    assert len(lines) == 60_001
    assert lines[1].startswith("row-1,5,")


@pytest.mark.slow
@pytest.mark.real_data
def test_a_folder_of_1440_pictures_opens_with_its_classes(data, data_folder, tmp_path):
    packed = io.BytesIO((data_folder / "coil20" / "coil-20-proc.zip").read_bytes())
    with zipfile.ZipFile(packed) as z:
        z.extractall(tmp_path)
    data.get_by_text("Choose a folder").click()
    data.locator("input[type=file][webkitdirectory]").set_input_files(tmp_path / "coil-20-proc")
    see(data, 1440, images=True)
    assert saved(data)[1].startswith("obj1__0,obj1,")
