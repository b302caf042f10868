"""Downloads of every kind arrive and open, the report without a network, a session elsewhere."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from appca import load_model
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.runs.store import RunStore
from tests.browser.test_app import APP, SECOND, drawn, idle, open_page

pytestmark = pytest.mark.browser
KINDS = {  # tab -> keys of its buttons
    "Projections": ("projection-csv", "projection-parquet", "projection-npz", "explorer"),
    "Components": ("components-csv", "components-npz", "components-png"),
    "Model": ("model",),
    "Figures": ("figure-subspaces", "figure-components", "figure-log-likelihood"),
    "Report": ("report",),
    "Session": ("session",),
}


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
    page.get_by_role("tab", name="Projections").wait_for(timeout=40 * SECOND)
    idle(page)
    for tab, keys in KINDS.items():
        page.get_by_role("tab", name=tab).click()
        for key in keys:
            with page.expect_download(timeout=60 * SECOND) as waited:
                page.locator(f".st-key-download-{key} button").first.click()
            found[key] = folder / f"{key}{Path(waited.value.suggested_filename).suffix}"
            waited.value.save_as(found[key])
    return found


def test_the_first_visit_of_a_server_may_be_a_deep_link(arrived):
    arrived.get_by_role("button", name="Save CSV").wait_for(timeout=60 * SECOND)
    arrived.wait_for_function("() => !document.querySelector('[role=dialog]')")
    assert arrived.get_by_text("Page not found").count() == 0


def test_every_file_opens_and_holds_the_run(files, sender):
    (run,) = RunStore(sender.home).list()
    scores, names = run.fitted.scores, [f"component_{k + 1}" for k in range(5)]
    tables = {
        "projection-csv": pd.read_csv,
        "projection-parquet": pd.read_parquet,
        "explorer": pd.read_parquet,
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


def test_report_and_figures_open_without_a_network(files, browsers):
    context = browsers().new_context(offline=True)
    try:
        for key, count in {"report": 3, "figure-subspaces": 1}.items():
            asked, errors = [], []
            page = context.new_page()
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("pageerror", lambda error, errors=errors: errors.append(str(error)))
            page.goto(files[key].as_uri())
            page.wait_for_function(
                "n => document.querySelectorAll('.plotly-graph-div .main-svg').length >= n",
                arg=count,
                timeout=40 * SECOND,
            )
            others = [url for url in asked if not url.startswith(("data:", "blob:"))]
            assert others == [files[key].as_uri()]
            assert errors == []
            page.close()
    finally:
        context.close()


def imported(store: RunStore) -> list:
    return [one for one in store.list() if one.config.imported is not None]


def test_a_session_opens_on_a_server_that_knows_nothing_of_it(visit, serve, sender, files):
    fresh = serve(APP, OMP_NUM_THREADS="1", APPCA_TEST_SERVER="fresh")
    (run,) = RunStore(sender.home).list()
    page = visit(f"{fresh.url}/data").page
    page.get_by_role("tab", name="Your files").click(timeout=40 * SECOND)
    idle(page)
    page.get_by_text("Open a session file").click()
    page.locator('[class*="st-key-session_file-"] input[type=file]').set_input_files(
        files["session"]
    )
    store = RunStore(fresh.home)
    page.wait_for_url(
        lambda url: any(one.id in url for one in imported(store)), timeout=40 * SECOND
    )
    idle(page)
    open_page(page, "Explore")
    drawn(page, "explorer.dataset.panels == 10")
    (kept,) = imported(store)
    assert kept.fitted.scores.tobytes() == run.fitted.scores.tobytes()
    assert DatasetStore(fresh.home).get(run.config.dataset).n_rows == 1797
