"""New rows from a file to the picture to a file, in a browser."""

import csv

import numpy as np
import pytest

from appca.data.sources import load
from tests.browser.test_app import APP, DIGITS, SECOND, drawn, idle

pytestmark = pytest.mark.browser
NEW, NOISE = 40, 6


def table() -> bytes:
    """Return digits of the run and some noise, as a person's table."""
    rng = np.random.default_rng(0)
    X = np.vstack([load("digits").X[:NEW], rng.integers(0, 17, (NOISE, 64))]).astype(int)
    lines = [",".join(f"pixel{j}" for j in range(64))]
    return "\n".join(lines + [",".join(map(str, row)) for row in X.tolist()]).encode()


def test_new_rows_go_from_upload_to_picture_to_file(visit, serve, tmp_path):
    address = serve(APP, OMP_NUM_THREADS="1").url
    page = visit(f"{address}/data?tab=add").page
    page.get_by_text("Place new rows on the picture").wait_for(timeout=60 * SECOND)
    idle(page)
    file = {"name": "new.csv", "mimeType": "text/csv", "buffer": table()}
    page.locator("input[type=file]").last.set_input_files(file)
    drawn(page, f"explorer.dataset.rows == {DIGITS + NEW + NOISE}", 60)
    page.get_by_text("46 new rows; 64 features in the order of the file").wait_for()
    idle(page)
    with page.expect_download(timeout=60 * SECOND) as waited:
        page.locator(".st-key-download-new-rows-csv button").click()
    waited.value.save_as(tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == NEW + NOISE
    assert {row["fits"] for row in rows[NEW:]} == {"False"}
    assert page.locator("[data-testid=stException]").count() == 0
