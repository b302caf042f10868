"""The page Groups under AppTest: every tab has an answer, with and without a selection."""

import numpy as np

from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.ui import services
from tests.ui.conftest import address, go, healthy, html


def told(app) -> str:
    return " ".join(item.value for item in [*app.markdown, *app.caption]).replace("\\", "")


def test_differences_open_with_a_panel_a_class_or_the_selection(start):
    app = healthy(start("groups/differences"))
    assert "differ from the rest most in" in told(app)
    assert "subspace {" not in told(app), "a panel is no difference of its own rows"
    rows = app.selectbox[0]
    rows.set_value("digit = 0").run()
    assert "The 178 rows of Digit 0 differ from the rest" in told(healthy(app))
    assert not any(name.startswith("digit") for name in app.dataframe[0].value["what"])
    assert html(app).count("mean image: ") == 3
    app.button(key="group_select").click().run()
    assert "The 178 selected rows differ from the rest most in digit = 0" in told(healthy(app))
    assert "sel" in address(app)


def test_similar_neighbours_and_unusual_rows_answer(start):
    app = start("groups/differences")
    app = healthy(app.toggle(key="similar_rows").set_value(True).run())
    assert "share a group most often" in told(app)
    assert html(app).count('data-act="group"') == 6
    app = healthy(go(app, "explore/point"))
    assert "Row digit-0" in html(app)
    assert sum(str(button.key).startswith("look-") for button in app.button) == 12
    app = healthy(go(app, "groups/unusual"))
    table = app.dataframe[0].value
    worst = table[["T² / limit", "Q / limit"]].max(axis=1)
    assert worst.is_monotonic_decreasing, "the worst first"
    assert (table["fits"] == np.where(worst > 1, "no", "yes")).all()
    beyond = told(app).split(" of 1,797 rows")[0].rpartition("**")[2]
    app.button(key="unusual_select").click().run()
    app = healthy(go(healthy(app), "groups/differences"))
    assert f"{beyond} of 1,797 rows selected" in told(app)
    app = healthy(go(app, "groups/unusual"))
    app.button(key="unusual_row").click().run()
    assert "1 of 1,797 rows selected" in told(healthy(go(app, "groups/differences")))


def test_a_table_without_labels_has_all_tabs(start):
    wine = load("wine")
    bare = Dataset("bare", wine.X, wine.ids)
    app = start("groups/differences", data=services.datasets().put(bare))
    app = healthy(app.toggle(key="similar_rows").set_value(True).run())
    assert "groups of similar rows" in told(app)
    healthy(go(app, "groups/unusual"))
    assert "rebuilt" in html(app), "the worst row is taken apart"
