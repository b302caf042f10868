"""Data and fits of a shared home on the page Data: named after it, and only to be opened."""

from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.run import RunConfig, defaults
from appca.runs.store import RunStore
from appca.storage import files
from tests.ui.conftest import address, go, healthy


def test_what_a_shared_home_holds_is_listed_with_its_origin_and_opens(start, tmp_path, monkeypatch):
    folder = tmp_path / "lab-data"
    wine, planes = load("wine"), load("planes")
    digest, other = DatasetStore(folder).put(wine), DatasetStore(folder).put(planes)
    config = RunConfig(digest, {}, "PPCA", defaults("PPCA") | {"n_components": 2})
    RunStore(folder).save(config, fit_run(wine, config), "of the lab")
    app = start("data/open")
    assert not any("lab-data" in one.value for one in app.subheader)
    monkeypatch.setenv(files.SHARED, str(folder))
    app = healthy(go(app, "data/open"))
    assert "Shared by lab-data" in [one.value for one in app.subheader]
    assert f"open-{config.id}" in [one.key for one in app.button]
    assert f"name-{config.id}" not in [one.key for one in app.text_input]
    app.button(key=f"shared-0-{other}").click().run()
    assert address(healthy(app))["data"] == other
    app = go(app, "data/open")
    app.button(key=f"open-{config.id}").click().run()
    assert address(healthy(app))["run"] == config.id
    kept = {one.digest for one in DatasetStore(home()).list()}
    assert not kept & {digest, other}
