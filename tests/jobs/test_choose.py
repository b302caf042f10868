"""The jobs of the page Choose K and L: progress, cancelling and going on."""

import numpy as np
import pytest

from appca.analysis.choose import GridConfig, StabilityConfig
from appca.data.dataset import Dataset
from appca.data.store import DatasetStore
from appca.jobs.tasks import Context, campaign, estimate
from tests.models.synthetic import planted

FAST = {"init": "pca", "max_iter": 30, "random_state": 0}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def dataset(home) -> Dataset:
    X = planted(120, 8, 4, 2, seed=5, noise=0.3).X
    dataset = Dataset("planted", X, np.arange(120).astype(str), {}, None, None, {})
    DatasetStore(home).put(dataset)
    return dataset


def config_of(dataset: Dataset, **changes) -> GridConfig:
    given = {"parameters": FAST, "components": (2, 3, 4), "actives": (1, 2)} | changes
    return GridConfig(dataset=dataset.digest, preprocessing={}, model="aPPCA", **given)


class Listening(Context):
    """A context that keeps every report, and can end the work at one of them."""

    def __init__(self, home, cancel_at=None):
        super().__init__(home)
        self.told: list[tuple[str, float, float | None]] = []
        self.cancel_at = cancel_at

    def report(self, stage, fraction, *, seconds_left=None, **rest):
        if not self.told or (stage, fraction) != self.told[-1][:2]:
            self.told.append((stage, fraction, seconds_left))
        if len(self.told) == self.cancel_at:
            raise KeyError
        super().report(stage, fraction, seconds_left=seconds_left, **rest)


def spec_of(config) -> dict:
    return config.to_dict() | {"key": config.id}


def test_the_job_measures_every_cell_and_says_where_it_is(home, dataset):
    config = config_of(dataset)
    context = Listening(home)
    assert campaign("grid", spec_of(config), context) == {"grid": config.id}
    assert list(config.records(home)) == config.steps()
    stages = [stage for stage, _, _ in context.told]
    assert stages[0] == "reading the data"
    assert stages[1] == f"fit 1 of {len(config.steps())}"
    assert len(stages) == 1 + len(config.steps())
    shares = [share for _, share, _ in context.told[1:]]
    assert shares[0] == 0.0
    assert shares == sorted(shares)
    assert 0.5 < shares[-1] < 1.0
    assert context.told[-1][2] >= 0.0  # seconds left


def test_a_cancelled_job_keeps_what_is_done_and_the_next_one_goes_on(home, dataset):
    config = config_of(dataset, max_rows=100)
    with pytest.raises(KeyError):
        campaign("grid", spec_of(config), Listening(home, cancel_at=8))
    done = config.records(home)
    assert list(done) == config.steps()[:6]
    context = Listening(home)
    campaign("grid", spec_of(config), context)
    assert context.told[1][0] == f"fit 7 of {len(config.steps())}"
    assert context.told[1][1] > 0.0
    every = config.records(home)
    assert list(every) == config.steps()
    assert all(every[step] == record for step, record in done.items())


def test_the_job_that_fits_again_stores_each_fit(home, dataset):
    parameters = FAST | {"n_components": 4, "n_active": 2}
    config = StabilityConfig(dataset.digest, {}, "aPPCA", parameters, repeats=2)
    context = Listening(home)
    assert campaign("stability", spec_of(config), context) == {"stability": config.id}
    assert config.outcome(home).cosines.shape == (2, 4)
    assert [stage for stage, _, _ in context.told[1:]] == [f"fit {n} of 3" for n in (1, 2, 3)]


def test_the_estimate_covers_each_step_and_grows_with_the_rows(dataset):
    config = config_of(dataset)
    few, many = estimate(config, 300, 8), estimate(config, 6000, 8)
    assert len(few) == len(config.steps())
    assert sum(many) > sum(few) > 0
    assert estimate(config, 10**6, 8) == many  # no more rows than asked for
