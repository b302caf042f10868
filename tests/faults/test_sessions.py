"""Several sessions of one server: nothing of one shows in another, and each outlives the other."""

import numpy as np
import pytest

from appca.data.store import DatasetStore
from appca.runs.store import RunStore
from appca.ui import services
from tests.ui.conftest import address, go, healthy, html, sentences, slider, start
from tests.ui.parts.test_pages import DIGITS, good_table, select, table_of, upload

__all__ = ["start"]  # the fixture
PAGES = ("data/open", "explore", "groups/differences", "export")


def texts(app) -> str:
    """Return all that a page and its sidebar say."""
    kinds = (
        "html",
        "markdown",
        "text",
        "caption",
        "title",
        "selectbox",
        "dataframe",
        "arrow_table",
    )
    return "\n".join(str(item.proto) for kind in kinds for item in app.get(kind)) + html(app)


@pytest.mark.thorough
def test_two_sessions_at_once_keep_their_data_selection_and_run_apart(start):
    one, two = start(), start("data/open")
    upload(two, ("two-secret.csv", good_table("kind").encode(), "text/csv"))
    assert "two-secret" not in texts(healthy(one.run()))
    go(two, "explore")
    select(one, np.array([3, 5, 800]))
    select(two, np.arange(7), n_rows=40)
    slider(two, "k").set_value(2).run()
    for page in PAGES:
        for app in (one, two):
            healthy(go(app, page))
        assert "Handwritten digits" in html(one)
        assert "two-secret" in html(two)
        assert page.startswith("data") or "two-secret" not in texts(one)
        assert ("Handwritten digits" in html(two)) <= page.startswith("data"), "a card offers them"
        first, second = address(one), address(two)
        assert (first["k"], second["k"]) == ("4", "2")
        assert first["data"] != second["data"]
        assert first["run"] != second["run"]
        assert first["sel"] != second["sel"]


def test_a_selection_of_one_session_is_none_in_another_on_the_same_data(start):
    one, two = start(), start()
    select(one, np.array([3, 5, 800]))
    assert "sel" not in address(healthy(two.run()))
    assert "sel" in address(one)
    select(two, np.array([4]))
    assert address(healthy(one.run()))["sel"] != address(two)["sel"]


def test_a_file_that_is_read_in_one_session_can_be_read_in_another_at_the_same_time(start):
    one, two = start("data/open"), start("data/open")
    upload(one, table_of(good_table("one")))
    upload(two, table_of(good_table("two").replace("item 1,", "item one,")))
    healthy(two.run())
    assert address(healthy(one))["data"] != address(healthy(two))["data"]
    assert len(DatasetStore(services.datasets().folder.parent).list()) == 3


def test_work_deleted_in_one_tab_is_fitted_again_in_the_other(start, appca_home):
    one, two = start(), start("data/open")
    run = address(one)["run"]
    assert address(two)["run"] == run
    RunStore(appca_home).delete(run)
    healthy(two.run())
    for page in ("explore", "components/gallery", "export"):
        healthy(go(one, page))
    assert address(one)["run"] == run
    assert RunStore(appca_home).get(run).fitted.scores.shape == (DIGITS, 4)


def test_a_click_on_work_that_another_tab_has_deleted_is_no_error(start, appca_home):
    one = start("data/open")
    (run,) = RunStore(appca_home).list()
    stored = (appca_home / "runs" / run.id).rename(appca_home / "elsewhere")
    one.text_input(key=f"name-{run.id}").set_value("late").run()
    assert [problem.message for problem in one.exception] == []
    assert f"no fit “{run.id}” to rename" in sentences(one)[0]
    stored.rename(run.path)
    healthy(one.run())
    RunStore(appca_home).delete(run.id)
    one.button(key=f"open-{run.id}").click().run()
    assert address(healthy(one))["k"] == "4", "its settings are opened, to be fitted again"


def test_data_deleted_in_one_tab_stay_in_the_other_as_long_as_they_are_open(start, appca_home):
    one, two = start("data/open"), start("data/open")
    for app in (one, two):
        app.button(key="source-wine-open").click().run()
    DatasetStore(appca_home).delete(address(one)["data"])
    healthy(go(one, "explore"))
    assert "Wine" in html(healthy(two.run()))
    services._opened.clear()
    two.run()
    assert [problem.message for problem in two.exception] == []
    assert "no stored data set" in sentences(two)[0]
    two.button(key="source-wine-open").click().run()
    assert "Wine" in html(healthy(two))
    assert "Wine" in html(healthy(one.run())), "what the one has loaded again is there for both"
