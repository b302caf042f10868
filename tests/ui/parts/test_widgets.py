"""Controls that several pages have, under AppTest."""

import logging

from streamlit.elements.lib import policies
from streamlit.testing.v1 import AppTest

from appca.ui import kit


def choice() -> None:
    import streamlit as st

    from appca.ui.kit import one_of

    if st.button("Show the second"):
        st.session_state["which"] = 2
    if st.button("Show what is gone"):
        st.session_state["which"] = 9
    st.write(f"chosen: {one_of('Which', {1: 'One', 2: 'Two', 3: 'Three'}, 'which', default=3)}")


def test_a_choice_that_the_page_makes_is_no_second_default(monkeypatch, caplog):
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    monkeypatch.setattr(logging.getLogger("streamlit"), "propagate", True)
    app = AppTest.from_function(choice).run()
    said = [app.markdown[0].value]
    said += [app.button[which].click().run().markdown[0].value for which in (0, 1)]
    said += [app.button_group(key="which").set_value(1).run().markdown[0].value]
    assert said == ["chosen: 3", "chosen: 2", "chosen: 3", "chosen: 1"]
    assert not app.exception
    assert "Session State API" not in caplog.text


def test_pages_follow_one_another_without_gap_or_overlap(monkeypatch):
    shown = []
    for page in (1, 2, 3):
        monkeypatch.setattr(kit.st, "pagination", lambda pages, page=page, **_: min(page, pages))
        first = kit.first_of_page(25, 12, "key")
        shown += range(25)[first : first + 12]
    assert shown == list(range(25))
    assert kit.first_of_page(12, 12, "key") == 0
