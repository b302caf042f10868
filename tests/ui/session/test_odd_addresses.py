"""Whatever stands in the address, a session opens on a picture or says in a sentence why not."""

from random import Random

import pytest

from tests.ui.conftest import sentences, slider

PARAMETERS = ("data", "run", "k", "l", "sel", "job")
ODD = (
    *("", " ", "0", "-1", "1", "3", "64", "65", "1e3", "2.5", "nan", "inf", "-0", "+4", "٣", "½"),
    *(
        "9" * 30,
        "9" * 5000,
        "0x10",
        "1_000",
        "None",
        "null",
        "true",
        "[]",
        "{}",
        "[1,2]",
        '{"a":1}',
    ),
    *(
        "digits",
        "wine",
        "../../etc/passwd",
        "/etc/passwd",
        "..",
        ".",
        "~",
        "C:\\x",
        "a/b",
        "%2e%2e",
    ),
    *("f" * 64, "F" * 64, "0" * 12, "a" * 12, "g" * 12, "\0", "a\0b", "\n", "\ud7ff", "\u202ex"),
    *("<script>alert(1)</script>", "'; DROP TABLE runs; --", "${7*7}", "x" * 1000, "\N{ROCKET}"),
)


def opens(start, address: dict[str, str]):
    """Open an address, and return the app when it shows a picture."""
    app = start(**address)
    assert [problem.message for problem in app.exception] == [], address
    assert len(sentences(app)) <= 1, address
    for sentence in sentences(app):
        assert sentence.endswith("."), address
        assert len(sentence.splitlines()) == 1, address
    assert 1 <= slider(app, "l").value <= slider(app, "k").value <= 64, address
    return app


def rounds(seed: int) -> list[dict[str, str]]:
    """Addresses in which every parameter is each odd text once."""
    rng = Random(seed)
    columns = [rng.sample(ODD, len(ODD)) for _ in PARAMETERS]
    return [dict(zip(PARAMETERS, texts, strict=True)) for texts in zip(*columns, strict=True)]


def test_there_are_fifty_odd_texts():
    assert len(set(ODD)) == len(ODD) >= 50


def test_odd_texts_everywhere_in_the_address_still_open_a_picture(start, seed):
    broke_once = {"data": "\n", "k": "9" * 5000, "l": "9" * 5000}
    for address in (broke_once, *rounds(seed)[:5]):
        assert not opens(start, address).run().exception, address


@pytest.mark.slow
def test_every_odd_text_in_every_parameter_opens_a_picture(start, seed):
    for address in rounds(seed):
        assert not opens(start, address).run().exception, address
    for parameter in PARAMETERS:
        for text in ODD:
            opens(start, {parameter: text})
