"""Peak memory of fits in memory: at most twice the data, the data themselves among it."""

import pytest

from benchmarks.measure import FORGET_PEAK
from tests.memory import grown

pytestmark = pytest.mark.skipif(not FORGET_PEAK.exists(), reason="needs Linux's /proc")

SHORT = {"n_chains": 1, "burn_in": 2, "n_draws": 3, "random_state": 0}
GIBBS = {"n_components": 6, "n_active": 2, "inference": "gibbs", "init": "pca", "max_iter": 5}


@pytest.mark.parametrize("shape", [(20_000, 750), (1000, 15_000)], ids=["long", "wide"])
def test_a_chain_of_appca_takes_less_than_the_data_beside_them(shape):
    assert grown("AdaptivePPCA", shape, **GIBBS, **SHORT) < 1.0
