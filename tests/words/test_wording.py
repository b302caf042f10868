import numpy as np
import pytest

from appca.data.dataset import Dataset
from appca.words import InputError, capital, counted, is_text, shortened


def test_texts_are_cut_to_one_line():
    assert shortened("a\n b\t c") == "a b c"
    assert shortened("x" * 50) == "x" * 39 + "…"
    assert shortened("x" * 50, 60) == "x" * 50


def test_signs_that_are_not_seen_or_turn_the_line_around_are_shown():
    assert shortened("a\x00b\x1b[31m") == "a�b�[31m"
    assert shortened("\u202egnp.exe") == "�gnp.exe"
    assert shortened("שלום 👩\u200d🔬") == "שלום 👩\u200d🔬"


def test_counts_are_in_words():
    assert [counted(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]


def test_a_name_begins_with_a_large_letter_unless_it_has_some_of_its_own():
    assert [capital(name) for name in ("digit", "pH", "DNA", "*p*", "", "élan")] == [
        "Digit",
        "pH",
        "DNA",
        "*p*",
        "",
        "Élan",
    ]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("code", [0x110000, 0xFFFFFFFF, 0xD800, 0xDFFF])
def test_texts_from_files_with_characters_that_do_not_exist_are_refused(code, order):
    codes = np.array([[97, 98], [99, code]], np.uint32).astype(f"{order}u4")
    texts = codes.view(f"{order}U2").ravel()
    assert not is_text(texts)
    assert is_text(texts[:1])
    with pytest.raises(InputError, match="row ids contain invalid Unicode"):
        Dataset("x", np.eye(2), texts)
    with pytest.raises(InputError, match="label column “y” contain invalid Unicode"):
        Dataset("x", np.eye(2), np.array(["a", "b"]), {"y": texts})


def test_all_other_texts_are_texts():
    assert is_text(np.array(["", "\U0010ffff", "\ud7ff\ue000"]))
    assert is_text(np.array([], dtype=str))
    assert is_text(np.array(["", ""]))
    assert is_text(np.arange(3))
