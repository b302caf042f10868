"""Session and model files from strangers: bounded, checked as a whole, never taken for a fit."""

import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from appca import load_model
from appca.analysis.selections import SavedSelection
from appca.cli import main
from appca.data.readers import process
from appca.data.store import DatasetStore
from appca.runs import session, store
from appca.runs.fit import fit_run, preview
from appca.runs.home import home
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import MODELS, FitResult, rules
from appca.runs.session import Session, pack, unpack, unpack_apart
from appca.runs.store import RunStore, title
from appca.storage import files
from appca.storage.packed import Packed
from appca.words import InputError
from tests.forged import altered, fitted, npy, rewrite, rolled, sent, setting, small
from tests.memory import needs_proc
from tests.pages import give
from tests.sentences import faults_of
from tests.ui.conftest import address, go, healthy, html, sentences, slider, start

__all__ = ["start"]  # the fixture
MARK = "(imported)"


@pytest.fixture(scope="module")
def run():
    return sent()[0]


@pytest.fixture(scope="module")
def content():
    return sent()[1]


def opened(file, home):
    found = unpack("x.appca", file, home)
    return found, [RunStore(home).get(one) for one in found.runs]


def test_rolled_scores_never_stand_for_the_fit_of_the_same_settings(run, tmp_path):
    found, (forged,) = opened(rolled(), tmp_path)
    assert RunStore(tmp_path).get(run.id) is None
    assert forged.id == found.opened != run.id
    assert forged.config.imported == forged.fitted.digest()
    assert forged.name == f"aPPCA, K = 3, L = 2 {MARK}" == title(forged.config)
    assert forged.config.to_be_fitted() == run.config
    own = fitted(tmp_path)
    assert {own.id, forged.id} == {one.id for one in RunStore(tmp_path).list()}
    assert np.array_equal(RunStore(tmp_path).get(run.id).fitted.scores, run.fitted.scores)


def test_the_very_run_that_was_fitted_here_is_that_run(content, tmp_path):
    own = fitted(tmp_path)
    found, (same,) = opened(io.BytesIO(content), tmp_path)
    assert (found.runs, found.opened, same.config.imported) == ((own.id,), own.id, None)


def test_the_mark_survives_being_sent_on_and_brought_back(content, run, tmp_path):
    _, (first,) = opened(io.BytesIO(content), tmp_path / "a")
    again = pack(Session(small(), [first], opened=first.id))
    assert again == content
    found, (second,) = opened(io.BytesIO(again), tmp_path / "b")
    assert (second.id, second.name, found.opened) == (first.id, first.name, first.id)
    back, _ = opened(io.BytesIO(again), run.path.parents[1])
    assert back.runs == (run.id,)
    for told in (None, "0" * 64):  # a file cannot say that its run is no import
        file = altered(setting("runs", 0, "config", "imported", value=told))
        _, (one,) = opened(file, tmp_path / "c")
        assert one.config.imported == run.fitted.digest()
    for fit in (fit_run, preview):
        with pytest.raises(InputError, match="came in a session file"):
            fit(small(), first.config)


def test_a_name_kept_for_a_run_stays_without_the_mark(tmp_path):
    _, (one,) = opened(altered(setting("runs", 0, "name", value="my run")), tmp_path)
    assert (one.name, one.custom_name) == (f"my run {MARK}", "my run")
    assert RunStore(tmp_path).rename(one.id, "").name == f"aPPCA, K = 3, L = 2 {MARK}"


def test_arrays_of_another_run_are_kept_apart_and_both_can_be_sent_on(content, tmp_path):
    for file in (io.BytesIO(content), rolled()):
        unpack("x.appca", file, tmp_path)
    runs = RunStore(tmp_path).list()
    assert len({run.id for run in runs}) == 2
    assert {run.config.to_be_fitted().id for run in runs} == {runs[0].config.of_import(None).id}
    result = FitResult(runs[0].fitted, runs[0].info)
    assert RunStore(tmp_path).save(runs[0].config, result).id == runs[0].id


def test_what_a_full_disk_left_out_is_added_by_opening_the_file_again(
    content, tmp_path, monkeypatch
):
    def refuse(*_, **__):
        raise InputError("The disk is full; free some space.")

    with monkeypatch.context() as now:
        now.setattr(RunStore, "save", refuse)
        with pytest.raises(InputError, match="disk is full"):
            unpack("x.appca", io.BytesIO(content), tmp_path)
    (data,) = DatasetStore(tmp_path).list()
    assert DatasetStore(tmp_path).get(data.digest).n_rows == 45
    assert RunStore(tmp_path).list() == []
    assert len(unpack("x.appca", io.BytesIO(content), tmp_path).runs) == 1


