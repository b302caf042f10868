"""Commands run in a folder of their own, that holds files such as the examples name."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

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
    names = [f"pixel{j}" for j in range(64)]
    pixels = np.vstack([digits.X[:20].astype(int), noise])
    pd.DataFrame(pixels, columns=names).to_csv("new.csv", index=False)
    for person in ("ada", "bob"):
        (tmp_path / "faces" / person).mkdir(parents=True)
        for i in range(8):
            pixels = rng.integers(0, 256, (20, 20), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "faces" / person / f"{i}.png")
    (tmp_path / "faces" / ".hidden").write_text("not an image")
    return tmp_path


def arrays_of(path: Path | str) -> dict[str, np.ndarray]:
    """Return the arrays of an NPZ file."""
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


class Nobody:
    """A server that is not there."""

    stdin = None

    def terminate(self) -> None:
        """Do nothing."""

    def wait(self, _seconds: float) -> None:
        """Do nothing."""
