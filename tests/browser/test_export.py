"""Downloads of every kind arrive and open, the report without a network, a session elsewhere."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from appca import load_model
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.store import RunStore
from tests.browser.test_app import APP, SECOND, drawn, idle

pytestmark = pytest.mark.browser
KEYS = (  # of the buttons
    *("projection-csv", "projection-parquet", "projection-npz", "components-csv"),
    *("components-npz", "components-png", "model", "picture", "report", "session"),
    "figure-subspaces",
)


@pytest.fixture(scope="module")
def sender(serve):
    """Start a server that no other test puts runs onto."""
    return serve(APP, OMP_NUM_THREADS="1", APPCA_TEST_SERVER="sender")


@pytest.fixture(scope="module")
def arrived(visit, sender):
    """Visit a server that has served nothing yet by a deep link."""
    page = visit(f"{sender.url}/export?k=5").page
    page.get_by_role("heading", name="Export", exact=True, level=1).wait_for(timeout=60 * SECOND)
    return page


@pytest.fixture(scope="module")
def files(arrived, tmp_path_factory) -> dict[str, Path]:
    """Press every button once."""
    folder, found, page = tmp_path_factory.mktemp("saved"), {}, arrived
    page.locator(".st-key-download-projection-csv button").wait_for(timeout=60 * SECOND)
    idle(page)
    for key in KEYS:
        with page.expect_download(timeout=60 * SECOND) as waited:
            page.locator(f".st-key-download-{key} button").first.click()
        found[key] = folder / f"{key}{Path(waited.value.suggested_filename).suffix}"
        waited.value.save_as(found[key])
    return found


def test_the_first_visit_of_a_server_may_be_a_deep_link(arrived):
    arrived.get_by_role("button", name="Save CSV").first.wait_for(timeout=60 * SECOND)
    arrived.wait_for_function("() => !document.querySelector('[role=dialog]')")
    assert arrived.get_by_text("Page not found").count() == 0


def test_every_file_opens_and_holds_the_run(files, sender):
    (run,) = RunStore(sender.home).list()
    scores, names = run.fitted.scores, [f"component_{k + 1}" for k in range(5)]
    tables = {
        "projection-csv": pd.read_csv,
        "projection-parquet": pd.read_parquet,
    }
    for key, read in tables.items():
        assert read(files[key])[names].to_numpy(np.float32).tolist() == scores.tolist(), key
    with np.load(files["projection-npz"]) as arrays:
        assert arrays["scores"].tolist() == scores.tolist()
    model = load_model(files["model"])
    digits = load("digits").X
    np.testing.assert_allclose(
        model.score_samples(digits), run.fitted.log_likelihood_rows, rtol=1e-10
    )
    assert files["components-png"].read_bytes()[:4] == b"\x89PNG"
    assert len(pd.read_csv(files["components-csv"])) == 64
    assert zipfile.ZipFile(io.BytesIO(files["session"].read_bytes())).testzip() is None


def alone(page, file: Path) -> tuple[list[str], list[str]]:
    """Open a file; return what it has asked for beside itself, and its errors."""
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    return asked, errors


def others(asked: list[str], file: Path) -> list[str]:
    return [url for url in asked if not url.startswith(("data:", "blob:")) and url != file.as_uri()]


def test_the_report_opens_without_a_network(files, browsers):
    context = browsers().new_context(offline=True)
    page = context.new_page()
    asked, errors = alone(page, files["report"])
    page.wait_for_function(
        "() => [...document.images].filter((one) => one.naturalWidth > 300).length >= 2",
        timeout=40 * SECOND,
    )
    assert (others(asked, files["report"]), errors) == ([], [])
    context.close()


def test_the_picture_opens_without_a_network(files, browsers):
    context = browsers().new_context(offline=True)
    page = context.new_page()
    asked, errors = alone(page, files["picture"])
    drawn(page, "explorer.dataset.rows == 1797 && explorer.dataset.thumbnails > 0", 60)
    assert (others(asked, files["picture"]), errors) == ([], [])
    context.close()


def imported(store: RunStore) -> list:
    return [one for one in store.list() if one.config.imported is not None]


def test_a_session_opens_on_a_server_that_knows_nothing_of_it(visit, serve, sender, files):
    fresh = serve(APP, OMP_NUM_THREADS="1", APPCA_TEST_SERVER="fresh")
    (run,) = RunStore(sender.home).list()
    page = visit(f"{fresh.url}/data").page
    page.get_by_text("Drop a file").wait_for(timeout=60 * SECOND)
    idle(page)
    page.locator("[class*=st-key-upload-] input[type=file]").set_input_files(files["session"])
    store = RunStore(fresh.home)
    page.wait_for_url(
        lambda url: any(one.id in url for one in imported(store)), timeout=40 * SECOND
    )
    idle(page)
    drawn(page, "explorer.dataset.rows == 1797", 60)
    (kept,) = imported(store)
    assert kept.fitted.scores.tobytes() == run.fitted.scores.tobytes()
    assert DatasetStore(fresh.home).get(run.config.dataset).n_rows == 1797
