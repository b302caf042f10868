"""Sentences that count have the right number, and names from data stay as they were written."""

import numpy as np
import pytest

from appca.jobs.worker import KINDS
from appca.runs.configuration import RunConfig
from appca.ui.frame import status
from appca.ui.session.fitting import Shown
from tests.fitted_runs import fitted_run, info_of
from tests.ui.conftest import go, healthy
from tests.ui.parts.test_pages import good_table, table_of, upload


def run_of(k: int, model: str, **parameters) -> Shown:
    fitted = fitted_run(np.ones((3, k), dtype=bool))
    return Shown(RunConfig("0" * 64, {}, model, parameters), fitted, info_of(), None)


def test_every_kind_of_job_has_a_name_in_the_status_line():
    assert set(KINDS) <= set(status.KINDS)
    assert all(name[:1].isupper() for name in status.KINDS.values())


@pytest.mark.parametrize(("label", "shown"), [("*p*", r"\*p\*"), ("pH", "pH"), ("kind", "Kind")])
def test_a_colouring_is_called_as_the_column_is(start, label, shown):
    app = upload(start("data/open"), table_of(good_table(label)))
    go(app, "explore")
    colours = next(
        group for group in healthy(app).get("button_group") if group.label == "Colour by"
    )
    assert shown in colours.options
