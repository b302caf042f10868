"""What a component is said to go with is what it was made to go with."""

from types import SimpleNamespace

import numpy as np

from appca.analysis.association import goes_with
from appca.data.dataset import Dataset

N = 300


def described(scores: np.ndarray) -> SimpleNamespace:
    return SimpleNamespace(scores=scores, active=np.ones(scores.shape, bool))


def dataset(**labels: np.ndarray) -> Dataset:
    return Dataset("d", np.random.default_rng(0).random((N, 2)), np.arange(N).astype(str), labels)


def test_classes_with_high_and_low_scores_are_named():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 5, N)
    scores = np.stack([2.0 * (codes == 0) - 2.0 * (codes == 3), np.zeros(N)], axis=1)
    scores[:, 0] += 0.1 * rng.normal(size=N)
    found = goes_with(dataset(digit=codes.astype(str)), described(scores))
    assert found == ["higher for 0s, lower for 3s", ""]
    names = np.array(["setosa", "b", "c", "virginica", "e"])[codes]
    assert (
        goes_with(dataset(kind=names), described(scores))[0]
        == "higher for setosa, lower for virginica"
    )


def test_the_label_that_explains_most_is_taken_be_it_a_number():
    rng = np.random.default_rng(2)
    age, codes = rng.normal(40, 9, N), rng.integers(0, 3, N)
    scores = -(age - 40)[:, None] + rng.normal(size=(N, 1))
    assert goes_with(dataset(kind=codes.astype(str), age=age), described(scores)) == [
        "falls with age"
    ]


def test_chance_is_not_told_and_neither_is_anything_without_labels():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(N, 4))
    assert goes_with(dataset(kind=rng.integers(0, 2, N).astype(str)), described(scores)) == [""] * 4
    assert goes_with(dataset(), described(scores)) == [""] * 4


def test_classes_that_use_a_component_are_told_too():
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 2, N)
    active = (rng.random(N) < np.where(codes == 1, 0.9, 0.2))[:, None]
    rows = SimpleNamespace(scores=np.where(active, rng.normal(size=(N, 1)), 0.0), active=active)
    names = np.array(["no", "yes"])[codes]
    assert goes_with(dataset(answer=names), rows) == ["used more for yes, used less for no"]
