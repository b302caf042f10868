"""Tests of untrusted files, names and texts: validated, bounded, shown literally, never run."""

import ast
import contextlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from appca import load_model
from appca.analysis.as_python import Recipe, script
from appca.analysis.selections import SavedSelection, SelectionStore
from appca.cli import main
from appca.data.columns import NAME_LENGTH
from appca.data.dataset import Dataset
from appca.data.files import ReadLimits
from appca.data.readers import process, read_many
from appca.data.sources import SOURCES, load
from appca.data.store import DatasetStore
from appca.runs import session, store
from appca.runs.fit import fit_run, preview
from appca.runs.home import home
from appca.runs.model_file import model_bytes, read_model
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import MODELS, FitResult, RunConfig, rules
from appca.runs.session import Session, pack, unpack, unpack_apart
from appca.runs.store import RunStore, title
from appca.storage import files
from appca.storage.packed import Packed
from appca.words import InputError
from tests.analysis import test_as_python
from tests.forged import altered, fitted, npy, rolled, sent, setting, small
from tests.memory import needs_proc
from tests.pages import DIGITS, give, select, table
from tests.sentences import faults_of
from tests.ui.conftest import address, go, healthy, html, press, slider, start

__all__ = ["start"]  # the fixture
MARK = "(imported)"


def opened(file, home):
    found = unpack("x.appca", file, home)
    return found, [RunStore(home).get(one) for one in found.runs]


def test_rolled_scores_never_stand_for_the_fit_of_the_same_settings(tmp_path):
    run, content = sent()
    found, (forged,) = opened(rolled(), tmp_path)
    assert RunStore(tmp_path).get(run.id) is None
    assert forged.id == found.opened != run.id
    assert forged.config.imported == forged.fitted.digest()
    assert forged.name == f"aPPCA, K = 3, L = 2 {MARK}" == title(forged.config)
    assert forged.config.to_be_fitted() == run.config
    own = fitted(tmp_path)
    assert {own.id, forged.id} == {one.id for one in RunStore(tmp_path).list()}
    assert np.array_equal(RunStore(tmp_path).get(run.id).fitted.scores, run.fitted.scores)
    found, (same,) = opened(io.BytesIO(content), tmp_path)  # the very run that was fitted here
    assert (found.runs, found.opened, same.config.imported) == ((own.id,), own.id, None)
    result = FitResult(forged.fitted, forged.info)
    assert RunStore(tmp_path).save(forged.config, result).id == forged.id
    _, (one,) = opened(altered(setting("runs", 0, "name", value="my run")), tmp_path / "named")
    assert (one.name, one.custom_name) == (f"my run {MARK}", "my run")
    assert RunStore(tmp_path / "named").rename(one.id, "").name == f"aPPCA, K = 3, L = 2 {MARK}"


def test_the_mark_survives_being_sent_on_and_brought_back(tmp_path):
    run, content = sent()
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


def test_what_a_full_disk_left_out_is_added_by_opening_the_file_again(tmp_path, monkeypatch):
    content = sent()[1]

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
    long = replace(small(), feature_names=names, provenance={"report": {"roles": {names[0]: "x"}}})
    found = unpack("x.appca", io.BytesIO(pack(Session(long, []))), tmp_path)
    assert DatasetStore(tmp_path).get(found.dataset).feature_names == names


