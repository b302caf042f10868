"""Fixtures of command tests: a folder with the files of the examples."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from appca.cli import main
from appca.commands import app
from appca.data.sources import load


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Return the working folder, with tables, digits and images."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    table.loc[[3, 8], "b"] = np.nan
    table.insert(0, "name", [f"item {i}" for i in range(60)])
    table.assign(kind=["x", "y"] * 30).to_csv("measurements.csv", index=False)
    pixels = np.vstack([load("digits").X[:20].astype(int), rng.integers(0, 17, (4, 64))])
    pd.DataFrame(pixels).add_prefix("pixel").to_csv("new.csv", index=False)
    for person in ("ada", "bob"):
        (tmp_path / "faces" / person).mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(0, 256, (20, 20), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "faces" / person / f"{i}.png")
    (tmp_path / "faces" / ".hidden").write_text("not an image")
    return tmp_path


@pytest.fixture
def said(capsys) -> Callable[..., tuple[str, str]]:
    """Return ``said(arguments, code=0)``, which runs a command and checks its exit code."""

    def run(arguments: str | list[str], code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(arguments.split() if isinstance(arguments, str) else arguments) == code
        return capsys.readouterr()

    return run


@pytest.fixture
def places(monkeypatch) -> list[dict[str, str]]:
    """Return the list of pages that commands open in the browser."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(app, "run", lambda options: found.append(app.place(options)) or {})
    return found


def arrays_of(path: Path | str) -> dict[str, np.ndarray]:
    """Return the arrays of an NPZ file."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


class Nobody:
    """A stand-in for a server process."""

    stdin = None

    def terminate(self, *_: object) -> None:
        """Do nothing."""

    wait = terminate
