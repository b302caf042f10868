"""From how many starts the variants are climbed, and that the highest end is kept."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from appca import AdaptivePPCA
from tests.models.synthetic import planted

WIDE = {"noise": "feature", "row_scale": "learned"}


def stages_of(X, **settings):
    """Fit, and return the model with the stages of climbs from several starts and their ends."""
    ends = {}

    def hear(progress):
        if progress.stage.startswith("start ") and ": " not in progress.stage:
            ends[progress.stage] = progress.log_likelihood

    return AdaptivePPCA(callback=hear, random_state=0, **settings).fit(X), ends


@pytest.mark.thorough
def test_breast_cancer_ends_where_the_likeliest_of_its_starts_leads():
    """Ends are 0.8 nats a row apart, and the start of the paper's model does not lead highest."""
    X = load_breast_cancer().data
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    settings = WIDE | {"n_active": "learned", "latent_variance": "component"}
    model, ends = stages_of(X, n_components=6, max_iter=500, **settings)
    values = list(ends.values())
    assert len(values) == 6
    assert max(values) > min(values) + 0.5 * len(X)
    assert max(values) > values[0] + 1.0
    assert model.log_likelihoods_[-1] >= max(values) - 1e-6 * abs(max(values))


@pytest.mark.parametrize(
    ("init", "n_init", "starts"),
    [("auto", 1, 6), ("auto", 2, 7), ("quartimax", 1, 0), ("pca", 3, 3)],
)
def test_as_many_starts_as_there_are_random_rotations(init, n_init, starts):
    X = planted(80, 6, 4, 2, seed=3, noise=0.4).X
    settings = {"n_components": 4, "n_active": 2, "init": init, "n_init": n_init, "max_iter": 20}
    with pytest.warns(match="max_iter"):
        ends = stages_of(X, **settings, **WIDE)[1]
    assert list(ends) == [f"start {i + 1} of {starts}" for i in range(starts)]


def test_many_rows_are_climbed_from_one_start():
    X = planted(6_000, 8, 5, 2, seed=3, noise=0.4).X
    assert not stages_of(X, n_components=5, n_active=2, **WIDE)[1]


def test_a_callback_stops_the_second_start():
    X = planted(80, 6, 4, 2, seed=3, noise=0.4).X

    def stop(progress):
        if progress.stage.startswith("start 2 of"):
            raise StopIteration

    model = AdaptivePPCA(4, 2, callback=stop, random_state=0, **WIDE).fit(X)
    assert model.stop_reason_ == "stopped by the callback"
    assert np.isfinite(model.score(X))
