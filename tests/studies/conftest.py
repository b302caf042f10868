"""One tiny table 1 for all tests that only look at its numbers."""

import pytest

from appca.studies.study import Outcome
from appca.studies.table1 import STUDY

TINY = {"n_rows": 120, "components": [4], "seeds": 1, "n_features": 12, "burn_in": 5, "n_draws": 5}


@pytest.fixture(scope="session")
def tiny() -> dict:
    return STUDY.options("quick", **TINY)


@pytest.fixture(scope="session")
def outcome(tiny) -> Outcome:
    return STUDY.run(tiny, lambda _stage, _share: None, 1)
