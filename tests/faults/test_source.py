"""What the source may not hold: ways in which data could become code or leave the machine."""

import ast
import io
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.data.files import ReadLimits
from appca.data.readers import read_many
from appca.data.store import DatasetStore

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path for path in (ROOT / "appca").rglob("*.js"))
MAY_ASK = {
    "appca/data/sources.py",  # published data sets, when a person asks for them
    "appca/commands/app.py",  # whether its own server has started
    "appca/ui/streamlit_internals.py",  # a Unix socket that the server listens at
}
ASK_OWN_SERVER = {"host.js", "dropping.js"}  # for a scene; to hand it a file
HTML = re.compile(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc)\b")
CODE = re.compile(r"\beval\s*\(|\bnew\s+Function\b|\bFunction\s*\(|javascript:")
OUTSIDE = re.compile(r"\b(fetch|XMLHttpRequest|sendBeacon|WebSocket|EventSource|importScripts)\b")


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


PYTHON = sorted([*(ROOT / "appca").rglob("*.py"), *(ROOT / "pages").rglob("*.py"), ROOT / "app.py"])
CALLS = {"eval", "exec", "compile", "__import__"}
NETWORK = {"requests", "urllib3", "urllib.request", "http.client", "socket", "pooch", "aiohttp"}


def test_no_data_becomes_code_no_shell_is_started_and_only_the_downloader_knows_the_network():
    wrong, asking = [], set()
    for path in PYTHON:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                called = node.func
                is_code = isinstance(called, ast.Name) and called.id in CALLS
                last = getattr(called, "attr", getattr(called, "id", ""))
                shell = [one.value for one in node.keywords if one.arg == "shell"]
                by_shell = any(getattr(value, "value", None) is not False for value in shell)
                if is_code or by_shell or last in ("system", "popen"):
                    wrong.append(f"{name}:{node.lineno}")
            elif isinstance(node, ast.Import | ast.ImportFrom):
                base = getattr(node, "module", None)
                names = {f"{base}.{one.name}" if base else one.name for one in node.names}
                asking |= {name} if (names | {base}) & NETWORK else set()
    assert wrong == []
    assert asking == MAY_ASK
    assert len(PYTHON) > 100
    assert len(SCRIPTS) > 20


@pytest.mark.parametrize(
    "name",
    [
        *("../../evil.csv", "/evil.csv", "..\\..\\evil.csv", "C:\\evil.csv", "a\0b.csv", "CON.csv"),
        *(
            "~/evil.csv",
            f"{'x' * 5000}.csv",
            "$(touch evil).csv",
            "../mnist/../../train-images.csv",
        ),
    ],
    ids=range(10),
)
def test_the_name_of_a_file_never_becomes_a_path(name, tmp_path, monkeypatch):
    table = b"a,b\n" + b"".join(b"%d,%d\n" % (row, row * row) for row in range(9))
    home, here = tmp_path / "deep" / "home", tmp_path / "deep" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    dataset = read_many([(name, io.BytesIO(table))], limits=ReadLimits(scratch=home / "uploads"))
    digest = DatasetStore(home).put(dataset)
    SelectionStore(home).save(digest, name, np.ones(dataset.n_rows, dtype=bool))
    made = {path.relative_to(home).parts[0] for path in tmp_path.rglob("*") if path.is_file()}
    assert made == {"datasets", "selections"}
    assert DatasetStore(home).get(digest).n_rows == 9
