"""Commands run in a folder of their own, that holds files such as the examples name."""

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
    """Return the working folder: measurements.csv with gaps, new.csv of digits, faces of images."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    table.loc[[3, 8], "b"] = np.nan
    table.insert(0, "name", [f"item {i}" for i in range(60)])
    table.assign(kind=["x", "y"] * 30).to_csv("measurements.csv", index=False)
    digits = load("digits")
    noise = rng.integers(0, 17, (4, 64))
    pixels = np.vstack([digits.X[:20].astype(int), noise])
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
    """Return ``said(arguments, code=0)``: what a command prints, whose exit code is checked."""

    def run(arguments: str | list[str], code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(arguments.split() if isinstance(arguments, str) else arguments) == code
        return capsys.readouterr()

    return run


@pytest.fixture
def places(monkeypatch) -> list[dict[str, str]]:
    """What the browser would be sent to."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr(app, "run", lambda options: found.append(app.place(options)) or {})
    return found


def arrays_of(path: Path | str) -> dict[str, np.ndarray]:
    """Return the arrays of an NPZ file."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


class Nobody:
    """A server that is not there."""

    stdin = None

    def terminate(self, *_: object) -> None:
        """Do nothing."""

    wait = terminate
