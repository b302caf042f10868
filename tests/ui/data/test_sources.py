"""The data sets of the page Data that are one click away: their choices, and files for them."""

import pytest

from appca.ui import services
from tests.ui.conftest import go, healthy
from tests.ui.session.test_background import ScriptedJobs


@pytest.fixture
def jobs(monkeypatch) -> ScriptedJobs:
    scripted = ScriptedJobs()
    monkeypatch.setattr(services, "jobs", lambda: scripted)
    return scripted


def test_all_choices_of_a_source_are_there_when_one_comes_back(start, jobs):
    app = start("data/open")
    group(app, "source-mnist-classes").set_value(["1", "3"]).run()
    app.number_input(key="source-mnist-n").set_value(500).run()
    group(app, "source-coil20-size").set_value(128).run()
    app = go(app, "data/this")
    app = healthy(go(app, "data/open"))
    for key in ("mnist", "coil20"):
        go(app, "data/open").button(key=f"source-{key}-open").click().run()
    asked = {job.spec["key"]: job.spec["options"] for job in jobs.jobs.values()}
    assert asked == {"mnist": {"classes": ["1", "3"], "n": 500}, "coil20": {"size": 128}}


def group(app, key: str):
    """Return the pills or the row of buttons of a key."""
    return next(one for one in app.get("button_group") if one.key == key)
