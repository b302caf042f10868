"""The part of the script that reads files, executed where the files lie."""

import io
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.export.as_python import _loading
from appca.data.readers import read, read_many
from appca.data.store import DatasetStore
from tests.data.readers.arrays.test_idx import idx
from tests.data.readers.images.test_images import encoded, noise


def read_again(dataset, home, folder, monkeypatch):
    """Execute what reads the data set, from what the store remembers of it."""
    kept = DatasetStore(home)
    imports, lines = _loading(kept.get(kept.put(dataset)))
    monkeypatch.chdir(folder)
    names = {"Path": Path}
    exec("\n".join([imports, *lines]), names)
    return names["dataset"]


def given(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [(name, folder / name) for name in files]


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (
            {f"pets/{'ab'[i % 2]}_{i}.png": encoded(noise(i, 6, 5)) for i in range(9)},
            {"pattern": "{kind}_{n}", "size": (4, 4)},
        ),
        (
            {"x-images.idx": idx(noise(0, 6, 3, 3)), "x-labels.idx": idx(noise(1, 6))},
            {},
        ),
        ({"x.npz": npz(a=noise(0, 5, 6), b=noise(1, 5, 6))}, {"array": "b", "image_shape": (2, 3)}),
        (
            {"x.csv": b"7,a,5,1\n2,b,6,1\n3,b,8,2\n4,a,5,2\n"},
            {"separator": ",", "roles": {"column 2": "ignored"}},
        ),
    ],
    ids=["folder", "pair", "array", "table"],
)
def test_the_script_reads_the_files_as_they_were_read(files, options, tmp_path, monkeypatch):
    folder = tmp_path / "files"
    pairs = given(folder, files)
    dataset = read_many(pairs, **options) if len(pairs) > 1 else read(*pairs[0], **options)
    again = read_again(dataset, tmp_path / "home", folder, monkeypatch)
    assert again.digest == dataset.digest
