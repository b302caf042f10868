"""Digests: every bit of what is stored counts, in one block or in many."""

import zipfile

import numpy as np
import pytest

from appca.storage import digests
from appca.storage.digests import Damaged, blocks_of, check_file, line_of, lines_in
from appca.storage.files import read_json, read_numbered, write_json, write_numbered


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_byte_of_a_description_counts(tmp_path):
    file = tmp_path / "facts.json"
    write_json(file, {"a": 1, "größe": [1.5, None]}, "It")
    content = file.read_bytes()
    assert read_json(file, "It") == {"a": 1, "größe": [1.5, None]}
    for place in range(len(content)):
        file.write_bytes(flipped(content, 8 * place + place % 8))
        with pytest.raises(ValueError):  # noqa: PT011 (its own, or of the parser)
            read_json(file, "It")


def test_every_part_of_an_npz_file_counts(tmp_path):
    file = tmp_path / "a.npz"
    write_numbered(file, {"x": np.arange(3)}, "It")
    content = file.read_bytes()
    assert read_numbered(file, "It")["x"].tolist() == [0, 1, 2]
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None, "it is a zip file for everybody else"
    for bit in range(0, 8 * len(content), 67):
        file.write_bytes(flipped(content, bit))
        with pytest.raises((Damaged, zipfile.BadZipFile, ValueError)):
            read_numbered(file, "It")


def test_every_bit_of_a_line_counts():
    content = line_of('["a", 1]') + line_of("[2]")
    assert lines_in(content) == (['["a", 1]', "[2]"], 0)
    for bit in range(8 * len(content)):
        assert lines_in(flipped(content, bit))[1] > 0, bit


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1000, 1234])
def test_a_file_has_a_digest_for_each_block(tmp_path, monkeypatch, size):
    monkeypatch.setattr(digests, "_BLOCK", 100)
    file = tmp_path / "x"
    file.write_bytes(np.random.default_rng(0).bytes(size))
    blocks = blocks_of(file)
    assert len(blocks) == max(1, -(-size // 100))
    check_file(file, blocks)
    content = file.read_bytes()
    for bit in range(0, 8 * size, 777):
        file.write_bytes(flipped(content, bit))
        changed = blocks_of(file)
        assert [one != other for one, other in zip(blocks, changed, strict=True)].index(True) == (
            bit // 800
        )
        with pytest.raises(Damaged):
            check_file(file, blocks)
    for longer in (content + b"\0", content[:-1] if size else b"xy"):
        file.write_bytes(longer)
        with pytest.raises(Damaged):
            check_file(file, blocks)


def test_what_was_found_sound_is_not_read_until_it_changes(tmp_path, monkeypatch):
    file = tmp_path / "x"
    file.write_bytes(b"one")
    blocks = blocks_of(file)
    check_file(file, blocks)
    with monkeypatch.context() as patch:
        patch.setattr(digests, "blocks_of", lambda _: pytest.fail("it is read"))
        check_file(file, blocks)
    file.write_bytes(b"other")
    with pytest.raises(Damaged):
        check_file(file, blocks)
