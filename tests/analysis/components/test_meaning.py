"""What a component is said to go with is what it was made to go with."""

from types import SimpleNamespace

import numpy as np
import pytest

from appca.analysis.association import goes_with
from appca.data.dataset import Dataset

N = 300
RNG = np.random.default_rng(1)
CODES, TWO, AGE = RNG.integers(0, 5, N), RNG.integers(0, 2, N), RNG.normal(40, 9, N)
NOISE = RNG.normal(size=(N, 4))
PLANTED = 2.0 * (CODES == 0) - 2.0 * (CODES == 3) + 0.1 * NOISE[:, 0]
USED = (RNG.random(N) < np.where(TWO, 0.9, 0.2))[:, None]
NAMES = np.array(["setosa", "b", "c", "virginica", "e"])


@pytest.mark.parametrize(
    ("labels", "scores", "active", "sentences"),
    [
        ({"digit": CODES.astype(str)}, PLANTED, None, ["higher for 0s, lower for 3s"]),
        ({"kind": NAMES[CODES]}, PLANTED, None, ["higher for setosa, lower for virginica"]),
        ({"kind": TWO.astype(str), "age": AGE}, NOISE[:, 0] - AGE, None, ["falls with age"]),
        ({"kind": TWO.astype(str)}, NOISE, None, [""] * 4),
        ({}, NOISE, None, [""] * 4),
        (
            {"answer": np.array(["no", "yes"])[TWO]},
            NOISE[:, :1] * USED,
            USED,
            ["used more for yes, used less for no"],
        ),
    ],
)
def test_the_label_that_explains_most_is_said_and_chance_is_not(labels, scores, active, sentences):
    scores = scores.reshape(N, -1)
    active = np.ones(scores.shape, bool) if active is None else active
    dataset = Dataset("d", NOISE, np.arange(N).astype(str), labels)
    assert goes_with(dataset, SimpleNamespace(scores=scores, active=active)) == sentences
