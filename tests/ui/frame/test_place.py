"""What pages say about where fits run."""

import numpy as np
import pytest

from appca.data.sources.builtin import load
from appca.runs.cluster import SCHEDULER
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.ui.explore.model import fit_facts
from appca.ui.frame.place import place_of_fits
from appca.ui.session.fitting import Shown
from tests.ui.conftest import healthy, html

ADDRESS = "tcp://<b>somewhere</b>:8786"
DIGITS = load("digits").take(np.arange(300))


def config_of(dataset, model="aPPCA", **parameters):
    return RunConfig(dataset.digest, {}, model, parameters)


def test_the_data_page_and_the_status_line_name_the_cluster(start, monkeypatch):
    monkeypatch.setenv(SCHEDULER, ADDRESS)
    text = html(healthy(start("data/this")))
    said = "Fits use the Dask cluster at tcp://&lt;b&gt;somewhere&lt;/b&gt;:8786"
    assert f"<dd>{said}" in text
    assert f" · {said}" in text
    assert "<b>somewhere" not in text


def test_without_a_cluster_nothing_is_said(start, monkeypatch):
    monkeypatch.delenv(SCHEDULER, raising=False)
    assert "cluster" not in html(healthy(start("data/open")))


ELSEWHERE = {
    "a sampler": lambda: (config_of(DIGITS, inference="gibbs"), DIGITS),
    "another model": lambda: (config_of(DIGITS, "aFA"), DIGITS),
    "few rows": lambda: (config_of(DIGITS), DIGITS.take(np.arange(63))),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_fits_that_no_cluster_does_are_said_to_run_here(case, monkeypatch):
    config, dataset = ELSEWHERE[case]()
    monkeypatch.setenv(SCHEDULER, ADDRESS)
    assert place_of_fits(config, dataset).startswith("This fit uses this computer: the Dask")
    assert place_of_fits(config_of(DIGITS), DIGITS).startswith("Fits use the Dask cluster at")


def test_few_features_after_a_reduction_suit_a_cluster(monkeypatch):
    monkeypatch.setenv(SCHEDULER, ADDRESS)
    few = DIGITS.take(np.arange(63))
    config = RunConfig(few.digest, {"pca": 10}, "aPPCA", {})
    assert place_of_fits(config, few).startswith("Fits use the Dask cluster at")


def test_a_run_says_where_it_was_fitted():
    config = config_of(DIGITS, n_components=3, n_active=1)
    result = fit_run(DIGITS, config)
    here = Shown(config, result.fitted, result.info, None)
    assert "Fitted on" not in fit_facts(here)
    there = here._replace(info=result.info._replace(place="the Dask cluster at <i>, 2 workers"))
    assert fit_facts(there)["Fitted on"] == "the Dask cluster at <i>, 2 workers"
