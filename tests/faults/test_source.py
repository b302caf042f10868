"""What the source may not hold: ways in which data could become code or leave the machine."""

import ast
import io
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.data.store import DatasetStore

ROOT = Path(__file__).parents[2]
PYTHON = sorted([*(ROOT / "appca").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])
SCRIPTS = sorted(path for path in (ROOT / "appca").rglob("*.js"))
CALLS = {"eval", "exec", "compile", "__import__"}
NETWORK = {"requests", "urllib3", "urllib.request", "http.client", "socket", "pooch", "aiohttp"}
MAY_ASK = {
    "appca/data/sources.py",  # published data sets, when a person asks for them
    "appca/commands/app.py",  # whether its own server has started
    "appca/ui/streamlit_internals.py",  # a Unix socket that the server listens at
}
ASK_OWN_SERVER = {"host.js", "dropping.js"}  # for a scene; to hand it a file
HTML = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc)\b")
CODE = re.compile(r"\beval\s*\(|\bnew\s+Function\b|\bFunction\s*\(|javascript:")
OUTSIDE = re.compile(r"\b(fetch|XMLHttpRequest|sendBeacon|WebSocket|EventSource|importScripts)\b")


@cache
def everything() -> tuple[tuple[str, ast.AST], ...]:
    """Return the calls and imports of the source, each with its place."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path in PYTHON
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call | ast.Import | ast.ImportFrom)
    )


def nodes(kind: type) -> Iterator[tuple[str, ast.AST]]:
    return ((place, node) for place, node in everything() if isinstance(node, kind))


def imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    base = node.module or ""
    return {base} | {f"{base}.{alias.name}" for alias in node.names}


def named(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def test_there_is_source_to_look_at():
    assert len(PYTHON) > 150
    assert len(SCRIPTS) > 20


@pytest.mark.parametrize("pattern", [HTML, CODE, OUTSIDE], ids=["HTML", "code", "network"])
def test_no_script_of_ours_makes_html_or_code_of_text_or_asks_anybody(pattern):
    found = [
        f"{path.name}: {line.strip()}"
        for path in SCRIPTS
        for line in path.read_text(encoding="utf-8").splitlines()
        if pattern is not OUTSIDE or path.name not in ASK_OWN_SERVER
        if pattern.search(line) and not line.strip().startswith(("//", "*", "/*"))
    ]
    assert found == []


def test_no_data_becomes_code():
    found = [
        place
        for place, call in nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in CALLS
    ]
    assert found == []


def test_no_shell_is_started():
    found = [
        place
        for place, call in nodes(ast.Call)
        if named(call) in {"system", "popen"}
        or any(
            word.arg == "shell" and getattr(word.value, "value", None) is not False
            for word in call.keywords
        )
    ]
    assert found == []


def test_only_the_downloader_knows_the_network():
    found = {
        place.partition(":")[0]
        for kind in (ast.Import, ast.ImportFrom)
        for place, node in nodes(kind)
        if imported(node) & NETWORK
    }
    assert found == MAY_ASK


def test_the_settings_keep_the_server_to_this_machine_and_silent():
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    server = settings["server"]
    assert server["address"] == "127.0.0.1"
    assert set(server["allowedHosts"]) <= {"localhost", "127.0.0.1"}
    assert server.get("enableXsrfProtection", True)
    assert server.get("enableCORS", True)
    assert not server.get("enableAgentApi", False)
    assert not server.get("enableStaticServing", False)
    assert not server["showEmailPrompt"]
    assert not settings["browser"]["gatherUsageStats"]
    assert not settings["client"]["showErrorLinks"]


HOSTILE_NAMES = [
    "../../evil.csv",
    "/evil.csv",
    "..\\..\\evil.csv",
    "C:\\evil.csv",
    "a\0b.csv",
    "CON.csv",
    "~/evil.csv",
    f"{'x' * 5000}.csv",
    "$(touch evil).csv",
    "../mnist/../../train-images-idx3-ubyte.gz",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_the_name_of_a_file_never_becomes_a_path(name, tmp_path, monkeypatch):
    table = b"a,b\n" + b"".join(b"%d,%d\n" % (row, row * row) for row in range(9))
    home, here = tmp_path / "deep" / "home", tmp_path / "deep" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    limits = ReadLimits(scratch=home / "uploads")
    dataset = read_many([(name.replace(".gz", ".csv"), io.BytesIO(table))], limits=limits)
    digest = DatasetStore(home).put(dataset)
    mask = np.ones(dataset.n_rows, dtype=bool)
    SelectionStore(home).save(digest, name, mask)
    made = {path.relative_to(home).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {"datasets", "selections"}
    assert DatasetStore(home).get(digest).n_rows == 9
