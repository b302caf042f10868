"""What each model can do, and up to where: the one place that all pages and estimates read.

The kernels in `appca.models` decide; a test holds what stands here against them.
"""

import math
from typing import NamedTuple

ENUMERATED = 5000  # supports that are gone through one by one


class Capabilities(NamedTuple):
    """What a model can do."""

    uncompiled: int = 0  # most components with which nothing waits for a compiler
    beyond_features: bool = False  # K may exceed the number of features
    incomplete: bool = False  # missing cells are integrated out, by EM
    dask: bool = False  # EM goes through the chunks of a Dask array
    # Most supports that log-likelihoods are summed over, estimates beyond; None: sums are exact
    # for any number.
    exact_supports: int | None = None
    incomplete_supports: int = 0  # the same of rows with missing cells; beyond, a lower bound

    @property
    def compiled(self) -> bool:
        """Whether fits and descriptions always wait for a compiler: then only workers do them."""
        return self.uncompiled == 0

    def is_exact(self, n_components: int, n_active: int | None) -> bool:
        """Whether log-likelihoods of whole rows are exact; `n_active` None where rows differ."""
        return (
            self.exact_supports is None or supports(n_components, n_active) <= self.exact_supports
        )


def supports(n_components: int, n_active: int | None) -> int:
    """Return how many supports a row can have; `n_active` None where rows differ in that."""
    return 2**n_components if n_active is None else math.comb(n_components, n_active)
