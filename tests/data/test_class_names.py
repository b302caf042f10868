"""Other names of classes: the same data under the same digest."""

import numpy as np

from appca.data.columns import renamed
from appca.data.dataset import Dataset, categories
from appca.plots.style import label_colour


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


def test_a_class_that_is_renamed_or_joined_keeps_the_colours_of_all_others():
    shown = [np.array(list("dacbda")), np.array([3, 0, 2, 1, 3, 0]), np.array(["", *"cabda"])]
    for column in shown:
        labels = {"kind": column}
        X = np.random.default_rng(0).random((6, 3))
        before = Dataset("d", X, np.arange(6).astype(str), labels)
        names, codes = before.classes("kind")
        after = renamed(before, {"kind": {names[0]: "zebra", names[2]: names[1]}})
        now, coded = after.classes("kind")
        assert now == ["zebra", names[1], *names[3:]]
        assert coded.tolist() == [{0: 0, 1: 1, 2: 1}.get(code, code - 1) for code in codes]
        assert label_colour(after, "kind").names == tuple(n for n in now if n != "missing")
        some = after.take(np.array([0, 1, 4]))
        assert some.classes("kind")[0] == [
            n for n in now if n in {now[c] for c in coded[[0, 1, 4]]}
        ]
        assert categories(after.labels["kind"])[0] != now, "sorted by name, zebra is not the first"
