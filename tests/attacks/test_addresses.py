"""Addresses and stored settings from strangers: a picture, or a sentence; imported runs marked."""

import io
from pathlib import Path

import numpy as np
import pytest

from appca.cli import main
from appca.data.store import DatasetStore
from appca.runs.home import home
from appca.runs.run import FitResult
from appca.runs.session import unpack
from appca.runs.store import RunStore
from tests.attacks.forged import fitted, rolled, small, sound
from tests.attacks.test_sessions import BAD, altered
from tests.forged import rewrite
from tests.ui.conftest import address, go, healthy, html, sentences, slider, start  # noqa: F401

SIZES = {"n_components": 3, "n_active": 2}
MARK = "(imported)"


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    dataset = small()
    return sound(fitted(tmp_path_factory.mktemp("sender"), dataset, **SIZES), dataset)


@pytest.fixture
def imported(content):
    """Return a run whose scores are not those of its settings, in the home of the server."""
    (run,) = unpack("x.appca", rolled(content), home()).runs
    return RunStore(home()).get(run)


def said(app) -> str:
    """Return all that a page says."""
    parts = [*app.get("html"), *app.sidebar.get("html")]
    texts = [one.proto.body for one in parts]
    for kind in ("markdown", "caption", "info", "warning", "error", "success", "button", "code"):
        texts += [
            str(getattr(one, "value", "")) + str(getattr(one, "label", "")) for one in app.get(kind)
        ]
    return "\n".join(texts).replace("\\", "")


def test_an_imported_run_opens_by_its_address_and_is_marked_everywhere(start, imported):  # noqa: F811
    app = healthy(start(run=imported.id))
    assert address(app)["run"] == imported.id
    assert " · imported" in html(app)
    assert ":orange-badge[imported]" in said(app)
    marks = {
        "data/open": MARK,
        "explore": f"{imported.id}, imported",
        "check/trust": " · imported",  # of the fit on screen, in the status line
        "export": "This fit was imported",
    }
    other = fitted(home(), small(), **{**SIZES, "random_state": 1})
    for page, mark in marks.items():
        app = healthy(go(app, page))
        assert mark in said(app), page
        assert address(app)["run"] == imported.id
    assert other.id in {run.id for run in RunStore(home()).list()}


def test_the_next_visitor_at_those_settings_gets_a_fit(start, imported):  # noqa: F811
    app = healthy(start(data=imported.config.dataset, k="3", l="2"))
    fit = RunStore(home()).get(address(app)["run"])
    assert fit.config == imported.config.to_be_fitted()
    assert fit.config.imported is None
    assert not np.array_equal(fit.fitted.scores, imported.fitted.scores)
    assert "imported" not in said(app)


def test_moving_k_at_an_imported_run_fits_as_usual(start, imported):  # noqa: F811
    app = healthy(start(run=imported.id))
    healthy(slider(app, "k").set_value(4).run())
    run = RunStore(home()).get(address(app)["run"])
    assert (run.config.k, run.config.imported, run.origin) == (4, None, "live")
    slider(app, "k").set_value(3).run()
    assert RunStore(home()).get(address(app)["run"]).config == imported.config.to_be_fitted()


def test_an_imported_run_can_be_fitted_here(start, imported):  # noqa: F811
    app = healthy(start(run=imported.id))
    healthy(app.button(key="fit_here").click().run())
    fit = RunStore(home()).get(address(app)["run"])
    assert fit.config == imported.config.to_be_fitted()
    assert fit.fitted.digest() != imported.fitted.digest()


def test_the_command_line_marks_imported_runs(imported, capsys):
    assert main(["runs"]) == 0
    assert f"{imported.id}  " in (told := capsys.readouterr().out)
    assert told.rstrip().endswith(MARK)


def test_an_imported_run_that_is_gone_leaves_a_fit_by_its_settings(start, imported):  # noqa: F811
    app = healthy(start(run=imported.id))
    RunStore(home()).delete(imported.id)
    healthy(app.run())
    assert address(app)["run"] == imported.config.to_be_fitted().id
    assert "The imported fit" in said(healthy(app.run()))
    assert not (imported.path).exists()


def damaged_settings(run, **changes):
    """Write other settings into a stored run, as one who can write to the home."""
    config = run.config.to_dict()
    rewrite(
        run.path / "config.json", config=config | {"parameters": config["parameters"] | changes}
    )


STORED = {
    "K a text": ({"n_components": "abc"}, "n_components must be a whole number of at least 1"),
    "K negative": ({"n_components": -4}, "n_components must be a whole number of at least 1"),
    "L above K": ({"n_active": 9}, "n_active must be at most n_components=3"),
    "passes a text": ({"max_iter": "x"}, "max_iter must be a whole number of at least 1"),
}


def test_stored_settings_that_cannot_be_are_named_on_the_page_runs(start):  # noqa: F811
    app, runs = start(), {}
    for number, (name, (changes, _)) in enumerate(STORED.items()):
        run = fitted(home(), small(), **{**SIZES, "random_state": number})
        damaged_settings(run, **changes)
        runs[run.id] = name
    go(app, "data/open")
    assert not app.exception
    told = [box.value.replace("\\", "") for box in app.warning]
    for run, name in runs.items():
        assert any(run in one and STORED[name][1] in one for one in told), name


def dropped(app, file):
    """Give a session file to the uploader."""
    place = next(one for one in app.get("file_uploader") if "anywhere" in one.label)
    place.set_value([("bad.appca", file.getvalue(), "application/zip")])
    return app.run()


def test_forged_files_at_the_page_data_get_their_sentences(start, content):  # noqa: F811
    app = start("data/open")
    before = sorted(path for path in Path(home()).rglob("*") if path.is_file())
    for name in ("K a text", "start code", "stop that is code", "another model"):
        change, sentence = BAD[name]
        dropped(app, altered(content, change))
        assert not app.exception, name
        assert sentences(app) == [sentence]
        app.run()
    assert sorted(path for path in Path(home()).rglob("*") if path.is_file()) == before


def test_a_run_with_arrays_of_another_run_is_kept_apart_in_a_session_of_both(content, tmp_path):
    """The fit, and the same settings with other arrays, in one home: both can be sent on."""
    unpack("x.appca", io.BytesIO(content), tmp_path)
    unpack("x.appca", rolled(content), tmp_path)
    runs = RunStore(tmp_path).list()
    assert len({run.id for run in runs}) == 2
    assert {run.config.to_be_fitted().id for run in runs} == {runs[0].config.of_import(None).id}
    assert DatasetStore(tmp_path).get(runs[0].config.dataset).n_rows == 45
    result = FitResult(runs[0].fitted, runs[0].info)
    assert RunStore(tmp_path).save(runs[0].config, result).id == runs[0].id