def test_columns_of_long_names_are_sent_and_received(tmp_path):
    names = tuple(f"{'long ' * 400}{j}" for j in range(13))
    facts = {"report": {"roles": {names[0]: "x"}}}
    long = replace(small(), feature_names=names, provenance=facts)
    found = unpack("x.appca", io.BytesIO(pack(Session(long, []))), tmp_path)
    assert DatasetStore(tmp_path).get(found.dataset).feature_names == names


# forged, altered and oversized files: what is changed, and the sentence


def parameter(name, value):
    return setting("runs", 0, "config", "parameters", name, value=value)


def config(name, value):
    return setting("runs", 0, "config", name, value=value)


def array(name, values):
    return {f"runs/0/{name}.npy": npy(values)}


RUN = "Fit 1 in “bad.appca” cannot be opened: "
AGAIN = "; save the file again."
DAMAGED = "“bad.appca” is damaged; save it again."
WHOLE, EVIL = "must be a whole number of at least", "1); import os; ("
LISTS = [[]] * 300_000  # in less than 10 kB
VERSIONS = {f"p{i}": "" for i in range(100_000)}
BAD: dict[str, tuple[Any, str]] = {
    "K a text": (
        parameter("n_components", "abc"),
        f"{RUN}n_components {WHOLE} 1 and at most 100,000; got 'abc'{AGAIN}",
    ),
    "tol without end": (
        parameter("tol", float("inf")),
        f"{RUN}tol must be a finite number, a text or yes/no to be recorded; got inf{AGAIN}",
    ),
    "start code": (
        parameter("init", EVIL),
        f"{RUN}init must be 'auto', 'quartimax', 'annealed', 'ica', 'pca' or 'random' or an array "
        f"of n_components by features; got {EVIL!r}{AGAIN}",
    ),
    "parameters a list": (
        config("parameters", [1]),
        f"{RUN}it has a list for “parameters”, where a group of named values belongs{AGAIN}",
    ),
    "stop that is code": (
        config("stopped_at", EVIL),
        f"{RUN}it has {EVIL!r} for “stopped_at”, where a whole number or nothing belongs{AGAIN}",
    ),
    "another model": (
        config("model", "__import__"),
        f"{RUN}There is no model “__import__”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA"
        f"{AGAIN}",
    ),
    "a field too many": (
        config("hook", "x"),
        f"{RUN}it has “hook”, which is not one of its settings{AGAIN}",
    ),
    "likelihood NaN": (
        setting("runs", 0, "info", "log_likelihood", value=float("nan")),
        f"{RUN}it has nan for “log_likelihood”, where a finite number belongs{AGAIN}",
    ),
    "reason too long": (
        setting("runs", 0, "info", "stop_reason", value="x" * 2000),
        f"{RUN}it has '{'x' * 38}… for “stop_reason”, where a text of at most 1,000 characters "
        f"belongs{AGAIN}",
    ),
    "runs a number": (
        setting("runs", value=3),
        "“bad.appca” is damaged: it has 3 for “runs”, where a list belongs; save it again.",
    ),
    "too many runs": (
        lambda all_: all_.update(runs=all_["runs"] * 1001),
        "“bad.appca” is damaged: it has a list for “runs”, where a list of at most 1,000 items "
        "belongs; save it again.",
    ),
    "digest a path": (
        setting("dataset", "digest", value="../../x"),
        "“bad.appca” is damaged: it has '../../x' for “digest” of “dataset”, where a text of "
        "another form belongs; save it again.",
    ),
    "options that are code": (
        setting("dataset", "provenance", "options", value={"n": [[EVIL]]}),
        "“bad.appca” is damaged: a value of “options” is not a single number or text, or a list of "
        "those; save it again.",
    ),
    "a brain of 10^15 voxels": (
        setting("dataset", "provenance", "grid", value=[100_000] * 3),
        "“bad.appca” is damaged: it has 100000 for “grid” 1, where a whole number of at most 512 "
        "belongs; save it again.",
    ),
    "a version before the first": (
        setting("version", value=0),
        "“bad.appca” is not a session file that this version of appca reads; it says “appca "
        "session”, version 0.",
    ),
    "K not that of the arrays": (parameter("n_components", 7), DAMAGED),
    "scores of other rows": (array("scores", np.zeros((9, 3), np.float32)), DAMAGED),
    "components without end": (array("components", np.full((3, 13), np.inf)), DAMAGED),
    "choices that are numbers": (array("active", np.ones((45, 3))), DAMAGED),
    "a text for the mean": (array("mean", np.array(["x"] * 13)), DAMAGED),
    "a note of empty lists": (setting("dataset", "provenance", "note", value=LISTS), "“provenance"),
    "an unknown parameter of lists": (parameter("evil", LISTS), "“parameters”"),
    "a preprocessing of lists": (
        setting("runs", 0, "config", "preprocessing", "centre", value=LISTS),
        "“preprocessing”",
    ),
    "100,000 versions": (setting("runs", 0, "info", "versions", value=VERSIONS), "“versions”"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_forged_file_gets_its_sentence_and_nothing_is_stored(tmp_path, name):
    change, sentence = BAD[name]
    file = altered(**change) if isinstance(change, dict) else altered(change)
    with pytest.raises(InputError) as told:
        unpack("bad.appca", file, tmp_path)
    said = str(told.value)
    assert said == sentence if sentence.endswith(".") else sentence in said
    assert faults_of(said, "bad.appca") == ""
    assert list(tmp_path.iterdir()) == []


ODD = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**6, 10**18, -(10**18), 0.5, 1e308, 1e-300, -1.5),
    *(float("nan"), float("inf"), "", " ", "abc", "1", "x" * 999, "\0", "\u202e", "'; import os"),
    *("http://evil.example", "<b>", [], [1], ["a", "b"], [[]], {}, {"a": 1}, {"": {}}, [None] * 3),
)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the paths of everything inside a value of JSON."""
    steps = value.items() if isinstance(value, dict) else ()
    steps = enumerate(value) if isinstance(value, list) else steps
    inside = [((*path, step), inner) for step, inner in steps]
    return [place for at, inner in inside for place in (at, *places(inner, at))]


def test_files_altered_at_random_are_refused_in_a_sentence_or_shown(start, tmp_path, seed):
    rng, shown, told = Random(seed), [], []

    def alter(contents: dict) -> None:
        """Put an odd value in a random place, or take what is there away."""
        *way, last = rng.choice(places(contents))
        at: Any = contents
        for step in way:
            at = at[step]
        if isinstance(at, dict) and rng.random() < 0.2:
            del at[last]
        else:
            at[last] = json.loads(json.dumps(rng.choice(ODD)))

    for number in range(60):
        file, folder = altered(alter), tmp_path / str(number)
        try:
            shown += [file] * len(unpack("bad.appca", file, folder).runs)
        except InputError as error:
            told += [str(error), *[f"{error} But it is stored"] * folder.exists()]
    assert [faults for one in told if (faults := faults_of(one))] == []
    assert 0 < len(shown) < 50
    shown[0].seek(0)
    app = healthy(start(run=unpack("bad.appca", shown[0], home()).runs[0]))
    for page in ("data/open", "explore", "check/trust", "export"):
        healthy(go(app, page))


def test_an_unknown_field_of_a_session_is_never_stored(tmp_path):
    unpack("bad.appca", altered(setting("note", value=LISTS)), tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.json")) < 20_000


@pytest.mark.parametrize(
    ("member", "content", "words"),
    [
        ("data/matrix.npy", bytes(70 << 20), "unpacks to 73 MB, more than 67 MB"),
        ("session.json", b"[" * (9 << 20), "holds a text of 9,437,184 bytes"),
    ],
)
def test_a_small_session_file_does_not_unpack_to_much(member, content, words):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    with pytest.raises(InputError, match=words) as refused:
        Packed("work.appca", stream).json("session.json")
    assert faults_of(str(refused.value), "work.appca") == ""


# in a process of its own


def test_a_session_unpacked_apart_is_the_same_or_refused_as_here(run, tmp_path, monkeypatch):
    few, file = np.arange(45) < 3, tmp_path / "x.appca"
    file.write_bytes(pack(Session(small(), [run], [SavedSelection("few", few)], ~few, run.id)))
    with file.open("rb") as stream:
        here = unpack("x.appca", stream, tmp_path / "a")

    def never(*_):
        raise AssertionError("the server itself unpacks the file")

    monkeypatch.setattr(session, "unpack", never)
    monkeypatch.setattr(session, "Packed", never)
    there = unpack_apart("x.appca", file, tmp_path / "b", tmp_path / "scratch")
    assert there._replace(selected=None) == here._replace(selected=None)
    assert np.array_equal(there.selected, here.selected)
    assert [run.id for run in RunStore(tmp_path / "b").list()] == list(here.runs)
    file.write_bytes(altered(parameter("n_components", "abc")).getvalue())
    with pytest.raises(InputError, match="n_components must be a whole number"):
        unpack_apart("bad.appca", file, tmp_path / "home", tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []


@needs_proc
def test_a_session_of_great_size_costs_its_own_process_only(content, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "MEMORY", 100 << 20)
    monkeypatch.setattr("appca.storage.packed._SMALL", 1 << 31)  # of this process: not asked
    large = tmp_path / "large.appca"
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            rows = npy(np.zeros((30_000_000, 2), np.uint8)) if name == "data/matrix.npy" else None
            new.writestr(name, rows or old.read(name))
    assert large.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"“large\.appca” cannot be read in 105 MB, the most"):
        unpack_apart("large.appca", large, tmp_path / "home", tmp_path / "scratch")
    assert not (tmp_path / "home").exists() or not RunStore(tmp_path / "home").list()


def test_lists_open_those_entries_alone_that_have_changed(content, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SETTLED_SECONDS", 0)
    reading, read = [], store._read_meta
    monkeypatch.setattr(store, "_read_meta", lambda folder: reading.append(folder) or read(folder))
    found = unpack("x.appca", io.BytesIO(content), tmp_path)
    (one,), here, data = found.runs, RunStore(tmp_path), DatasetStore(tmp_path)
    for _ in range(2):
        assert [run.id for run in here.list()] == [one]
        assert [about.digest for about in data.list()] == [found.dataset]
        reading.clear()
    assert here.damaged() == {}
    here.rename(one, "another")
    assert [run.custom_name for run in here.list()] == ["another"]
    config = here.folder / one / "config.json"
    reading.clear()
    assert [run.id for run in here.list()] == [one]
    assert reading == []
    config.write_bytes(config.read_bytes().replace(b"another", b"anather"))
    assert here.list() == []
    assert len(here.damaged()) == 1
    monkeypatch.setattr("appca.data.store._read_meta", None)
    assert [about.digest for about in data.list()] == [found.dataset]
    os.utime(data.folder / found.dataset / "meta.json")
    assert data.list() == []


# on the pages


@pytest.fixture
def imported():
    """Return a run whose scores are not those of its settings, in the home of the server."""
    (run,) = unpack("x.appca", rolled(), home()).runs
    return RunStore(home()).get(run)


def said(app) -> str:
    """Return all that a page says."""
    texts = [one.proto.body for one in (*app.get("html"), *app.sidebar.get("html"))]
    for kind in ("markdown", "caption", "info", "warning", "error", "success", "button", "code"):
        texts += [
            f"{getattr(one, 'value', '')}{getattr(one, 'label', '')}" for one in app.get(kind)
        ]
    return "\n".join(texts).replace("\\", "")


def test_an_imported_run_opens_by_its_address_and_is_marked_everywhere(start, imported, capsys):
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
    for page, mark in marks.items():
        app = healthy(go(app, page))
        assert mark in said(app), page
        assert address(app)["run"] == imported.id
    assert main(["runs"]) == 0
    assert f"{imported.id}  " in (told := capsys.readouterr().out)
    assert told.rstrip().endswith(MARK)


def test_at_the_settings_of_an_imported_run_others_get_a_fit(start, imported):
    app = healthy(start(data=imported.config.dataset, k="3", l="2"))
    fit = RunStore(home()).get(address(app)["run"])
    assert fit.config == imported.config.to_be_fitted()
    assert not np.array_equal(fit.fitted.scores, imported.fitted.scores)
    assert "imported" not in said(app)
    app = healthy(start(run=imported.id))
    healthy(slider(app, "k").set_value(4).run())
    run = RunStore(home()).get(address(app)["run"])
    assert (run.config.k, run.config.imported, run.origin) == (4, None, "live")
    slider(app, "k").set_value(3).run()
    assert address(app)["run"] == fit.id
    app = healthy(start(run=imported.id))
    healthy(app.button(key="fit_here").click().run())
    assert address(app)["run"] == fit.id


def test_an_imported_run_that_is_gone_leaves_a_fit_by_its_settings(start, imported):
    app = healthy(start(run=imported.id))
    RunStore(home()).delete(imported.id)
    healthy(app.run())
    assert address(app)["run"] == imported.config.to_be_fitted().id
    assert "The imported fit" in said(healthy(app.run()))
    assert not imported.path.exists()


STORED = {
    "n_components": ("abc", "n_components must be a whole number of at least 1"),
    "n_active": (9, "n_active must be at most n_components=3"),
    "max_iter": ("x", "max_iter must be a whole number of at least 1"),
}


def test_stored_settings_that_cannot_be_and_forged_files_get_their_sentences(start):
    app, sentence = start(), {}
    for number, (name, (value, words)) in enumerate(STORED.items()):
        run = fitted(home(), random_state=number)
        config = run.config.to_dict()
        parameters = config["parameters"] | {name: value}
        rewrite(run.path / "config.json", config=config | {"parameters": parameters})
        sentence[run.id] = words
    go(app, "data/open")
    assert not app.exception
    told = [box.value.replace("\\", "") for box in app.warning]
    for run, words in sentence.items():
        assert any(run in one and words in one for one in told), words
    before = sorted(path for path in Path(home()).rglob("*") if path.is_file())
    for name in ("K a text", "start code", "another model"):
        give(app, ("bad.appca", altered(BAD[name][0]).getvalue()))
        assert not app.exception, name
        assert sentences(app) == [BAD[name][1]]
        app.run()
    assert sorted(path for path in Path(home()).rglob("*") if path.is_file()) == before


# model files


def forged_model(change) -> io.BytesIO:
    """Return a model file with its facts changed."""
    run = sent()[0]
    with np.load(io.BytesIO(model_bytes(run.config, run.fitted, run.info))) as file:
        arrays = dict(file)
    facts = json.loads(str(arrays["run"]))
    change(facts)
    stream = io.BytesIO()
    np.savez(stream, **arrays | {"run": np.array(json.dumps(facts))})
    stream.seek(0)
    return stream


def of_model(name, value):
    return lambda facts: facts["config"]["parameters"].update({name: value})


BAD_MODELS = {
    "K a text": (
        of_model("n_components", "abc"),
        "n_components must be a whole number of at least 1 and at most 100,000; got 'abc'",
    ),
    "L above K": (
        of_model("n_active", 4),
        "n_active must be at most n_components=3; got 4: lower n_active or raise n_components",
    ),
    "no settings": (lambda facts: facts.pop("config"), "it lacks “config”"),
    "names that turn the text": (
        lambda facts: facts["config"].update(model="\u202eACPP"),
        "There is no model “�ACPP”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA",
    ),
}


@pytest.mark.parametrize("name", BAD_MODELS)
def test_a_forged_model_gets_its_sentence(name, tmp_path):
    change, why = BAD_MODELS[name]
    with pytest.raises(InputError) as told:
        read_model("m.npz", forged_model(change))
    assert (
        str(told.value)
        == f"“m.npz” does not say which model it holds ({why}); save the model again."
    )
    assert faults_of(str(told.value), "m.npz") == ""
    path = tmp_path / "m.npz"
    path.write_bytes(forged_model(of_model("n_components", 5)).getvalue())
    with pytest.raises(InputError, match="do not fit together; save the model again"):
        load_model(path)


SAMPLES = (
    *(None, True, False, 0, 1, -1, 2, 3.5, 1e-9, -1e-9, "", "abc", "infer", "auto", "em"),
    *("gibbs", "learned", "shared", "component", "pca", "ica", [[1.0]], 10**6),
)
# beyond what estimators ask: a run is to be repeated, and nobody waits for a million components
STRICTER = dict.fromkeys(("n_components", "n_active", "max_components"), (10**6,))
STRICTER["random_state"] = (None,)


@pytest.mark.parametrize("model", MODELS)
def test_settings_are_held_against_what_the_estimator_itself_takes(model):
    """The tables that pages and files are checked by say what the slow imports would say."""
    found, own = rules(model), rules(model, of_runs=False)
    assert set(found) <= set(own)
    assert set(found) == set(MODELS[model].parameters) | set(MODELS[model].sampling)
    for name, rule in found.items():
        beyond = STRICTER.get(name, ())
        differ = [one for one in SAMPLES if rule.holds(one) != own[name].holds(one)]
        assert [
            one for one in differ if not (type(one) in (int, type(None)) and one in beyond)
        ] == []
