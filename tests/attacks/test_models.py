"""Model files from strangers: what does not fit is one sentence, before an estimator is made."""

import io
import json

import numpy as np
import pytest

from appca import load_model
from appca.data.sources import load
from appca.runs.fit import fit_run
from appca.runs.model_file import model_bytes, read_model
from appca.runs.run import MODELS, RunConfig, rules
from appca.words import InputError
from tests.sentences import faults_of


@pytest.fixture(scope="module")
def content():
    wine = load("wine").take(np.arange(0, 178, 4))
    sizes = {"n_components": 3, "n_active": 2}
    config = RunConfig(wine.digest, {"scale": "feature"}, "aPPCA", sizes)
    result = fit_run(wine, config)
    return model_bytes(config, result.fitted, result.info)


def forged(content: bytes, change) -> io.BytesIO:
    """Return the file with its text changed."""
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    facts = json.loads(str(arrays["run"]))
    facts = change(facts) or facts
    arrays["run"] = np.array(facts if isinstance(facts, str) else json.dumps(facts))
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    stream.seek(0)
    return stream


def parameter(name, value):
    return lambda facts: facts["config"]["parameters"].update({name: value})


def config(name, value):
    return lambda facts: facts["config"].update({name: value})


BEGIN, END = "“m.npz” does not say which model it holds (", "); save the model again."
SIZE = "must be a whole number of at least 1 and at most 100,000; got"
BAD = {
    "K a text": (parameter("n_components", "abc"), f"n_components {SIZE} 'abc'"),
    "L above K": (
        parameter("n_active", 4),
        "n_active must be at most n_components=3; got 4: lower n_active or raise n_components",
    ),
    "settings a text": (
        config("parameters", "K=3"),
        "it has 'K=3' for “parameters”, where a group of named values belongs",
    ),
    "no settings": (
        lambda facts: {key: value for key, value in facts.items() if key != "config"},
        "it lacks “config”",
    ),
    "stop that is code": (
        config("stopped_at", "1:\n import os"),
        "it has '1:\\n import os' for “stopped_at”, where a whole number or nothing belongs",
    ),
    "names that turn the text": (
        config("model", "\u202eACPP"),
        "There is no model “�ACPP”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_forged_model_gets_its_sentence(content, name):
    change, why = BAD[name]
    with pytest.raises(InputError) as told:
        read_model("m.npz", forged(content, change))
    assert str(told.value) == BEGIN + why + END
    assert faults_of(str(told.value), "m.npz") == ""


def test_a_k_that_is_not_that_of_the_arrays_is_refused(content, tmp_path):
    path = tmp_path / "m.npz"
    path.write_bytes(forged(content, parameter("n_components", 5)).getvalue())
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
        wrong = [
            value
            for value in SAMPLES
            if rule.holds(value) != own[name].holds(value)
            and not (isinstance(value, int | None) and value in beyond)
        ]
        assert wrong == [], name
