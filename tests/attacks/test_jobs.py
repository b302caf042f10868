"""Jobs that a stranger may have written, and addresses that name some."""

import pytest

from appca.jobs.tasks import Context
from appca.jobs.worker import work
from appca.runs.run import defaults
from tests.ui.conftest import address, healthy, start  # noqa: F401 - a fixture

FIT = {"dataset": "0" * 64, "preprocessing": {}, "model": "aPPCA", "parameters": defaults("aPPCA")}
NO_DATA = "There is no stored data set “{}”; choose one from the list or load it again."


def broken(error: str) -> str:
    return f"The job failed unexpectedly ({error}); see LOG."


WRITTEN: list[tuple[str, object, str]] = [  # kind, spec, sentence
    (
        "cook",
        {},
        "There is no job of the kind “cook”; choose fit, umap, download, study, project, grid, "
        "stability, models, masked, quality.",
    ),
    ("fit", {}, broken("KeyError: 'config'")),
    ("fit", {"config": "aPPCA"}, broken("AttributeError: 'str' object has no attribute 'get'")),
    ("fit", {"config": FIT | {"dataset": "../../etc"}}, NO_DATA.format("../../etc")),
    ("fit", {"config": FIT}, NO_DATA.format("000000000000…")),
    (
        "fit",
        {"config": FIT | {"model": "Oracle"}},
        "There is no model “Oracle”; choose one of aPPCA, aFA, NPPCA, isFA, fsFA, PPCA.",
    ),
    ("umap", {"dataset": 7}, "it has 7 for “dataset”, where a text belongs"),
    (
        "download",
        {"key": "../etc"},
        "There is no built-in data set '../etc'; choose one of digits, mnist, coil20, turntable, "
        "planes, brain, wine, breast_cancer.",
    ),
    (
        "download",
        {"key": "mnist", "options": {"n": -4}},
        "The option n of MNIST must be a whole number from 2 to 70,000; got -4.",
    ),
    (
        "project",
        {"key": "../..", "run": "../.."},
        "The fit or the new rows are not there any more; open both again.",
    ),
    ("study", {"options": {}}, broken("KeyError: 'study'")),
    ("grid", {"dataset": 0}, broken("KeyError: 'parameters'")),
]


@pytest.mark.parametrize(("kind", "spec", "sentence"), WRITTEN)
def test_a_forged_job_ends_with_a_sentence(tmp_path, kind, spec, sentence):
    last = work(kind, spec, Context(tmp_path))
    said = last["message"].replace(str(tmp_path / "jobs" / "log.txt"), "LOG")
    assert (last["state"], said) == ("failed", sentence)
    assert list(tmp_path.iterdir()) == [], "nothing was stored"


@pytest.mark.parametrize(
    "text",
    ["../../etc/passwd", "0" * 12, ",", ",".join(["a" * 12] * 5000), "\0", "<b>", "0" * 12 + ",x"],
)
def test_an_address_of_jobs_that_are_none_is_forgotten(start, text):  # noqa: F811
    assert "job" not in address(healthy(start(job=text)))
