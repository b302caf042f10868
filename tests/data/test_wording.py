from appca.data.wording import counted, shortened


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
