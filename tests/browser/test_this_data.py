"""The tab This data in the browser: files with wrong guesses, to the right picture."""

import io

import numpy as np
import pytest

from tests.browser.test_app import APP, idle
from tests.browser.test_every_page import faults_of
from tests.browser.test_uploads import WAIT, clicks, count_clicks, drop, see
from tests.data.test_pixels import digits
from tests.ui.arrivals.test_uploads import recording

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


@pytest.fixture(params=[(1440, False), (390, True)])
def data(visit, address, request):
    width, dark = request.param
    page = visit(f"{address}/data", width=width, dark=dark).page
    page.set_default_timeout(WAIT)
    page.get_by_text("Drop a file").wait_for()
    idle(page, 60)
    count_clicks(page)
    return page


def mice() -> bytes:
    """Write proteins with gaps, labels, and a population in whole numbers that looks like one."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(160, 3)) @ rng.normal(size=(3, 12)) / 2)
    lines = ["MouseID," + ",".join(f"P{j}_N" for j in range(12)) + ",population,Genotype"]
    for i, row in enumerate(X):
        cells = ["" if (i + j) % 17 == 0 else f"{x:.4f}" for j, x in enumerate(row)]
        lines.append(f"{300 + i // 5}_{i % 5},{','.join(cells)},{i % 8 + 1},{'ab'[i % 2]}")
    return "\n".join(lines).encode()


def test_proteins_of_mice_with_a_wrong_role_are_the_right_picture_in_one_click(data):
    drop(data, ("mice.csv", mice()))
    see(data, 160)
    said = data.locator(".st-key-assumed")
    said.get_by_role("button", name="population").click()
    data.locator(".ca-side", has_text="160 rows × 12").wait_for(state="attached")
    assert clicks(data) == 1


def test_a_table_of_256_columns_becomes_images_in_one_click(data):
    lines = [",".join(f"{x:.3f}" for x in row) for row in digits().reshape(200, -1)]
    names = ",".join(f"p{j}" for j in range(256))
    drop(data, ("digits.csv", "\n".join([names, *lines]).encode()))
    see(data, 200)
    data.get_by_role("button", name="16 × 16: show as images").click()
    see(data, 200, images=True)
    assert clicks(data) == 1


def test_columns_of_a_mat_file_become_images_in_two_clicks(data):
    from scipy.io import savemat

    file = io.BytesIO()
    savemat(file, {"X": digits().transpose(0, 2, 1).reshape(200, -1).T})
    drop(data, ("digits.mat", file.getvalue()))
    see(data, 256)
    data.get_by_role("button", name="Columns are samples").click()
    see(data, 200)
    data.get_by_role("button", name="16 × 16: show as images").click()
    see(data, 200, images=True)
    assert clicks(data) == 2


def test_a_recording_with_its_events_shows_components_without_a_click(data):
    events = b"onset\tduration\n4\t6\n20\t6\n"
    drop(data, ("own.nii", recording()), ("own_events.tsv", events))
    data.locator(".ca-side", has_text="× 20").wait_for(state="attached")
    data.locator("img[alt='Component 4']").first.wait_for(state="attached")
    assert clicks(data) == 0


def test_a_column_gets_another_role_by_the_keyboard_alone_which_keeps_its_place(data):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    drop(data, ("mice.csv", mice()))
    see(data, 160)
    data.locator(".st-key-assumed").get_by_role("link", name="Change").press("Enter")
    role = data.get_by_label("Role of P3_N")
    role.wait_for()
    idle(data, 60)
    assert faults_of(data, axe) == []
    role.focus()
    data.keyboard.press("Enter")
    for _ in range(3):
        data.keyboard.press("ArrowDown")
    data.keyboard.press("Enter")
    data.locator("select.ca-ignored").wait_for()
    data.wait_for_function("() => document.activeElement.ariaLabel === 'Role of P3_N'")
    data.get_by_role("button", name="Explore", exact=True).press("Enter")
    data.locator(".ca-side", has_text="160 rows × 12").wait_for(state="attached")
    see(data, 160)
    assert clicks(data) == 0
