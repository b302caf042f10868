"""Own files of every kind in the browser: from the uploader to the panels and to the export."""

import io
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.browser.test_app import APP, SECOND, idle
from tests.data.readers.images.test_images import encoded, noise

pytestmark = pytest.mark.browser
EXPLORER = "document.querySelector('.appca-explorer')"
WAIT = 90 * SECOND


@pytest.fixture(scope="module")
def address(serve) -> str:
    return serve(APP, OMP_NUM_THREADS="1").url


def open_uploader(page, address: str) -> None:
    page.set_default_timeout(WAIT)
    page.goto(f"{address}/data")
    idle(page, 60)
    page.get_by_role("tab", name="Your files").click()


def give(page, files: list[Path] | Path) -> None:
    """Put files, or a folder, into the uploader."""
    page.locator("input[type=file]").last.set_input_files(files)


def use(page, rows: str, seconds: float = 90) -> None:
    """Take the files over once their report is there."""
    page.locator(".st-key-upload_use button").wait_for(timeout=seconds * SECOND)
    idle(page, 90)
    assert page.locator(".st-key-upload_use").inner_text() == f"Use these {rows} rows"
    page.locator(".st-key-upload_use button").click()
    page.locator(".ca-side", has_text=f"{rows} rows").wait_for(timeout=WAIT)


def see(page, points: int, images: bool = True) -> None:
    """Look at the subspaces until all points are drawn."""
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name="Subspaces").click()
    pictured = " && explorer.dataset.thumbnails > 10" if images else ""
    page.wait_for_function(
        f"() => {{ const explorer = {EXPLORER}; "
        f"return Boolean(explorer && explorer.dataset.points == {points}{pictured}); }}",
        timeout=WAIT,
    )


def saved(page) -> list[str]:
    """Save the projections as CSV and return the lines."""
    page.locator("[data-testid=stSidebarNav]").get_by_role("link", name="Export").click()
    button = page.locator(".st-key-download-projection-csv button")
    button.wait_for(timeout=WAIT)
    idle(page, 90)
    with page.expect_download(timeout=WAIT) as started:
        button.click()
    return Path(started.value.path()).read_text(encoding="utf-8").splitlines()


def choose(page, key: str, option: str) -> None:
    page.locator(f"[class*='st-key-{key}-'] input").click()
    page.get_by_role("option", name=option).click()
    idle(page, 60)


def table_with_gaps(path: Path) -> int:
    """Write 1,000 x 80 numbers on four factors, a hundredth of them missing; return how many."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 4)) @ rng.normal(size=(4, 80)) + rng.normal(size=(1000, 80))
    gaps = rng.random(X.shape) < 0.01
    lines = ["name,class," + ",".join(f"f{j}" for j in range(80))]
    for i, (values, empty) in enumerate(zip(X, gaps, strict=True)):
        cells = ["" if gap else f"{value:.4f}" for value, gap in zip(values, empty, strict=True)]
        lines.append(",".join([f"item {i}", "abc"[i % 3], *cells]))
    path.write_text("\n".join(lines))
    return int(gaps.sum())


def test_a_table_with_gaps_is_refused_then_filled_by_choice_and_exported(visit, address, tmp_path):
    gaps = table_with_gaps(tmp_path / "table.csv")
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    give(page, tmp_path / "table.csv")
    page.get_by_text(f"The data have {gaps:,} missing cells").wait_for(timeout=WAIT)
    assert page.locator(".st-key-upload_use").count() == 0
    choose(page, "missing", "Put in the column's mean")
    page.get_by_text(f"{gaps:,} cells filled").wait_for()
    use(page, "1,000")
    see(page, 1000, images=False)
    lines = saved(page)
    assert len(lines) == 1001
    assert lines[0].startswith("id,class,subspace,component_1")
    assert lines[1000].startswith("item 999,a,")


def wide_table(path: Path) -> None:
    """Write 250 rows of 7,000 numbers on three factors."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, 3)) @ rng.normal(size=(3, 7000)) + rng.normal(size=(250, 7000))
    names = ",".join(f"gene_{j}" for j in range(7000))
    rows = [f"s{i},{'ab'[i % 2]}," + ",".join(f"{v:.3f}" for v in X[i]) for i in range(250)]
    path.write_text("\n".join([f"id,tissue,{names}", *rows]))


@pytest.mark.slow
def test_seven_thousand_columns_are_searched_given_roles_at_once_and_fitted(
    visit, address, tmp_path
):
    wide_table(tmp_path / "wide.csv")
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    give(page, tmp_path / "wide.csv")
    page.get_by_text("250 rows × 7,002").wait_for(timeout=WAIT)
    page.get_by_text("What each column is for").click()
    page.get_by_text("200 of 7,002 columns shown.").wait_for()
    box = page.get_by_placeholder("part of the name")
    box.fill("gene_69")
    box.press("Enter")
    page.get_by_text("Use all 111 columns found as").wait_for()
    idle(page, 60)
    page.locator("[class*='st-key-role_of_all-'] input").click()
    page.get_by_role("option", name="ignored").click()
    idle(page, 60)
    page.locator("[class*='st-key-set_all-'] button").click()
    page.locator(".ca-facts", has_text="gene_69, gene_690").wait_for(timeout=WAIT)
    use(page, "250")
    page.locator(".ca-side", has_text="250 rows × 6,889").wait_for()
    see(page, 250, images=False)
    assert len(saved(page)) == 251