DAMAGED = "“bad.appca” is damaged; save it again."
AGAIN, EVIL = "; save the file again.", "1); import os; ("
NEVER_ENDS, LISTS = float("inf"), [[]] * 300_000  # in less than 10 kB
VERSIONS = {f"p{i}": "" for i in range(100_000)}
CONFIG, INFO, PROVENANCE = ("runs", 0, "config"), ("runs", 0, "info"), ("dataset", "provenance")
K, TOL, INIT = (f"parameters.{name}" for name in ("n_components", "tol", "init"))
WRONG: list[tuple[tuple, str, Any, str]] = [  # place, last steps, value, of the sentence
    (CONFIG, K, "abc", "n_components must be a whole number of at least 1 and at most 100,000; go"),
    (CONFIG, TOL, NEVER_ENDS, "tol must be a finite number, a text or yes/no to be recorded; got"),
    (CONFIG, INIT, EVIL, f"or an array of n_components by features; got {EVIL!r}{AGAIN}"),
    (CONFIG, "parameters.evil", LISTS, "“parameters”"),
    (CONFIG, "preprocessing.centre", LISTS, "“preprocessing”"),
    (CONFIG, "stopped_at", EVIL, f"{EVIL!r} for “stopped_at”, where a whole number or nothing be"),
    (CONFIG, "model", "__import__", "There is no model “__import__”; choose one of aPPCA, aFA, NP"),
    (CONFIG, "hook", "x", f"opened: it has “hook”, which is not one of its settings{AGAIN}"),
    (INFO, "log_likelihood", np.nan, "it has nan for “log_likelihood”, where a finite number"),
    (INFO, "stop_reason", "x" * 2000, "where a text of at most 1,000 characters belongs"),
    (INFO, "versions", VERSIONS, "“versions”"),
    ((), "runs", 3, "is damaged: it has 3 for “runs”, where a list belongs; save it again."),
    ((), "version", 0, "for this version of appca; its format is “appca session”, version 0."),
    (("dataset",), "digest", "../../x", "“digest” of “dataset”, where a text of another form bel"),
    (PROVENANCE, "options", {"n": [[EVIL]]}, "“options” is not a single number or text, or a list"),
    (PROVENANCE, "grid", [100_000] * 3, "100000 for “grid” 1, where a whole number of at most 512"),
    (PROVENANCE, "note", LISTS, "“provenance"),
    (CONFIG, K, 7, DAMAGED),  # not that of the arrays
]
ARRAYS = {
    "scores": np.zeros((9, 3), np.float32),
    "components": np.full((3, 13), np.inf),
    "active": np.ones((45, 3)),
    "mean": np.array(["x"] * 13),
}


def forgeries() -> Iterator[tuple[str, io.BytesIO, str]]:
    """Yield what is wrong with a file, the file, and words of the sentence that refuses it."""
    for place, steps, value, saying in WRONG:
        yield f"{place} {steps}", altered(setting(*place, *steps.split("."), value=value)), saying
    many = "a list of at most 1,000 items"
    yield "runs", altered(lambda all_: all_.update(runs=all_["runs"] * 1001)), many
    for name, values in ARRAYS.items():
        yield name, altered(**{f"runs/0/{name}.npy": npy(values)}), DAMAGED


def test_a_forged_file_gets_its_sentence_and_nothing_is_stored(tmp_path):
    for what, file, saying in forgeries():
        with pytest.raises(InputError) as told:
            unpack("bad.appca", file, tmp_path)
        assert saying in str(told.value), what
        assert faults_of(str(told.value), "bad.appca") == ""
        assert list(tmp_path.iterdir()) == [], what
    unpack("bad.appca", altered(setting("note", value=LISTS)), tmp_path)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.json")) < 20_000, "unknown fields"


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

    for number in range(40):
        file, folder = altered(alter), tmp_path / str(number)
        try:
            shown += [file] * len(unpack("bad.appca", file, folder).runs)
        except InputError as error:
            told += [str(error), *[f"{error} But it is stored"] * folder.exists()]
    assert [faults for one in told if (faults := faults_of(one))] == []
    assert 0 < len(shown) < 35
    shown[0].seek(0)
    app = healthy(start(run=unpack("bad.appca", shown[0], home()).runs[0]))
    for page in ("data/open", "check/trust", "export"):
        healthy(go(app, page))


