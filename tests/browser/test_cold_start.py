"""A deep link must work on a server that has served nothing yet."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
APP = Path(__file__).parents[2] / "app.py"


def test_the_first_visit_of_a_server_may_be_a_deep_link(visit, serve):
    fresh = serve(APP, APPCA_COLD_START="1")  # an environment of its own: a server of its own
    page = visit(f"{fresh.url}/export").page
    page.get_by_role("heading", name="Export", exact=True, level=1).wait_for(timeout=60_000)
    page.get_by_role("button", name="Save CSV").wait_for(timeout=60_000)
    page.wait_for_function("() => !document.querySelector('[role=dialog]')")
    assert page.get_by_text("Page not found").count() == 0
