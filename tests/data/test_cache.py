import os

import numpy as np

from appca.storage.files import prune, read_cached, write_cached


def test_the_longest_unused_files_go_first(tmp_path):
    files = [tmp_path / f"near-{i}.npz" for i in range(4)]
    for age, file in enumerate(reversed(files)):
        write_cached(file, values=np.zeros(1000))
        os.utime(file, (1e9 - age, 1e9 - age))
    (tmp_path / "map.npz").write_bytes(b"x" * 10_000)
    size = files[0].stat().st_size
    assert prune(tmp_path, "near-*.npz", 4 * size) == []
    assert read_cached(files[0])["values"].shape == (1000,), "reading counts as use"
    assert prune(tmp_path, "near-*.npz", 2 * size) == [files[1], files[2]]
    assert files[0].exists()
    assert (tmp_path / "map.npz").exists()
    assert prune(tmp_path, "near-*.npz", 0, keep=files[0]) == [files[3]]


def test_what_cannot_be_read_is_as_if_it_were_not_there(tmp_path):
    file = tmp_path / "a.npz"
    assert read_cached(file) is None
    file.write_bytes(b"no archive")
    assert read_cached(file) is None
