"""The Gibbs pages of this folder and the sweeps of the package.

Every page passes the joint distribution test, a page broken on purpose does not; the package's
conditionals are those of the pages, and so are its posterior expectations.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from appca.models import conditionals as fast
from tests.geweke import agreement_z, geweke_z, worst
from tests.models import test_variant_gibbs
from tests.models.factors import test_factor_gibbs
from tests.models.orthonormal import test_subspace_gibbs
from tests.references import (
    gibbs_adaptive_fa,
    gibbs_adaptive_ppca,
    gibbs_nonparametric_ppca,
    gibbs_sparse_fa,
    gibbs_variants,
)

SUBSPACES = test_subspace_gibbs.CASES
# CROWDED there wants so many columns that alpha moves once in hundreds of sweeps
FACTORS = test_factor_gibbs.PRIORS
LESS_CROWDED = FACTORS["infinite"]._replace(alpha=fast.Gamma(12.0, 6.0))

# name: the package's model, the page's sweep, and the prior of both
PAIRS = {
    "adaptive PPCA": (SUBSPACES["block"], gibbs_adaptive_ppca.sweep, SUBSPACES["block"].prior),
    "row scales and sizes": (
        test_variant_gibbs.CASES["both"],
        gibbs_variants.sweep,
        test_variant_gibbs.CASES["both"].prior,
    ),
    "nonparametric PPCA": (
        SUBSPACES["ibp"],
        gibbs_nonparametric_ppca.sweep_buffet,
        SUBSPACES["ibp"].prior,
    ),
    "beta-Bernoulli PPCA": (
        SUBSPACES["beta-bernoulli"],
        gibbs_nonparametric_ppca.sweep_finite,
        SUBSPACES["beta-bernoulli"].prior,
    ),
    "adaptive FA": (
        test_factor_gibbs.model_of("fixed"),
        gibbs_adaptive_fa.sweep,
        FACTORS["fixed"],
    ),
    "finite sparse FA": (
        test_factor_gibbs.model_of("finite"),
        gibbs_sparse_fa.sweep_finite,
        FACTORS["finite"],
    ),
    "infinite sparse FA": (
        test_factor_gibbs.model_of("infinite", prior=LESS_CROWDED),
        gibbs_sparse_fa.sweep_infinite,
        LESS_CROWDED,
    ),
}


def with_sweep(model, sweep, prior):
    """Exchange the sweep of a model of Geweke's test for that of a page."""
    return SimpleNamespace(
        draw_prior=model.draw_prior,
        draw_data=model.draw_data,
        statistics=model.statistics,
        sweep=lambda rng, state, Y: sweep(rng, Y, state, prior),
    )


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("name", PAIRS)
def test_the_reference_passes_geweke(name, seed):
    z = geweke_z(with_sweep(*PAIRS[name]), np.random.default_rng(seed), 800)
    assert worst(z)[0] < 5, worst(z)


@pytest.mark.default_cases(1)
@pytest.mark.parametrize("name", PAIRS)
def test_posterior_expectations_are_those_of_the_reference(name, seed):
    pair = PAIRS[name]
    z = agreement_z(pair[0], with_sweep(*pair), np.random.default_rng(seed), 600)
    assert worst(z)[0] < 6, worst(z)  # errors from 25 batches: heavier tails than a normal z
