"""What is found again by a key: made once a key, apart for each function, the oldest given up."""

from types import SimpleNamespace

import streamlit as st

from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.ui.rows import near_rows
from appca.ui.services import by_key, kept


def test_each_function_makes_a_key_once_whatever_its_arguments():
    st.cache_resource.clear()
    made = []

    @by_key(2)
    def first(one: object, *, told: object) -> str:
        made.append(("first", one, told))
        return "first"

    @by_key(2)
    def second(one: object, *, told: object) -> str:
        made.append(("second", one, told))
        return "second"

    unhashable = [lambda: None]
    assert [first("a", unhashable, told=1), first("a", None, told=2)] == ["first", "first"]
    assert second("a", unhashable, told=3) == "second"
    assert made == [("first", unhashable, 1), ("second", unhashable, 3)]


def test_more_keys_than_are_kept_are_made_again():
    st.cache_resource.clear()
    made = []
    kept = by_key(2)(made.append)
    for key in "abca":
        kept(key, key)
    assert made == ["a", "b", "c", "a"]
    kept("c", "c")
    assert made == ["a", "b", "c", "a"]


def test_clicks_on_rows_leave_what_is_kept_of_fits():
    st.cache_resource.clear()
    dataset, made = load("wine"), []
    fitted = SimpleNamespace(preprocessing=Preprocessing().fit(dataset.X))
    shown = SimpleNamespace(fitted=fitted, config=SimpleNamespace(preprocessing={}))
    for _ in range(2):
        kept("patterns", lambda: made.append("patterns"))
        for row in range(60):
            near_rows(dataset, shown, row)
    assert made == ["patterns"]
