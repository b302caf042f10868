"""“Copy as Python” of hostile settings and names, parsed back: the statements that are meant."""

import ast
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from appca.analysis.as_python import Recipe, script
from appca.data.dataset import Dataset
from appca.data.sources import SOURCES
from appca.runs.run import MODELS, RunConfig, rules
from appca.runs.session import unpack
from appca.runs.store import RunStore, title
from appca.words import InputError
from tests.forged import altered, sent, setting, small

HOSTILE = (
    *("'", '"', "'''", '"""', "\\", "\\'", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\0"),
    *("\u2028", "\u2029", "\u202e", "\u2066", "\ufeff", "\ud800", "#", "{x}", "{{", "%s", "${x}"),
    *("'); import os; ('", '"""\nimport os\n"""', "x)\nimport os\n(", "__import__('os')", "=1, x"),
    *("n_components", "lambda", "None", "name", "*args", "**kwargs", "def", "é", "ſelf", " "),
)
CALLS = {
    *("load", "read_many", "DatasetStore", "home", "get", "Path"),
    *("sorted", "rglob", "is_file", "relative_to", "as_posix", "from_record", "fit_run", "print"),
    *("sum", "arranged"),
}
NAMES = CALLS | {
    *("os", "dataset", "expected", "config", "fitted", "RunConfig", "components", "mean"),
    *("scores", "active", "path", "paths", "folder", "files", "name", "order", "signs"),
}
MODULES = {
    *("os", "pathlib", "appca.runs.run", "appca.runs.fit"),
    *("appca.data.sources", "appca.data.readers", "appca.data.store", "appca.runs.home"),
}
STATEMENTS = ast.Import, ast.ImportFrom, ast.Assign, ast.Expr, ast.Assert


def strange(text: str) -> list[str]:
    """Return what a script holds beside the imports, assignments and calls that are meant."""
    found = []
    tree = ast.parse(text)
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
    return Recipe(
        run=config.id,
        title=title(config),
        settings=config.of_import(None).to_dict(),
        threads=2,
        log_likelihood=-1.5,
        imported=config.imported is not None,
    )


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
@given(texts, provenances)
def test_whatever_data_are_called_the_script_is_the_statements_meant(name, provenance):
    try:
        data = Dataset(name, np.eye(4), np.arange(4), provenance=provenance)
    except InputError:
        return  # what is not said in the right types does not become a data set
    text = script(data, recipe_of(RunConfig(data.digest, {}, "PPCA", {})))
    assert strange(text) == []
    assert shape(text).count("Import") <= 1
    assert shape(text)[-3:] == ["Assign", "Assign", "Expr"]


@settings(max_examples=100)
@given(st.data(), st.sampled_from(sorted(MODELS)))
def test_no_setting_of_any_model_becomes_code(data, model):
    names = st.one_of(st.sampled_from(sorted(rules(model))), texts)
    record = {
        "dataset": small().digest,
        "preprocessing": {"scale": data.draw(st.one_of(st.just("feature"), texts))},
        "model": model,
        "parameters": data.draw(st.dictionaries(names, values, max_size=3)),
        "stopped_at": data.draw(st.one_of(st.none(), st.just(7), values)),
    }
    try:
        config = RunConfig.from_record(record)
    except ValueError:
        return
    text = script(small(), recipe_of(config))
    assert strange(text) == []
    fits = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    assert not any(one.arg for node in fits for one in node.keywords)


def test_a_session_with_hostile_names_gives_the_script_of_a_plain_one(tmp_path):
    plain = script(small(), recipe_of(sent()[0].config))
    for number, name in enumerate(HOSTILE):
        readable = name.encode("utf-8", "replace").decode()
        file = altered(setting("dataset", "name", value=readable))
        try:
            found = unpack("x.appca", file, tmp_path / str(number))
        except InputError:
            continue
        run = RunStore(tmp_path / str(number)).get(found.runs[0])
        text = script(replace(small(), name=readable), recipe_of(run.config))
        assert strange(text) == []
        assert shape(text) == shape(plain)
    forged = recipe_of(sent()[0].config)._replace(run="1\nimport sys\n#")
    assert "import sys" in strange(script(small(), forged)), "the property can fail"
