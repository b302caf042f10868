"""Journals: what was written comes back to the bit, and what was damaged counts as not written."""

import json

import numpy as np
import pytest

from appca.analysis.journal import JournalStore
from appca.words import InputError

NAME = "0123456789ab"


@pytest.fixture
def store(tmp_path) -> JournalStore:
    store = JournalStore(tmp_path, "things")
    store.begin(NAME, {"what": "a test"})
    return store


def test_numbers_texts_and_nothing_come_back_to_the_last_bit(store, seed):
    values = np.random.default_rng(seed).standard_normal(50) * 10.0 ** np.arange(-25, 25)
    written = [[n, float(value), None, "why: “ü”\nnext"] for n, value in enumerate(values)]
    for record in written:
        store.append(NAME, record)
    assert store.records(NAME) == written
    assert store.config(NAME) == {"what": "a test"}


def test_beginning_again_keeps_records_and_config(store):
    store.append(NAME, [1])
    store.begin(NAME, {"what": "something else"})
    assert store.records(NAME) == [[1]]
    assert store.config(NAME) == {"what": "a test"}


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_line_cut_short_is_dropped_and_the_next_one_is_whole(store, cut):
    for n in range(3):
        store.append(NAME, [n, 0.123456789])
    file = store.folder / NAME / "records.txt"
    file.write_bytes(file.read_bytes()[:-cut])
    kept = store.records(NAME)
    assert kept == [[0, 0.123456789], [1, 0.123456789]]
    store.begin(NAME, {})
    store.append(NAME, [9])
    assert store.records(NAME) == [*kept, [9]]


def test_a_changed_digit_is_noticed(store):
    store.append(NAME, [1, 2.5])
    store.append(NAME, [2, 3.5])
    file = store.folder / NAME / "records.txt"
    file.write_text(file.read_text().replace("2.5", "2.6"))
    assert store.records(NAME) == [[2, 3.5]]


def test_rubbish_is_no_record(store):
    file = store.folder / NAME / "records.txt"
    file.write_bytes(b"\xff\xfe\x00rubbish\n\n12345678 [1]\nzzz\n")
    assert store.records(NAME) == []
    store.append(NAME, [1])
    assert store.records(NAME) == [[1]]


@pytest.mark.parametrize("name", ["", "../../etc", "0123456789AB", "f" * 13, "x" * 12])
def test_a_name_from_an_address_reaches_no_other_folder(store, name):
    assert store.records(name) == []
    assert store.config(name) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_damaged_config_is_as_if_there_were_none(store, text):
    (store.folder / NAME / "config.json").write_text(text)
    assert store.config(NAME) is None
    store.begin(NAME, {"what": "again"})
    assert store.config(NAME) == {"what": "again"}


def test_names_lists_the_journals(store):
    other = "ba9876543210"
    store.begin(other, {})
    store.append(other, [1])
    assert set(store.names()) == {NAME, other}
    assert JournalStore(store.folder, "nothing").names() == []


def test_a_number_that_is_none_is_refused(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.append(NAME, [float("nan")])


def test_a_disk_that_refuses_gets_one_sentence(tmp_path):
    (tmp_path / "things").write_text("a file where the folder should be")
    store = JournalStore(tmp_path, "things")
    with pytest.raises(InputError, match=r"could not be stored in .*APPCA_HOME"):
        store.begin(NAME, {})
    with pytest.raises(InputError, match="could not be stored"):
        store.append(NAME, [1])


def test_the_files_are_plain_text(store):
    store.append(NAME, [1, "a"])
    line = (store.folder / NAME / "records.txt").read_text().splitlines()[-1]
    assert json.loads(line.partition(" ")[2]) == [1, "a"]
