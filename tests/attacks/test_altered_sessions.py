"""Session files altered at random: refused in a sentence, or every page shows what they hold."""

import io
import json
from random import Random
from typing import Any

import pytest

from appca.runs.home import home
from appca.runs.session import unpack
from appca.words import InputError
from tests.attacks.forged import altered, fitted, small, sound
from tests.sentences import faults_of
from tests.ui.conftest import go, healthy, start  # noqa: F401

ODD = (
    *(None, True, False, 0, 1, -1, 2, 7, 10**6, 10**18, -(10**18), 0.5, 1e308, 1e-300, -1.5),
    *(float("nan"), float("inf"), "", " ", "abc", "1", "x" * 999, "\0", "\u202e", "'; import os"),
    *("http://evil.example", "<b>", [], [1], ["a", "b"], [[]], {}, {"a": 1}, {"": {}}, [None] * 3),
)
PAGES = ("data/open", "explore", "check/trust", "export")


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    dataset = small()
    run = fitted(tmp_path_factory.mktemp("sender"), dataset, n_components=3, n_active=2)
    return sound(run, dataset)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """Return the paths of everything inside a value of JSON."""
    steps = value.items() if isinstance(value, dict) else ()
    steps = enumerate(value) if isinstance(value, list) else steps
    inside = [((*path, step), inner) for step, inner in steps]
    return [place for at, inner in inside for place in (at, *places(inner, at))]


def change(rng: Random):
    """Return what puts an odd value in a random place, or takes what is there away."""

    def alter(contents: dict) -> None:
        *way, last = rng.choice(places(contents))
        at: Any = contents
        for step in way:
            at = at[step]
        if isinstance(at, dict) and rng.random() < 0.2:
            del at[last]
        else:
            at[last] = json.loads(json.dumps(rng.choice(ODD)))

    return alter


def opened(content: bytes, rng: Random, tries: int, folder) -> list[io.BytesIO]:
    """Try so many alterations; check the refusals, and return the files that were opened."""
    kept, refused = [], []
    for number in range(tries):
        file = altered(content, change(rng))
        try:
            found = unpack("bad.appca", file, folder / str(number))
            kept += [file] * len(found.runs)
        except InputError as error:
            refused.append(str(error))
            stored = (folder / str(number)).exists()
            refused += [f"{error}, but something is stored"] * stored
    assert [faults for one in refused if (faults := faults_of(one))] == []
    assert not any(one.endswith("stored") for one in refused)
    return kept


def shown(start, file: io.BytesIO) -> None:  # noqa: F811
    file.seek(0)
    found = unpack("bad.appca", file, home())
    app = healthy(start(run=found.runs[0]))
    for page in PAGES:
        healthy(go(app, page))


def test_altered_files_are_refused_or_shown(start, content, tmp_path, seed):  # noqa: F811
    files = opened(content, Random(seed), 60, tmp_path)
    assert 0 < len(files) < 50
    shown(start, files[0])