@pytest.mark.parametrize(
    ("member", "content", "words"),
    [
        ("data/matrix.npy", bytes(70 << 20), "unpacks to 73 MB, more than 67 MB"),
        ("session.json", b"[" * (9 << 20), "contains a text of 9,437,184 bytes"),
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


def test_a_session_unpacked_apart_is_the_same_or_refused_as_here(tmp_path, monkeypatch):
    run = sent()[0]
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
    file.write_bytes(altered(setting(*CONFIG, *K.split("."), value="abc")).getvalue())
    with pytest.raises(InputError, match="n_components must be a whole number"):
        unpack_apart("bad.appca", file, tmp_path / "home", tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []


@needs_proc
def test_a_session_of_great_size_costs_its_own_process_only(tmp_path, monkeypatch):
    content = sent()[1]
    monkeypatch.setattr(process, "MEMORY", 40 << 20)
    monkeypatch.setattr("appca.storage.packed._SMALL", 1 << 31)  # of this process: not asked
    large = tmp_path / "large.appca"
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            rows = npy(np.zeros((12_000_000, 2), np.uint8)) if name == "data/matrix.npy" else None
            new.writestr(name, rows or old.read(name))
    assert large.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"“large\.appca” is damaged, or needs more than 42 MB"):
        unpack_apart("large.appca", large, tmp_path / "home", tmp_path / "scratch")
    assert not (tmp_path / "home").exists() or not RunStore(tmp_path / "home").list()


def test_a_list_reads_those_entries_alone_that_have_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "SETTLED_SECONDS", 0)
    reading, read = [], store._read_meta
    monkeypatch.setattr(store, "_read_meta", lambda folder: reading.append(folder) or read(folder))
    found = unpack("x.appca", io.BytesIO(sent()[1]), tmp_path)
    (one,), here = found.runs, RunStore(tmp_path)
    assert [run.id for run in here.list()] == [one]
    here.rename(one, "another")
    assert [run.custom_name for run in here.list()] == ["another"]
    reading.clear()
    assert [run.id for run in here.list()] == [one]
    assert reading == []
    config = here.folder / one / "config.json"
    config.write_bytes(config.read_bytes().replace(b"another", b"anather"))
    assert here.list() == []
    assert len(here.damaged()) == 1


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
        boxes = app.get(kind)
        texts += [f"{getattr(one, 'value', '')}{getattr(one, 'label', '')}" for one in boxes]
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
    RunStore(home()).delete(imported.id)
    healthy(go(app, "explore"))
    assert address(app)["run"] == imported.config.to_be_fitted().id
    assert "The imported fit" in said(healthy(app.run()))
    assert not imported.path.exists()


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


# model files

BAD_MODELS: list[tuple[Callable[[dict], object], str]] = [  # what is changed, why it is refused
    (
        lambda facts: facts["config"]["parameters"].update(n_active=4),
        "n_active must be at most n_components=3; got 4: lower n_active or raise n_components",
    ),
    (lambda facts: facts.pop("config"), "it lacks “config”"),
    (
        lambda facts: facts["config"].update(model="\u202eACPP"),
        "There is no model “�ACPP”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA",
    ),
]


def test_a_forged_model_gets_its_sentence(tmp_path):
    run = sent()[0]
    with np.load(io.BytesIO(model_bytes(run.config, run.fitted, run.info))) as file:
        arrays = dict(file)

    def forged(change: Callable[[dict], object]) -> io.BytesIO:
        change(facts := json.loads(str(arrays["run"])))
        np.savez(stream := io.BytesIO(), **arrays | {"run": np.array(json.dumps(facts))})
        stream.seek(0)
        return stream

    for change, why in BAD_MODELS:
        with pytest.raises(InputError) as told:
            read_model("m.npz", forged(change))
        said = f"“m.npz” has no valid description of its model ({why}); save the model again."
        assert str(told.value) == said
        assert faults_of(said, "m.npz") == ""
    wider = forged(lambda facts: facts["config"]["parameters"].update(n_components=5))
    (tmp_path / "m.npz").write_bytes(wider.getvalue())
    with pytest.raises(InputError, match="do not match each other; save the model again"):
        load_model(tmp_path / "m.npz")


HOSTILE = (
    *("'", '"', "'''", '"""', "\\", "\\'", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\0"),
    *("\u2028", "\u2029", "\u202e", "\u2066", "\ufeff", "\ud800", "#", "{x}", "{{", "%s", "${x}"),
    *("'); import os; ('", '"""\nimport os\n"""', "x)\nimport os\n(", "__import__('os')", "=1, x"),
    *("n_components", "lambda", "None", "name", "*args", "**kwargs", "def", "é", "ſelf", " "),
)
CALLS = {
    *("load", "read_many", "DatasetStore", "home", "get", "Path", "from_record", "fit_run", "sum"),
    *("sorted", "rglob", "is_file", "relative_to", "as_posix", "print", "arranged"),
}
NAMES = CALLS | {
    *("os", "dataset", "expected", "config", "fitted", "RunConfig", "components", "mean"),
    *("scores", "active", "path", "paths", "folder", "files", "name", "order", "signs"),
}
MODULES = {
    *("os", "pathlib", "appca.runs.run", "appca.runs.fit", "appca.runs.home"),
    *("appca.data.sources", "appca.data.readers", "appca.data.store"),
}
STATEMENTS = ast.Import, ast.ImportFrom, ast.Assign, ast.Expr, ast.Assert


def strange(text: str) -> list[str]:
    """Return what a script holds beside the imports, assignments and calls that are meant."""
    found, tree = [], ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not isinstance(node, STATEMENTS):
            found.append(f"statement {ast.unparse(node)}")
        if isinstance(node, ast.Import) and {one.name for one in node.names} - MODULES:
            found.append(ast.unparse(node))
        if isinstance(node, ast.ImportFrom) and node.module not in MODULES:
            found.append(ast.unparse(node))
        if isinstance(node, ast.Name) and node.id not in NAMES:
            found.append(f"name {node.id}")
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            found += [] if name in CALLS else [f"call of {ast.unparse(called)}"]
            found += [f"**{ast.unparse(one)}" for one in node.keywords if one.arg is None]
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
            found.append(f"value {ast.unparse(node)}")
    odd = [sign for sign in text if not sign.isprintable() and sign != "\n"]
    return found + [f"character {sign!r}" for sign in odd]


def shape(text: str) -> list[str]:
    """Return the kinds of a script's statements, in order."""
    return [type(node).__name__ for node in ast.parse(text).body]


def recipe_of(config: RunConfig) -> Recipe:
    made = test_as_python.recipe_of(config.of_import(None))
    return made._replace(run=config.id, imported=config.imported is not None)


texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(st.sampled_from(HOSTILE), min_size=2, max_size=4).map("".join),
    st.text(max_size=20),
)
plain = st.one_of(st.none(), st.booleans(), st.integers(-9, 1 << 62), st.floats(), texts)
values = st.one_of(plain, st.lists(plain, max_size=3), st.dictionaries(texts, plain, max_size=3))
sources = st.sampled_from(["file", "synthetic", "", *SOURCES])
provenances = st.fixed_dictionaries(
    {},
    optional={
        "source": st.one_of(sources, texts),
        "options": st.dictionaries(st.one_of(texts, st.sampled_from(["n", "size"])), values),
        "files": st.lists(texts, max_size=8),
        "report": st.fixed_dictionaries({}, optional={"roles": st.dictionaries(texts, texts)}),
    },
)


@settings(max_examples=60)
@given(st.data(), texts, provenances, st.sampled_from(sorted(MODELS)))
def test_no_name_source_or_setting_becomes_code(drawn, name, provenance, model):
    data = small()
    with contextlib.suppress(InputError):  # what is not of the right types becomes no data set
        data = Dataset(name, np.eye(4), np.arange(4), provenance=provenance)
    names = st.one_of(st.sampled_from(sorted(rules(model))), texts)
    record = {
        "dataset": data.digest,
        "preprocessing": {"scale": drawn.draw(st.one_of(st.just("feature"), texts))},
        "model": model,
        "parameters": drawn.draw(st.dictionaries(names, values, max_size=3)),
        "stopped_at": drawn.draw(st.one_of(st.none(), st.just(7), values)),
    }
    config = RunConfig(data.digest, {}, "PPCA", {})
    with contextlib.suppress(ValueError):
        config = RunConfig.from_record(record)
    text = script(data, recipe_of(config))
    assert strange(text) == []
    assert shape(text).count("Import") <= 1
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    assert not any(one.arg for node in calls for one in node.keywords)


def test_a_session_with_hostile_names_gives_the_script_of_a_plain_one(tmp_path):
    config, plain = sent()[0].config, script(small(), recipe_of(sent()[0].config))
    for name in HOSTILE:
        readable = name.encode("utf-8", "replace").decode()
        with contextlib.suppress(InputError):
            text = script(replace(small(), name=readable), recipe_of(config))
            assert strange(text) == []
            assert shape(text) == shape(plain)
    found = unpack("x.appca", altered(setting("dataset", "name", value=HOSTILE[0])), tmp_path)
    run = RunStore(tmp_path).get(found.runs[0])
    assert shape(script(small(), recipe_of(run.config))) == shape(plain)
    forged = recipe_of(config)._replace(run="1\nimport sys\n#")
    assert "import sys" in strange(script(small(), forged)), "the property can fail"


MARKUP = (
    *("http://evil.example/x", "www.evil.example", "mailto:a@evil.example"),
    *("[evil](http://evil.example)", "![evil](http://evil.example/i.png)"),
    *("<a href='http://evil.example'>evil</a>", "<b>evil</b>", ":material/evil:"),
    *("$evil$", ":red[evil]", "**evil**", "`evil`"),
)
# what must not stand anywhere as it is where Streamlit reads Markdown
RAW = ("[evil", "<b>evil", "<a href", "$evil", "**evil", "`evil")
# what it looks for when the backslashes are gone
LOOKED_FOR = ("http://evil", "www.evil", "a@evil", ":material/evil")
PLAIN = {  # fields that the browser shows as they are
    "arrow_data_frame": {"*"},
    "arrow_vega_lite_chart": {"*"},
    "plotly_chart": {"*"},
    "bidi_component": {"*"},
    "code": {"code_text"},
    "text": {"body"},
    "text_input": {"default", "value", "placeholder"},
    "selectbox": {"options", "raw_value", "value"},
    "multiselect": {"options", "raw_values", "default"},
    "imgs": {"*"},
}
PAGES = (
    *("data/open", "explore", "explore/selection", "explore/point"),
    *("components/gallery", "components/meaning", "groups/differences", "groups/unusual"),
    *("check/trust", "check/choose", "export", "data/add"),
)


def everything(block: Any) -> Iterator[Any]:
    """Yield all elements of a page, and the blocks they stand in."""
    for child in block.children.values():
        yield child
        if hasattr(child, "children"):
            yield from everything(child)


def texts_of(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts_of of a protocol message with the names of their fields."""
    for field, value in message.ListFields():
        several = value if field.is_repeated else [value]
        for one in several:
            if hasattr(one, "ListFields"):
                yield from texts_of(one, f"{path}.{field.name}")
            elif isinstance(one, str):
                yield f"{path}.{field.name}".strip("."), one


def raw_markup(app: AppTest) -> list[str]:
    """Return where a hostile text stands as it is, though Markdown or HTML are read there."""
    found = []
    for child in everything(app._tree):
        kind, plain = child.type, PLAIN.get(child.type, set())
        for path, text in texts_of(child.proto) if getattr(child, "proto", None) else ():
            if plain & {"*", path.rpartition(".")[2]} or path.endswith(("id", "key", "form_id")):
                continue
            marks = ("<b>evil", "<a href", "<img src='") if kind == "html" else RAW
            bare = "" if kind == "html" else text.replace("\\", "")
            stands = any(re.search(rf"(?<!\\){re.escape(mark)}", text) for mark in marks)
            if stands or any(one in bare for one in LOOKED_FOR):
                found.append(f"{kind} {path}: {text[:200]!r}")
    return found


def hostile_home() -> str:
    """Store data, a run, names of components and a selection with hostile names; return the run."""
    part = load("wine").take(np.arange(0, 178, 2))
    n, d = part.X.shape
    ids = np.array([f"{MARKUP[i % len(MARKUP)]} {i}" for i in range(n)])
    classes = np.array([MARKUP[i % 5] for i in range(n)])
    names = tuple(f"{MARKUP[j % len(MARKUP)]} {j}" for j in range(d))
    labels = {MARKUP[0]: classes, MARKUP[3]: classes[::-1].copy()}
    source = {"source": "file", "files": [MARKUP[1]], "citation": MARKUP[2]}
    data = Dataset(MARKUP[0], part.X, ids, labels, None, names, source)
    DatasetStore(home()).put(data)
    for number, called in enumerate((MARKUP[5], MARKUP[7])):
        sizes = {"n_components": 3, "n_active": 2, "random_state": number}
        config = RunConfig(data.digest, {"scale": "feature"}, "aPPCA", sizes)
        run = RunStore(home()).save(config, fit_run(data, config), called)
    for k, name in enumerate((MARKUP[1], MARKUP[3][:40], MARKUP[7])):
        ComponentNumbers(home()).rename(run, k, name)
    SelectionStore(home()).save(data.digest, MARKUP[0], np.arange(n) < 20)
    return run.id


def test_no_name_of_anything_is_read_as_markup_on_any_page(start):
    app = healthy(start(run=hostile_home()))
    found = {"start": raw_markup(app)}
    found |= {page: raw_markup(healthy(go(app, page))) for page in PAGES}
    assert {page: told for page, told in found.items() if told} == {}


# a browser lets nobody type more than a field takes; a message to the server can say anything

MOST = 95_000  # bytes of an input
SIGNS = (
    *("a", "\n", "\t ", " ", '"', "\\", "9", ",", ";=", "["),
    *("http://a.b@c ", "a\u0301", "%", "a=&"),
    "*_[](`$:",  # signs of Markdown, each of which a page must protect
)
TEXTS = {text: text * (MOST // len(text.encode())) for text in SIGNS}


def test_long_names_in_the_fields_of_the_pages_are_kept_short_and_break_no_page(start):
    text = TEXTS[SIGNS[-1]]

    def is_alive(app: AppTest) -> None:
        """Check that a page has no exception, and has not grown by what was typed."""
        assert [problem.message for problem in app.exception] == []
        boxes = (*app.markdown, *app.caption, *app.error, *app.warning, *app.info)
        assert len(html(app)) + sum(len(one.value) for one in boxes) < 5 * MOST

    app = start("explore")
    run = RunStore(home()).get(address(app)["run"])
    is_alive(press(app, "drawer_components", "rename", 0, text))
    (name,) = filter(None, ComponentNumbers(home()).of_run(run).names)
    assert 0 < len(name) < 200
    select(app, np.array([3, 5, 800]))
    go(app, "groups/differences")
    app.text_input(key="named-new").set_value(text)
    is_alive(app.button(key="named-keep").click().run())
    kept = SelectionStore(home()).list(run.config.dataset, DIGITS)
    assert max(len(one.name) for one in kept) <= NAME_LENGTH
    for place in ("components/gallery", "components/meaning", "export"):
        is_alive(go(app, place))
    go(app, "data/open")
    is_alive(app.text_input(key=f"name-{run.id}").set_value(text).run())
    assert 0 < len(RunStore(home()).get(run.id).custom_name) < 300
    for page, label in (("explore/point", "Find a row"), ("data/this", "Find a column")):
        if page == "data/this":
            give(app, ("wide.csv", table(columns=300)))
        go(app, page)
        (box,) = (one for one in app.text_input if one.label == label)
        is_alive(box.set_value(text).run())


FILE_NAMES = (
    *("../../evil.csv", "/evil.csv", "..\\..\\evil.csv", "C:\\evil.csv", "a\0b.csv", "~/evil.csv"),
    *(f"{'x' * 5000}.csv", "$(touch evil).csv", "../mnist/../../train-images.csv"),
)


def test_the_name_of_a_file_never_becomes_a_path(tmp_path, monkeypatch):
    table = b"a,b\n" + b"".join(b"%d,%d\n" % (row, row * row) for row in range(9))
    home, here = tmp_path / "deep" / "home", tmp_path / "deep" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    limits = ReadLimits(scratch=home / "uploads")
    for name in FILE_NAMES:
        dataset = read_many([(name, io.BytesIO(table))], limits=limits)
        digest = DatasetStore(home).put(dataset)
        SelectionStore(home).save(digest, name, np.ones(dataset.n_rows, dtype=bool))
        kept = SelectionStore(home).list(digest, dataset.n_rows)
        assert max(len(one.name) for one in kept) <= NAME_LENGTH
        made = {path.relative_to(home).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
        assert made == {"datasets", "selections"}, name
        assert DatasetStore(home).get(digest).n_rows == 9
