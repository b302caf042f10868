"""An autoencoder before a fit, in a real worker process."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from appca.data.prepared import FOLDER
from appca.data.sources.builtin import load
from appca.data.store import DatasetStore
from appca.data.vae.autoencoder import VAE
from appca.data.vae.training import STAGE
from appca.jobs.queue import Jobs
from appca.runs.configuration import RunConfig
from appca.runs.fit import estimate_seconds, project
from appca.runs.store import RunStore
from tests.jobs.waiting import ended, until

DIGITS = load("digits").take(np.arange(300))
TINY = VAE(dimensions=3, hidden=16, epochs=2)


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    DatasetStore(tmp_path).put(DIGITS)
    jobs = Jobs(tmp_path, workers=1)
    yield jobs
    jobs.close()


def config_of(options: VAE, **parameters: object) -> RunConfig:
    before = {"divide": 16.0, "vae": options.to_dict()}
    return RunConfig(DIGITS.digest, before, "aPPCA", {"n_components": 3, **parameters})


def submit(jobs: Jobs, config: RunConfig) -> str:
    return jobs.submit("fit", {"config": config.to_dict(), "name": None})


@pytest.mark.thorough
def test_training_is_cancelled_within_two_seconds_and_done_once_for_all_runs(jobs, tmp_path):
    job = submit(jobs, config_of(replace(TINY, epochs=1_000_000)))
    until(lambda: jobs.status(job).stage == STAGE, "the training", seconds=60)
    asked = time.monotonic()
    assert jobs.cancel(job)
    assert ended(jobs, job).state == "cancelled"
    assert time.monotonic() - asked < 2.0
    assert list(tmp_path.glob(f"{FOLDER}/*")) == []

    status = ended(jobs, submit(jobs, config_of(TINY)))
    assert status.state == "done", status.message
    (file,) = tmp_path.glob(f"{FOLDER}/*.npz")
    trained = file.read_bytes()
    other = ended(jobs, submit(jobs, config_of(TINY, n_active=1)))
    assert file.read_bytes() == trained
    first, second = (RunStore(tmp_path).get(each.result["run"]).fitted for each in (status, other))
    assert first.components.shape == (3, 3)
    again = second.preprocessing.arrays()
    for name, values in first.preprocessing.arrays().items():
        assert values.tobytes() == again[name].tobytes(), name
    found = project(config_of(TINY), first, DIGITS.X[:20])
    np.testing.assert_allclose(found.scores, first.scores[:20], atol=1e-5)
    assert first.preprocessing.n_features == 3


def test_the_id_names_the_autoencoder_and_the_estimate_its_training():
    config = config_of(TINY)
    assert RunConfig.from_dict(config.to_dict()) == config
    assert config.id != config_of(replace(TINY, seed=1)).id
    plain = RunConfig(DIGITS.digest, {"divide": 16.0}, "aPPCA", {"n_components": 3})
    spelled_out = {"divide": 16.0, "vae": None}
    assert replace(plain, preprocessing=spelled_out).id == plain.id != config.id
    trained = estimate_seconds(10_000, 784, config, prepared=True)
    assert trained < 2 < estimate_seconds(10_000, 784, config)
