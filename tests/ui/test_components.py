"""Tests of the pages Components and Groups, in the order of a user's steps."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from appca.analysis.association import SORTED, ordered
from appca.data.dataset import Dataset
from appca.data.readers import process
from appca.data.sources import load
from appca.runs.home import home
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.ui import components, services, state
from appca.ui.fits import Shown
from tests.fitted_runs import fitted_run, info_of
from tests.ui.conftest import address, charts, click, go, healthy, html, stored_run, told


def test_components_are_cards_with_names_and_meaning_and_a_row_can_be_steered(start):
    app = healthy(start("components/gallery"))
    assert html(app).count('class="ca-piece"') == 4
    assert "4 components explain 44.8% of the variance" in told(app)
    assert html(app).count('data-act="select"') == 8
    assert "higher for" in html(app)
    state.rename(RunStore(home()).get(address(app)["run"]), 1, "my <b>loop</b>")
    page = html(healthy(app.run()))
    assert "my &lt;b&gt;loop&lt;/b&gt;" in page
    assert "<b>loop</b>" not in page
    app = healthy(go(app, "components/meaning"))
    assert "the share of each class" in told(app)
    assert "“digit” goes most with" in told(app)
    assert len(charts(app)) == 2
    names_to_take = re.findall(r'data-act="name" data-value="(\d)" title="([^"]*)"', html(app))
    assert [int(k) for k, _ in names_to_take] == [1, 3, 4], "one has a name"
    assert "digit" in names_to_take[0][1]
    app = healthy(go(app, "explore/point"))
    assert "Drag the point" in told(healthy(app.toggle(key="steer_row").set_value(True).run()))
    assert address(app)["row"] == "digit-0"


def test_a_table_has_its_columns_and_a_label_of_numbers_is_no_class(start):
    wine = load("wine")
    app = healthy(start("components/gallery", data=wine))
    assert (html(app).count("ca-loading") > 8, html(app).count("<details>")) == (True, 4)
    app = go(app, "explore/point")
    assert "Drag the point" in told(healthy(app.toggle(key="steer_row").set_value(True).run()))
    assert "the share of each class" in told(healthy(go(app, "components/meaning")))
    signal = Dataset("w", wine.X, wine.ids, {"signal": np.arange(178) * 1.5})
    app = healthy(start("components/gallery", data=signal))
    assert html(app).count('data-act="select"') == 8
    assert " · " not in html(app).partition('class="ca-gallery"')[2].partition("ca-side")[0]
    assert "which components they share" in told(healthy(go(app, "components/meaning")))


def test_what_the_browser_sends_is_checked(monkeypatch):
    wine, active = load("wine"), np.random.default_rng(0).random((178, 3)) < 0.5
    shown = Shown(RunConfig(wine.digest, {}, "aPPCA", {}), fitted_run(active), info_of(), None)
    chosen = []
    monkeypatch.setattr(components, "_put", lambda _, rows: chosen.append(rows))
    components._select(wine, shown, "1 low")
    lowest = np.flatnonzero(active[:, 1])[np.argsort(shown.fitted.scores[active[:, 1], 1])]
    assert set(chosen[0]) == set(lowest[: components.NAMED_AT_END]), "the rows named"
    for wrong in ("9 low", "-1 high", "x"):
        with pytest.raises(ValueError):  # noqa: PT011 (which of two depends on the text)
            components._select(wine, shown, wrong)


def test_technical_columns_are_marked_and_the_region_of_a_voxel_is_a_class():
    lines = [("ash", ""), ("row sum", "it follows the row sum"), ("cultivar", ""), ("ash", "")]
    lines += [("day", SORTED)]
    tests = pd.DataFrame(lines, columns=["column", "technical"])
    named = ordered(tests, load("wine").labels)["column"].tolist()
    assert named == [*("cultivar", "row sum (artifact?)", "day (sorted by it)", "ash", "ash")]
    recording = type("R", (), {"is_recording": True, "ids": np.array(["voxel-0-0-1", "v"])})
    sets = components.Sets({"region 4": ["voxel-0-0-1"]}, "file")
    assert components.regions(recording, sets)["region"].tolist() == ["region 4", ""]


def test_variance_and_sets_of_a_file_are_shown_and_add_up(start, monkeypatch):
    monkeypatch.setattr(process, "read_sets", None)  # another process reads the file
    breast = load("breast_cancer")
    app = healthy(start("components/meaning", data=breast))
    lines = [f"{name},{name.split()[0]}" for name in breast.feature_names if "error" not in name]
    text = "\n".join(["feature,set", *lines])
    app.get("file_uploader")[-1].set_value([("sets.csv", text.encode(), "text/csv")]).run()
    assert "weights on component" in told(healthy(app))
    shown = next(frame.value for frame in app.dataframe if "set" in frame.value)
    assert set(shown["set"]) == {"mean", "worst"}
    app.get("button_group")[1].set_value("variance").run()
    assert "of the variance of" in told(healthy(app))
    assert "569 rows. Each line adds up to 100%" in told(app)
    values = np.frombuffer(base64.b64decode(charts(app)[-1]["data"][0]["z"]["bdata"])).reshape(4, 5)
    np.testing.assert_allclose(values.sum(axis=1), 1)


def test_events_are_bands_over_the_courses_of_a_recording_named_by_their_types(start):
    app, brain = start("components/gallery", data=load("brain")), load("brain").digest
    page = html(healthy(app))
    key = re.search(r'<div class="ca-events">(.*?)</div>', page)[1]
    assert (re.findall(r"</i>(\w+)</s", key), "238 s" in page) == (["faces", "places"], True)
    bands = re.findall(r"left:([\d.]+)%;width:([\d.]+)%;background:(#\w+)\" title=\"(\w+), ", page)
    events = load("brain").provenance["events"]
    assert len(bands) == 4 * len(events)
    last = float(load("brain").axis[0][-1])
    for (left, width, colour, kind), event in zip(bands, events, strict=False):
        assert float(left) == pytest.approx(100 * event["onset"] / last, abs=0.01)
        until = min(event["onset"] + event["duration"], last)
        assert float(width) == pytest.approx(100 * (until - event["onset"]) / last, abs=0.02)
        assert (kind, key.count(colour)) == (event["trial_type"], 1)
    services.note(brain, events=[{"onset": 4.0, "duration": 2.0}])
    assert html(healthy(app.run())).count('title="event, 4 to 6 s"') == 4
    many = [{"onset": j / 9, "duration": 0.0, "trial_type": f"{j}"} for j in range(999)]
    services.note(brain, events=many)
    page = html(healthy(app.run()))
    assert "too many to draw" in page
    assert 'style="left:' not in page


WITH_CURVES = {  # a page with two pictures of curves: what names them
    "components/gallery": "",
    "groups/unusual": "measured rebuilt difference",
    "groups/differences": "these_rows the_others difference",
    "explore/point": "measured rebuilt difference",
}


def test_ordered_features_are_explained_by_wide_curves_with_ticks(start):
    X = np.random.default_rng(0).normal(size=(60, 40)).cumsum(axis=1)
    names = tuple(f"{4000 - 50 * j}" for j in range(40))
    data = Dataset("spectra", X, np.arange(60), {"kind": np.arange(60) % 2}, feature_names=names)
    app = start(data=data, run=stored_run(data, n_components=2, n_active=1).id)
    for place, named in WITH_CURVES.items():
        page = html(healthy(go(app, place)))
        assert page.count('class="ca-curve"><img') == 2
        assert page.count("<span>4000</span><span>3500</span><span>3000</span>") == 2
        found = re.findall(r'<b style="color:#\w+">([\w ]+)</b>', page)
        assert found == [name.replace("_", " ") for name in named.split()], place
    app = click(app, "point_leave_out")
    assert services.datasets().get(app.session_state["config"].dataset).n_rows == 59


def test_differences_open_with_a_panel_a_class_or_the_selection(start):
    app = healthy(start("groups/differences"))
    app.selectbox[0].set_value("panel (0, 1)").run()
    said = told(healthy(app)).partition(" differ ")[2]
    assert "subspace {" not in said, "a panel is no difference of its own rows"
    app.selectbox[0].set_value("digit = 0").run()
    assert "The 178 rows of digit 0 differ from the rest" in told(healthy(app))
    table = next(of.value for of in app.dataframe if "what" in of.value)
    assert not any(name.startswith("digit") for name in table["what"])
    assert "98% of rows lie among their own digit; most" in app.expander[0].label
    assert html(app).count("mean image: ") == 3
    healthy(app.selectbox[1].set_value("digit = 8").run())
    assert "The 178 rows of digit 0 differ from the 174 rows of digit 8 most in" in told(app)
    app.button(key="group_select").click().run()
    assert "the selection, all 178 of digit 0, differ from the rest most in" in told(healthy(app))
    assert "sel" in address(app)


def test_similar_and_unusual_rows_are_told_selected_and_taken_apart(start):
    app = start("groups/differences")
    app = healthy(app.toggle(key="similar_rows").set_value(True).run())
    assert "groups of similar rows.** The tightest come first." in told(app)
    assert html(app).count('data-act="group"') == 6
    app = healthy(app.toggle(key="kinds_inside").set_value(True).run())
    assert html(app).count('data-act="kind"') == 30, "a page of 40"
    app = healthy(go(app, "groups/unusual"))
    table, first = app.dataframe[0].value, told(app).partition("Among rows of another digit (")[2]
    n, far = int((table["listed"] != "").sum()), table[["T² / limit", "Q / limit"]].max(axis=1)
    assert "Farthest from others of their digit, times the usual distance (" in told(app)
    assert f"“{table['id'][0]} (near " in first, "rows among others come first"
    assert far[n:].is_monotonic_decreasing, "then the farthest"
    assert (table["stands out"] == "no").all()
    assert "Many rows are far out, but none stands apart; rows listed" in told(app)
    assert "Tails are heavier than the model's" in told(app)
    wine = load("wine")
    X = np.vstack([wine.X, wine.X[:2]])
    X[5:11] *= 1 + np.arange(1, 14) % 3  # another kind of wine
    both = {"kind": np.array(["a", "b"])[(np.arange(180) > 178).astype(int)]}
    twice = start("groups/unusual", data=Dataset("two", X, np.arange(180).astype(str), both))
    both = "Equal to a row of another kind (2): “1 (like 179)”, “179 (like 1)”"
    assert both in told(healthy(twice))
    app = start("groups/unusual", data=Dataset("six", X, np.arange(180).astype(str)))
    assert "6 of 180 rows stand out" in told(healthy(app))
    assert set(app.dataframe[0].value["id"][:6]) == set(map(str, range(5, 11)))
    assert "Repeated rows (2): “178 (like 0)”, “179 (like 1)”" in told(app)
    for key, count in (("unusual_select", 6), ("unusual_row", 1), ("repeated_select", 2)):
        healthy(go(app, "groups/unusual").button(key=key).click().run())
        assert f"{count} of 180 rows selected" in told(healthy(go(app, "groups/differences")))
    app = healthy(go(app, "groups/unusual").button(key="repeated_leave_out").click().run())
    assert "178 rows" in told(app)
    assert "Repeated rows" not in told(app)
    gaps = np.zeros((wine.n_rows, 7), dtype=bool)
    gaps[20:, 0] = True
    app = start("groups/differences", data=Dataset("bare", wine.X[:, :7], wine.ids, missing=gaps))
    app = healthy(app.toggle(key="similar_rows").set_value(True).run())
    assert "groups of similar rows" in told(app)
    apart = html(healthy(go(app, "groups/unusual")))
    assert "rebuilt" in apart, "the worst row is taken apart"
    assert apart.count("missing</td>") == 1, "and a gap is no value"
