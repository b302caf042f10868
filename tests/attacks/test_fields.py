"""Long texts in every field of the pages: what is kept is bounded, and no page breaks.

A browser lets nobody type more than a field takes; a message to the server can say anything.
"""

import numpy as np

from appca.analysis.selections import NAME_LENGTH, SelectionStore
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.store import RunStore
from tests.attacks.small_inputs import MOST, TEXTS
from tests.ui.arrivals.test_uploads import field, give, wide
from tests.ui.conftest import address, go, html, press, start  # noqa: F401 - a fixture
from tests.ui.parts.test_pages import select

TEXT = TEXTS["signs of Markdown"]  # each of which a page must protect
LARGEST_PAGE = 5 * MOST  # characters of a page's texts: a field's own text, and no hundred copies


def assert_alive(app) -> None:
    """Check that a page has no exception, and has not grown by what was typed."""
    assert [problem.message for problem in app.exception] == []
    told = [one.value for one in (*app.markdown, *app.caption, *app.error, *app.warning, *app.info)]
    assert len(html(app)) + sum(map(len, told)) < LARGEST_PAGE


def run_of(app):
    return RunStore(home()).get(address(app)["run"])


def test_names_of_components(start):  # noqa: F811
    app = start("explore")
    run = run_of(app)
    assert_alive(press(app, "drawer_components", "rename", 0, TEXT))
    (name,) = filter(None, ComponentNumbers(home()).of_run(run).names)
    assert 0 < len(name) < 200
    for place in ("components/gallery", "components/meaning", "export"):
        assert_alive(go(app, place))


def test_names_of_work(start):  # noqa: F811
    app = start("data/open")
    run = run_of(app)
    assert_alive(app.text_input(key=f"name-{run.id}").set_value(TEXT).run())
    assert 0 < len(RunStore(home()).get(run.id).custom_name) < 300
    assert_alive(go(app, "explore"))


def test_names_of_selections(start):  # noqa: F811
    app = start("explore")
    digest = run_of(app).config.dataset
    select(app, np.array([3, 5, 800]))
    go(app, "groups/differences")
    app.text_input(key="named-new").set_value(TEXT)
    assert_alive(app.button(key="named-keep").click().run())
    assert max(len(one.name) for one in SelectionStore(home()).list(digest, 1797)) <= NAME_LENGTH


def test_a_search_for_a_row(start):  # noqa: F811
    app = start("explore/point")
    (box,) = (one for one in app.text_input if one.label == "Find a row")
    for text in TEXTS.values():
        assert_alive(box.set_value(text).run())
        (box,) = (one for one in app.text_input if one.label == "Find a row")


def test_a_search_for_columns(start):  # noqa: F811
    app = go(give(start("data/open"), ("wide.csv", wide(300))), "data/this")
    assert_alive(field(app, "Find a column").set_value(TEXT).run())
