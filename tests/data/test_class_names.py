"""Other names of classes: read from a file, and the same data under the same digest."""

import numpy as np
import pytest

from appca.data.class_names import names_in, renamed
from appca.data.dataset import Dataset, categories
from appca.words.errors import InputError


def data() -> Dataset:
    labels = {"kind": np.array(["b", "a", "", "b"]), "n": np.array([3, 1, 2, 1])}
    return Dataset("d", np.random.default_rng(0).random((4, 3)), np.arange(4).astype(str), labels)


def test_classes_get_names_and_the_digest_stays():
    other = renamed(
        data(), {"kind": {"a": "ant", "b": "bee"}, "n": {"1": "one"}, "gone": {"x": "y"}}
    )
    assert other.labels["kind"].tolist() == ["bee", "ant", "", "bee"]
    assert other.labels["n"].tolist() == ["3", "one", "2", "one"]
    assert other.digest == data().digest
    assert categories(other.labels["kind"])[0] == ["ant", "bee", "missing"]
    assert data().labels["kind"].tolist() == ["b", "a", "", "b"]


def test_a_file_names_classes_by_their_order_or_by_their_old_names():
    assert names_in("ant\n\n  bee \n", ["a", "b"]) == {"a": "ant", "b": "bee"}
    assert names_in("\ufeffb\tthe bee\n", ["a", "b"]) == {"b": "the bee"}
    assert names_in("a,ant, red\nb;bee\n", ["a", "b"]) == {"a": "ant, red", "b": "bee"}
    assert len(names_in("x" * 999, ["a"])["a"]) <= 60


@pytest.mark.parametrize("text", ["", "ant\n", "ant\nbee\ncat\n", "c,cat\n"])
def test_a_file_of_other_classes_is_one_sentence(text):
    with pytest.raises(InputError, match="the label 2 classes; give one name a line"):
        names_in(text, ["a", "b"])
