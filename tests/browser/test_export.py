"""Downloads of every kind arrive, the report opens without a network, a session elsewhere."""

from pathlib import Path

import pytest

from tests.browser.test_app import APP, SECOND, idle

pytestmark = pytest.mark.browser
KINDS = {  # of the buttons: how a file begins
    "projection-csv": b"id",
    "components-csv": b"feature",
    **dict.fromkeys(("projection-npz", "components-npz", "model", "session"), b"PK"),
    **dict.fromkeys(("components-png", "figure-subspaces"), b"\x89PNG"),
    "projection-parquet": b"PAR1",
    **dict.fromkeys(("picture", "report"), b"<!doctype html>"),
}


@pytest.fixture(scope="module")
def sender(serve):
    """Start a server that no other test puts runs onto."""
    return serve(APP, OMP_NUM_THREADS="1", APPCA_TEST_SERVER="sender")


@pytest.fixture(scope="module")
def files(visit, sender, tmp_path_factory) -> dict[str, Path]:
    """Visit a server that has served nothing yet by a deep link, and press every button once."""
    page = visit(f"{sender.url}/export?k=5", still=True).page
    page.get_by_role("heading", name="Export", exact=True, level=1).wait_for(timeout=60 * SECOND)
    folder, found = tmp_path_factory.mktemp("saved"), {}
    page.locator(".st-key-download-projection-csv button").wait_for(timeout=60 * SECOND)
    assert page.get_by_text("Page not found").count() == 0
    idle(page)
    for key in KINDS:
        with page.expect_download(timeout=60 * SECOND) as waited:
            page.locator(f".st-key-download-{key} button").first.click()
        found[key] = folder / f"{key}{Path(waited.value.suggested_filename).suffix}"
        waited.value.save_as(found[key])
    return found


def test_every_file_arrives_and_the_report_opens_without_a_network(files, browsers):
    for key, start in KINDS.items():  # tests/ui/test_export.py reads them
        assert files[key].read_bytes()[:40].lower().startswith(start.lower()), key
    context = browsers().new_context(offline=True)
    page, asked, errors = context.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    own = files["report"].as_uri()
    page.goto(own)
    page.wait_for_function(
        "() => [...document.images].filter((one) => one.naturalWidth > 300).length >= 2",
        timeout=40 * SECOND,
    )
    assert [url for url in asked if not url.startswith(("data:", "blob:", own))] == []
    assert errors == []
    context.close()
