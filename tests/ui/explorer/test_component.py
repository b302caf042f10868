import base64

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

N = 20


def page():
    import numpy as np
    import streamlit as st

    from appca.plots.explore.panel import Panel
    from appca.ui.explorer.component import explorer

    rows = np.arange(20, dtype=np.int32)
    panels = [Panel("a", "", rows, rows, rows)]
    result = explorer("ex", panels, n_rows=20, revision="r", selection=st.session_state.get("kept"))
    selection = None if result.selection is None else np.flatnonzero(result.selection).tolist()
    st.session_state["seen_by_page"] = (selection, result.changed)


def stamped(rows: list[int], number: int, mount: str = "m") -> dict:
    bits = np.packbits(np.isin(np.arange(N), rows), bitorder="little").tobytes()
    text = base64.b64encode(bits).decode() if rows else None
    return {"selection": {"mount": mount, "number": number, "bits": text}, "need": None}


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_function(page, default_timeout=30).run()


def test_the_page_runs_and_nothing_is_selected(app):
    assert not app.exception
    assert app.session_state["seen_by_page"] == (None, False)


def test_a_lasso_reaches_the_page_once(app):
    app.session_state["ex"] = stamped([3, 17], 1)
    app.run()
    assert app.session_state["seen_by_page"] == ([3, 17], True)
    app.session_state["kept"] = np.isin(np.arange(N), [3, 17])
    app.session_state["ex"] = stamped([3, 17], 1)
    app.run()
    assert app.session_state["seen_by_page"] == ([3, 17], False)


def test_the_pages_own_selection_goes_before_an_old_one_of_the_browser(app):
    app.session_state["ex"] = stamped([3], 1)
    app.run()
    app.session_state["kept"] = np.arange(N) < 2
    app.session_state["ex"] = stamped([3], 1)
    app.run()
    assert app.session_state["seen_by_page"] == ([0, 1], False)


def test_a_clearing_reaches_the_page(app):
    app.session_state["kept"] = np.arange(N) < 2
    app.session_state["ex"] = stamped([], 1)
    app.run()
    assert app.session_state["seen_by_page"] == (None, True)


def test_a_second_life_of_the_component_counts_from_one_again(app):
    for mount in ("first", "second"):
        app.session_state["ex"] = stamped([4], 1, mount)
        app.run()
        assert app.session_state["seen_by_page"] == ([4], True)


def test_what_does_not_fit_is_ignored_and_the_page_lives(app):
    app.session_state["kept"] = np.arange(N) < 2
    for bits in (base64.b64encode(bytes(50)).decode(), "?", 5):
        app.session_state["ex"] = {"selection": {"mount": "m", "number": 1, "bits": bits}}
        app.run()
        assert not app.exception
        assert app.session_state["seen_by_page"] == ([0, 1], False)


def two_explorers():
    from types import SimpleNamespace

    import numpy as np

    from appca.plots.explore.panel import Panel
    from appca.plots.explore.sprites import sprites_of
    from appca.ui.explorer.component import explorer

    images = np.zeros((20, 4, 4), np.uint8)
    pictures = sprites_of(
        SimpleNamespace(digest="d", n_rows=20, image_shape=(4, 4), images=lambda rows: images[rows])
    )
    rows = np.arange(20, dtype=np.int32)
    for key in ("left", "right"):
        panels = [Panel(key, "", rows, rows, rows)]
        explorer(key, panels, n_rows=20, revision="r", sprites=pictures)


def test_two_explorers_on_a_page_share_plotly_and_the_images():
    app = AppTest.from_function(two_explorers, default_timeout=30).run()
    assert not app.exception
    parts = [part.proto.component_name for part in app.get("bidi_component")]
    assert sorted(parts) == sorted(
        ["appca_plotly", *["appca_parcel"] * 5, "appca_explorer", "appca_explorer"]
    )


def call(**changes):
    from appca.plots.explore.panel import Panel
    from appca.ui.explorer.component import explorer

    rows = np.arange(5, dtype=np.int32)
    arguments = {"n_rows": 5, "revision": "r", **changes}
    explorer("ex", [Panel("a", "", rows, rows, rows)], **arguments)


def test_rows_beyond_the_data_set_are_refused():
    with pytest.raises(ValueError, match=r"panel 'a' has row 4 but the data set has 4 rows"):
        call(n_rows=4)


def test_a_selection_of_another_data_set_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\) for 5 rows; give one flag a row"):
        call(selection=np.zeros(3, bool))


def test_thumbnails_of_another_data_set_are_refused():
    from types import SimpleNamespace

    with pytest.raises(ValueError, match="thumbnails are of 9 rows but the panels of 5"):
        call(sprites=SimpleNamespace(n_rows=9))
