import io
import os
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from appca.data import prepared
from appca.data.preprocessing import Preprocessing
from appca.data.sources.builtin import load
from appca.data.vae.autoencoder import VAE
from appca.storage import cache


def test_the_longest_unused_files_go_first(tmp_path):
    files = [tmp_path / f"near-{i}.npz" for i in range(4)]
    for age, file in enumerate(reversed(files)):
        cache.write(file, values=np.zeros(1000))
        os.utime(file, (1e9 - age, 1e9 - age))
    (tmp_path / "map.npz").write_bytes(b"x" * 10_000)
    size = files[0].stat().st_size
    assert cache.prune(tmp_path, "near-*.npz", 4 * size) == []
    assert cache.read(files[0])["values"].shape == (1000,), "reading counts as use"
    assert cache.prune(tmp_path, "near-*.npz", 2 * size) == [files[1], files[2]]
    assert files[0].exists()
    assert (tmp_path / "map.npz").exists()
    assert cache.prune(tmp_path, "near-*.npz", 0, keep=files[0]) == [files[3]]


def test_what_cannot_be_read_is_as_if_it_were_not_there(tmp_path):
    file = tmp_path / "a.npz"
    assert cache.read(file) is None
    file.write_bytes(b"no archive")
    assert cache.read(file) is None


@pytest.mark.thorough
def test_an_autoencoder_is_trained_once_for_the_same_data_and_options(tmp_path, monkeypatch):
    digits = load("digits").take(np.arange(100))
    options = Preprocessing(divide=16.0, vae=VAE(dimensions=2, hidden=8, epochs=1))
    told = []

    def ask(chosen: Preprocessing) -> int:
        told.clear()
        fitted = prepared.prepared(digits, chosen, tmp_path, lambda *note: told.append(note))
        assert fitted.transform(digits.X).shape[1] == chosen.most_features(64)
        return len(told)

    assert not prepared.is_at_hand(digits.digest, options, tmp_path)
    assert prepared.at_hand(digits, options, tmp_path) is None
    assert ask(options) > 0
    first = prepared.at_hand(digits, options, tmp_path)
    assert ask(options) == 0, "the same again is read"
    assert prepared.is_at_hand(digits.digest, options, tmp_path)
    assert ask(replace(options, vae=replace(options.vae, seed=1))) > 0
    assert ask(Preprocessing(divide=16.0)) == 0
    for file in (tmp_path / prepared.FOLDER).iterdir():
        file.write_bytes(b"damaged")
    assert ask(options) > 0, "a damaged one is trained again"
    again = prepared.at_hand(digits, options, tmp_path)
    assert again.vae.code.tobytes() == first.vae.code.tobytes()

    def full(*_args: object, **_arrays: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.np, "savez", full)
    other = replace(options, vae=replace(options.vae, seed=2))
    assert ask(other) > 0, "a full disk does not fail the run"
    assert not prepared.is_at_hand(digits.digest, other, tmp_path)


def test_a_file_that_fails_in_an_unusual_way_is_as_if_it_were_not_there(tmp_path):
    """A later version of zip, and a header that ends amid a bracket, are no ValueError."""
    file = tmp_path / "a.npz"
    cache.write(file, values=np.zeros(3))
    sound = file.read_bytes()
    place = sound.rfind(b"PK\x01\x02")
    file.write_bytes(sound[: place + 6] + b"\xff\x00" + sound[place + 8 :])
    assert cache.read(file) is None
    with zipfile.ZipFile(file, "w") as archive:
        stream = io.BytesIO()
        np.save(stream, np.zeros(3))
        archive.writestr("values.npy", stream.getvalue().replace(b"(3,)", b"(3,("))
    assert cache.read(file) is None
