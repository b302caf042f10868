"""Texts that came with the data, and names that people gave, stand for themselves on every page."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from appca.analysis.selections import SelectionStore
from appca.data.dataset import Dataset
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs.fit import fit_run
from appca.runs.home import home
from appca.runs.numbering import ComponentNumbers
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from tests.ui.conftest import go, healthy, start  # noqa: F401

HOSTILE = (
    "http://evil.example/x",
    "www.evil.example",
    "mailto:a@evil.example",
    "[evil](http://evil.example)",
    "![evil](http://evil.example/i.png)",
    "<a href='http://evil.example'>evil</a>",
    "<b>evil</b>",
    ":material/evil:",
    "$evil$",
    ":red[evil]",
    "**evil**",
    "`evil`",
)
# what must not stand anywhere as it is where Streamlit reads Markdown
RAW = ("[evil", "<b>evil", "<a href", "$evil", "**evil", "`evil")
# what it looks for when the backslashes are gone
LOOKED_FOR = ("http://evil", "www.evil", "a@evil", ":material/evil")
# fields that the browser shows as they are
PLAIN = {
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


def texts(message: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield all texts of a protocol message with the names of their fields."""
    for field, value in message.ListFields():
        several = value if field.is_repeated else [value]
        for one in several:
            if hasattr(one, "ListFields"):
                yield from texts(one, f"{path}.{field.name}")
            elif isinstance(one, str):
                yield f"{path}.{field.name}".strip("."), one


def raw_markup(app: AppTest) -> list[str]:
    """Return where a hostile text stands as it is, though Markdown or HTML are read there."""
    found = []
    for child in everything(app._tree):
        message = getattr(child, "proto", None)
        if message is None:
            continue
        kind = child.type
        plain = PLAIN.get(kind, set())
        for path, text in texts(message):
            if plain & {"*", path.rpartition(".")[2]} or path.endswith(("id", "key", "form_id")):
                continue
            marks = ("<b>evil", "<a href", "<img src='") if kind == "html" else RAW
            bare = "" if kind == "html" else text.replace("\\", "")
            if any(_stands(one, text) for one in marks) or any(one in bare for one in LOOKED_FOR):
                found.append(f"{kind} {path}: {text[:200]!r}")
    return found


def _stands(mark: str, text: str) -> bool:
    """Whether a mark is in a text, not after a backslash."""
    return re.search(rf"(?<!\\){re.escape(mark)}", text) is not None


@pytest.fixture(scope="module")
def part():
    return load("wine").take(np.arange(0, 178, 2))


def hostile_home(part: Dataset) -> str:
    """Store data, a run, names of components and a selection with hostile names; return the run."""
    n, d = part.X.shape
    ids = np.array([f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(n)])
    classes = np.array([HOSTILE[i % 5] for i in range(n)])
    names = tuple(f"{HOSTILE[j % len(HOSTILE)]} {j}" for j in range(d))
    labels = {HOSTILE[0]: classes, HOSTILE[3]: classes[::-1].copy()}
    source = {"source": "file", "files": [HOSTILE[1]], "citation": HOSTILE[2]}
    data = Dataset(HOSTILE[0], part.X, ids, labels, None, names, source)
    DatasetStore(home()).put(data)
    for number, title in enumerate((HOSTILE[5], HOSTILE[7])):
        sizes = {"n_components": 3, "n_active": 2, "random_state": number}
        config = RunConfig(data.digest, {"scale": "feature"}, "aPPCA", sizes)
        run = RunStore(home()).save(config, fit_run(data, config), title)
    for k, name in enumerate((HOSTILE[1], HOSTILE[3][:40], HOSTILE[7])):
        ComponentNumbers(home()).rename(run, k, name)
    SelectionStore(home()).save(data.digest, HOSTILE[0], np.arange(n) < 20)
    return run.id


def test_no_name_of_anything_is_read_as_markup_on_any_page(start, part):  # noqa: F811
    app = healthy(start(run=hostile_home(part)))
    found = {"start": raw_markup(app)}
    for page in PAGES:
        found[page] = raw_markup(healthy(go(app, page)))
    assert not any(found.values()), "\n".join(
        f"{page}: {one}" for page in found for one in found[page]
    )
