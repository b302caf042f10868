"""The page Explore: bar, picture and drawer, walked through as a person would."""

import json

import numpy as np

from appca.analysis.selections import SelectionStore, token_of
from appca.data.dataset import categories
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.store import RunStore
from appca.ui import canvas, explore, services
from tests.ui.conftest import address, healthy, html, number, press, slider
from tests.ui.parts.test_pages import select

PAGE, DRAWER = "explore", "tab-components-selection-point"


def tab(app, name: str):
    return healthy(app.segmented_control(key=DRAWER).set_value(name).run())


def test_what_a_widget_showed_before_the_size_was_set_elsewhere_does_not_bring_it_back(start):
    app = healthy(start(PAGE))
    before = slider(app, "k")._widget_state
    healthy(number(app, "k").set_value(14).run())
    told = app._tree.get_widget_states()
    told.widgets.append(before)  # by a browser that has not heard of 14
    app._run(told)
    assert address(healthy(app))["k"] == "14"
    assert (slider(app, "k").value, number(app, "k").value) == (14, 14)


def test_k_l_model_colour_and_the_drawer(start):
    app = healthy(start(PAGE))
    assert html(app).count('class="ca-piece"') == 4
    healthy(slider(app, "k").set_value(6).run())
    assert html(app).count('class="ca-piece"') == 6
    healthy(number(app, "k").set_value(14).run())
    assert (slider(app, "k").value, slider(app, "k").max) == (14, 14)
    healthy(number(app, "l").set_value(3).run())
    assert (address(app)["k"], address(app)["l"]) == ("14", "3")
    healthy(slider(app, "k").set_value(4).run())
    healthy(app.selectbox(key="set-model").set_value("PPCA").run())
    assert [one.label for one in app.slider] == ["K"]
    healthy(app.selectbox(key="set-model").set_value("aPPCA").run())
    colour = next(box for box in app.radio if box.key.startswith("colour-"))
    healthy(colour.set_value("residual").run())


def test_names_and_signs_of_components_change_in_the_drawer(start):
    app = healthy(start(PAGE))
    run = RunStore(home()).get(address(app)["run"])
    healthy(press(app, "drawer_components", "rename", 1, "slant"))
    healthy(press(app, "drawer_components", "flip", 0))
    known = ComponentNumbers(home()).of_run(run)
    assert (known.names[1], known.signs[0]) == ("slant", -1)
    press(app, "drawer_components", "users", 2)
    tab(app, "selection")
    users = int(run.fitted.active[:, 2].sum())
    assert any(f"### {users:,}" in text.value for text in app.markdown)


def test_the_selection_and_a_row_are_told_in_the_drawer(start):
    app = start(PAGE)
    select(app, np.array([3, 5, 800]))
    tab(app, "selection")
    assert any("### 3" in text.value for text in app.markdown)
    assert "ca-mix" in html(app)
    select(app, np.array([800]))
    tab(app, "point")
    assert address(app)["row"] == "digit-800"
    assert any("× component" in text.value for text in app.markdown)
    app.button(key="select_neighbours").click().run()
    healthy(app.button(key="point_next").click().run())


def test_the_selection_is_a_rule_that_is_kept_and_offered_with_other_data(start):
    app = start(PAGE)
    zeros = load("digits").labels["digit"].astype(str) == "0"
    select(app, np.flatnonzero(zeros))
    tab(app, "selection")
    rule = next(
        text.value for text in app.markdown if "score on" in text.value and "**" in text.value
    )
    assert "digit is" not in rule, "the class itself is no news"
    assert "score on 4 below" in rule.replace("\\", "")
    said = next(text.value for text in app.caption if "selected rows meet the rule" in text.value)
    assert "on 598 rows that the search has not seen" in said
    app.button(key="rule_keep").click().run()
    app.button(key="rule_select").click().run()
    now = address(healthy(app))["sel"]
    (saved,) = SelectionStore(home()).list(load("digits").digest, 1797)
    assert token_of(saved.mask) == now
    reloaded = healthy(start("groups/differences"))
    named = next(box for box in reloaded.selectbox if box.label == "Named selection")
    assert named.value == saved.name


def test_views_keep_their_places_and_a_second_one_is_a_press_away(start, monkeypatch):
    told = []
    monkeypatch.setattr(canvas, "draw", lambda *_, **more: told.append(more["options"]["beside"]))
    app = healthy(start(PAGE))
    view = next(choice for choice in app.segmented_control if choice.label == "View")
    assert view.options == ["Subspaces", "PCA", "Map"]
    healthy(number(app, "l").set_value(3).run())
    view = next(choice for choice in app.segmented_control if choice.label == "View")
    assert view.options == ["Subspaces", "Pairs", "PCA", "Map"]
    assert told[-1] == ""
    healthy(app.segmented_control(key="split").set_value(["Split"]).run())
    assert told[-1] == "pca"
    healthy(view.set_value("pca").run())
    assert told[-1] == "subspaces"


def test_the_map_of_a_recording_is_its_slices_which_need_no_umap(start, monkeypatch):
    drawn = []
    monkeypatch.setattr(canvas, "draw", lambda _, *shown, **__: drawn.append(shown[:2]))
    app = healthy(start(PAGE, data=services.datasets().put(load("brain"))))
    view = next(choice for choice in app.segmented_control if choice.label == "View")
    assert view.options == ["Subspaces", "PCA", "Map", "UMAP"]
    healthy(view.set_value("slices").run())
    scene, layout = drawn[-1]
    assert layout == "slices"
    assert scene.scene.buffers["map.slices"].shape == (2720, 2)
    assert not [button for button in app.button if button.key == "umap_run"]
    healthy(app.segmented_control(key=view.key).set_value("umap").run())
    assert app.button(key="umap_run").label.startswith("Lay out the map")


def test_a_class_that_is_renamed_in_the_picture_keeps_its_name_with_the_data(start):
    app = healthy(start(PAGE))
    dataset = services.dataset(app.session_state["config"].dataset)

    def rename(*said: str) -> list[str]:
        explore._act(dataset, "class", json.dumps(said))
        names, codes = categories(services.dataset(dataset.digest).labels["digit"])
        return [names[code] for code in codes[[3, 8, 30]]]

    assert rename("digit", "3", " drei  eggs ") == ["drei eggs", "8", "0"]
    assert rename("digit", "8", "drei eggs") == ["drei eggs", "drei eggs", "0"]
    assert rename("digit", "drei eggs", "") == ["3", "8", "0"]
    assert rename("digit", "no class", "x") == rename("none", "3", "x") == ["3", "8", "0"]
    explore._act(dataset, "class", '["digit", 3]')
    explore._act(dataset, "class", "no JSON")
    assert rename("digit", "0", "null") == ["3", "8", "null"]
