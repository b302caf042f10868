"""Tests of every page in the frame: with the digits, good and bad uploads, and URLs."""

from unittest.mock import Mock

import numpy as np

from appca.data.preprocessing import Preprocessing
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.store import RunStore
from appca.ui import components, fits, frame
from tests.pages import give, select
from tests.ui.conftest import (
    PAGES,
    address,
    click,
    go,
    healthy,
    html,
    keys,
    sentences,
    slider,
    told,
)


def own_table() -> bytes:
    """Write a table of 40 rows with gaps, whose label would be markup."""
    rng, lines = np.random.default_rng(0), ["name,<u>class</u>,a,b,c,d"]
    for row in range(40):
        cells = ["" if row % 9 == j else f"{x:.4f}" for j, x in enumerate(rng.normal(size=4))]
        lines.append(f"item {row},{'<b>x</b>' if row % 2 else '=1+1'},{','.join(cells)}")
    return "\n".join(lines).encode()


def test_every_page_runs_inside_the_frame_and_says_what_is_missing(start, jobs):
    app = give(start("data/open"), ("own.csv", own_table()))
    assert "40 rows × 4" in html(healthy(app))
    select(app, np.arange(20))
    gaps = {"check/trust": 1, "check/advanced": 1}  # where they matter
    for page, title in PAGES.items():
        healthy(go(app, page))
        assert [shown.value for shown in app.title] == [title], page
        assert all(words in html(app) for words in ("own", "20 missing cells")), page
        assert {"data", "run", "k", "l"} <= set(address(app)), page
        assert told(app).count("20 cells of these data are missing.") == gaps.get(page, 0), page
        assert not any(mark in html(app) for mark in ("<b>x</b>", "<u>class"))


def test_the_first_page_is_the_finished_picture_and_k_and_l_push_each_other(start):
    app = healthy(start())
    assert (slider(app, "k").value, slider(app, "l").value) == (4, 2)
    assert html(app).count('class="ca-piece"') == 4
    (stored,) = RunStore(home()).list()
    assert (stored.id, stored.config.parameters["n_components"]) == (address(app)["run"], 4)
    assert html(healthy(slider(app, "k").set_value(6).run())).count('class="ca-piece"') == 6
    assert address(app)["k"] == "6"
    assert address(app)["run"] != stored.id
    slider(app, "k").set_value(4).run()
    assert address(app)["run"] == stored.id
    for size, value, both in (("k", 1, 1), ("l", 5, 5), ("k", 3, 3)):
        slider(app, size).set_value(value).run()
        assert (slider(app, "k").value, slider(app, "l").value) == (both, both)
    healthy(slider(app, "k").set_value(14).run())
    assert slider(app, "k").value == 14
    assert (address(app)["k"], address(app)["l"]) == ("14", "3")


def test_preprocessing_is_part_of_the_run_and_of_the_tests_of_features(start, monkeypatch):
    app = start("data/this", data=load("wine"))
    before = address(app)["run"]
    app.number_input(key="pre-divide").set_value(2.0).run()
    assert address(healthy(app))["run"] != before
    app.number_input(key="pre-divide").set_value(1.0).run()
    assert address(healthy(app))["run"] == before
    app.selectbox(key="pre-prepare").select("counts").run()
    assert app.selectbox(key="pre-scale").value == "global"
    assert html(healthy(app)).count("All values") == 2
    assert "features after the preparation" in told(healthy(go(app, "groups/differences")))
    given, associated = [], components.associated
    look = lambda *of, **how: given.append(of[2]) or associated(*of, **how)  # noqa: E731
    monkeypatch.setattr(components, "associated", look)
    go(app, "components/meaning")
    prepared = Preprocessing(prepare="counts").fit(load("wine").X).transform(load("wine").X)
    np.testing.assert_allclose(given[1]["proline"].values, prepared[:, -1], rtol=1e-6)
    go(healthy(app), "data/this")
    app.selectbox(key="pre-reduce").select("dimensions").run()
    app.number_input(key="pre-dimensions").set_value(3).run()
    assert address(healthy(app))["k"] == "3"  # K cannot exceed the dimensions


def test_work_is_opened_renamed_and_deleted_and_the_steps_of_a_slider_are_none(start):
    app = start()
    slider(app, "k").set_value(5).run()
    slider(app, "k").set_value(6).run()
    last = address(app)["run"]
    go(app, "data/open")
    assert {key for key in keys(healthy(app)) if key.startswith("open-")} == {f"open-{last}"}
    app.text_input(key=f"name-{last}").set_value("my <i>work</i>").run()
    assert RunStore(home()).get(last).name == "my <i>work</i>"
    assert "my &lt;i&gt;work&lt;/i&gt;" in html(healthy(app))
    go(app, "data/open").button(key="source-wine-open").click().run()
    assert address(click(go(app, "data/open"), f"open-{last}"))["run"] == last
    go(app, "data/open").button(key=f"delete-{last}").click().run()
    assert RunStore(home()).get(last) is None
    healthy(app)


def test_a_page_without_the_memory_to_draw_says_so_in_a_sentence(start, monkeypatch):
    too_large = Mock(side_effect=lambda *_, **__: np.empty(1 << 62, np.uint8))  # 4 EiB
    for page in ("explore", "components/gallery", "export"):
        with monkeypatch.context() as patch:
            patch.setattr(fits, "fit_run", too_large)
            app = start(page)
        assert not app.exception
        assert sentences(app) == ["There is not enough memory; use fewer rows or fewer features."]
        assert "Handwritten digits" in html(app)  # the navigation is there to choose other data
    healthy(app.run())  # and the session goes on
    monkeypatch.setattr(frame, "_on_screen", too_large)  # of the status line alone
    app = start()
    assert not app.exception
    assert html(app).count('class="ca-piece"') == 4
