"""The guided tour and the words for K and L, as a person's first and second visit see them."""

from itertools import combinations
from math import comb

import pytest

from appca.ui.explore import sizes_help
from appca.ui.frame import tour
from tests.ui.conftest import healthy, html

TITLES = ["Panels", "K and L", "Colour", "Images on points", "Lasso", "Export"]


@pytest.fixture
def first_visit(monkeypatch):
    monkeypatch.delenv("APPCA_TOUR")


def titles(app) -> list[str]:
    """The steps of the tour that are on the page: none or one."""
    return [title for title in TITLES if f"<b>{title}</b>" in html(app)]


def has_button(app, key: str) -> bool:
    return any(button.key == key for button in app.button)


def test_the_first_visit_shows_the_tour_and_the_second_does_not(start, first_visit):
    assert titles(healthy(start())) == ["Panels"]
    assert titles(healthy(start())) == []


def test_the_tour_goes_on_and_back_and_ends(start, first_visit):
    app = start()
    seen = titles(app)
    assert app.button(key="tour_back").disabled
    while has_button(app, "tour_next"):
        app.button(key="tour_next").click().run()
        seen += titles(app)
    assert seen == TITLES
    app.button(key="tour_back").click().run()
    assert titles(app) == ["Lasso"]
    app.button(key="tour_close").click().run()
    assert titles(healthy(app)) == []
    assert not has_button(app, "tour_close")


def test_it_stays_while_the_person_moves_the_sliders(start, first_visit):
    app = start()
    app.button(key="tour_next").click().run()
    app.slider(key="k").set_value(5).run()
    assert titles(healthy(app)) == ["K and L"]


def test_it_begins_again_from_the_sidebar_of_any_page(start):
    app = start("data/data")
    assert titles(app) == []
    app.button(key="tour_start").click().run()
    assert titles(healthy(app)) == ["Panels"]


def test_a_home_that_cannot_be_written_to_forgets_and_does_not_break_the_page(
    start, first_visit, appca_home, monkeypatch
):
    (appca_home / "blocked").write_text("a file where the tour wants a folder")
    monkeypatch.setattr(tour, "MEMORY", "blocked/seen")
    for _ in range(2):
        assert titles(healthy(start())) == ["Panels"]


def test_the_steps_leave_out_what_the_model_or_the_data_do_not_have():
    table = tour.steps(with_l=False, with_images=False)
    assert [step.title for step in table] == ["Panels", "K", "Colour", "Points", "Lasso", "Export"]
    assert not any("L how many" in step.text for step in table)
    assert not any("appca-size" in step.target for step in table)


@pytest.mark.parametrize(("k", "active"), [(4, 2), (5, 1), (6, 6), (7, 3)])
def test_the_number_of_subspaces_is_that_of_the_choices_listed_one_by_one(k, active):
    ways = len(list(combinations(range(k), active)))
    text = sizes_help.in_numbers(k, active, 1000)
    assert f"allow **{ways} subspace" in text
    assert ("all 1,000 rows" in text) == (k == active)
    if ways > 1:
        assert f"about {round(1000 / ways):,} rows each" in text


def test_one_block_is_no_blocks():
    assert 'aria-label="1 block; each' in sizes_help.drawing(1, 1)


def test_more_subspaces_than_rows_are_said_to_stay_empty():
    assert "most stay empty" in sizes_help.in_numbers(20, 10, 1797)


def test_large_numbers_are_given_roughly():
    assert sizes_help.rough(125_970) == "125,970"
    assert sizes_help.rough(comb(40, 20)) == "about 10¹¹"
    assert sizes_help.rough(2_600_000) == "about 3 × 10⁶"
    assert sizes_help.rough(9_700_000) == "about 10⁷"


@pytest.mark.parametrize(("k", "active"), [(4, 2), (3, 3), (12, 5), (100, 50), (2, 1)])
def test_the_rows_of_the_drawing_use_l_blocks_each(k, active):
    shown = min(k, sizes_help.MOST_BLOCKS)
    rows = [sizes_help.choice(k, active, row) for row in range(3)]
    assert all(len(row) == min(active, shown) and max(row) < shown for row in rows)
    drawn = sizes_help.drawing(k, active)
    assert f'aria-label="{k} blocks; each' in drawn
    assert drawn.count("<i>") + drawn.count("<i class") == shown * (1 + min(3, comb(k, active)))
    assert ("…" in drawn) == (k > shown)