@pytest.mark.slow
@pytest.mark.real_data
def test_a_mat_file_becomes_images_when_their_size_is_given(visit, address, data_folder, tmp_path):
    shutil.copy(data_folder / "coil20" / "COIL20.mat", tmp_path / "objects.mat")
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    give(page, tmp_path / "objects.mat")
    page.locator(".st-key-upload_use button").wait_for(timeout=WAIT)
    for side in ("Rows are images of height", "and width"):
        idle(page, 60)
        box = page.get_by_label(side)
        box.fill("32")
        box.press("Enter")
    page.get_by_text("32 × 32 pixels").wait_for()
    use(page, "1,440")
    see(page, 1440)
    assert saved(page)[0].startswith("id,Y,subspace,component_1")


def test_files_that_do_not_belong_together_get_one_sentence_and_the_page_lives(
    visit, address, tmp_path
):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("p,q\n1,2\n3,4\n5,7\n")
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    give(page, [tmp_path / "a.csv", tmp_path / "b.csv"])
    page.get_by_text("do not make one data set together").wait_for(timeout=WAIT)
    assert page.locator("[data-testid=stAlert]").count() == 1
    assert page.locator("[data-testid=stException]").count() == 0
    page.get_by_role("button", name="Remove a.csv").click()
    use(page, "3")


DROP = """(box, pictures) => {
  const given = new DataTransfer();
  pictures.forEach((bytes, i) => given.items.add(new File([new Uint8Array(bytes)], `p${i}.png`)));
  const told = { bubbles: true, cancelable: true, dataTransfer: given };
  box.dispatchEvent(new DragEvent('drop', told));
}"""


@pytest.mark.parametrize("way", ["chosen", "dropped"])
def test_a_hundred_and_twenty_images_come_as_one_zip(visit, address, tmp_path, way):
    pictures = [encoded(noise(i, 4, 4)) for i in range(120)]
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    if way == "chosen":
        files = [tmp_path / f"p{i}.png" for i in range(120)]
        for file, picture in zip(files, pictures, strict=True):
            file.write_bytes(picture)
        give(page, files)
    else:
        box = page.locator("[data-testid=stFileUploaderDropzone]").last
        box.evaluate(DROP, [list(picture) for picture in pictures])
    page.get_by_text("120 files.zip").first.wait_for(timeout=WAIT)
    use(page, "120")


@pytest.mark.slow
@pytest.mark.real_data
def test_sixty_thousand_digits_arrive_with_their_labels(visit, address, data_folder, tmp_path):
    for part, end in (("images", "images-idx3"), ("labels", "labels-idx1")):
        shutil.copy(data_folder / "mnist" / f"train-{end}-ubyte.gz", tmp_path / f"my-{part}.idx.gz")
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    give(page, [tmp_path / "my-images.idx.gz", tmp_path / "my-labels.idx.gz"])
    page.get_by_text("10 values: 0 (5,923), 1 (6,742)").wait_for(timeout=WAIT)
    use(page, "60,000")
    see(page, 60_000)
    lines = saved(page)
    assert len(lines) == 60_001
    assert lines[1].startswith("row-1,5,")


@pytest.mark.slow
@pytest.mark.real_data
def test_a_recording_of_the_brain_arrives(visit, address, data_folder):
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    give(page, next((data_folder / "fmri").glob("*.nii.gz")))
    page.locator(".st-key-upload_use button").wait_for(timeout=WAIT)
    rows = page.locator(".st-key-upload_use").inner_text().split()[2]
    use(page, rows)
    see(page, int(rows.replace(",", "")), images=False)
    assert len(saved(page)) == int(rows.replace(",", "")) + 1


@pytest.mark.slow
@pytest.mark.real_data
def test_a_folder_of_1440_pictures_shows_its_classes_and_is_exported(
    visit, address, data_folder, tmp_path
):
    with zipfile.ZipFile(
        io.BytesIO((data_folder / "coil20" / "coil-20-proc.zip").read_bytes())
    ) as z:
        z.extractall(tmp_path)
    page = visit(f"{address}/data").page
    open_uploader(page, address)
    page.get_by_text("A folder of images", exact=True).click()
    page.locator("input[type=file][webkitdirectory]").wait_for(state="attached")
    give(page, tmp_path / "coil-20-proc")
    page.get_by_text("20 values: obj1 (72), obj2 (72)").wait_for(timeout=600 * SECOND)
    idle(page, 60)
    pattern = page.get_by_placeholder("{class}__{n}.png")
    pattern.fill("{object}__{view}.png")
    pattern.press("Enter")
    page.get_by_text("Label “object”").wait_for(timeout=WAIT)
    idle(page, 60)
    side = page.get_by_label("Bring all to height")
    side.fill("32")
    side.press("Enter")
    page.get_by_text("32 × 32 pixels").wait_for(timeout=WAIT)
    use(page, "1,440")
    see(page, 1440)
    lines = saved(page)
    assert len(lines) == 1441
    assert lines[1].startswith("obj1__0,obj1,0,")
