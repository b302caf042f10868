import errno
from pathlib import Path

import pytest

from appca.words import InputError, reason, refused, storing


def test_what_the_disk_refuses_is_one_sentence_with_what_where_why_and_the_remedy():
    with pytest.raises(InputError) as told, storing("The fit", Path("/home/runs")):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(told.value) == (
        "The fit could not be stored in /home/runs: No space left on device; free some space, or "
        "name another folder in APPCA_HOME."
    )
    assert isinstance(told.value.__cause__, OSError)
    denied = pytest.raises(InputError, match=r": Permission denied; ask its owner\.$")
    with denied, storing("The file", Path("/data"), "ask its owner"):
        raise PermissionError(errno.EACCES, "Permission denied", ".draft")
    assert str(refused("It", OSError("parsed"), "look again")) == "It: parsed; look again."


def test_other_errors_pass():
    with pytest.raises(KeyError), storing("The fit", Path("/home")):
        raise KeyError("x")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file", "/a/b/arrays.npz"), "arrays.npz is missing"),
        (FileNotFoundError(), "a file is missing"),
        (KeyError("config"), "“config” is missing"),
        (MemoryError(), "there is too little memory"),
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (ValueError("a\nb."), "a b"),
        (ValueError("Objects inside. If you trust it, load it."), "Objects inside"),
        (ValueError(), "it cannot be read"),
    ],
)
def test_reasons_are_a_few_words(error, words):
    assert reason(error) == words
