"""What finite and infinite sparse factor analysis share as estimators."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from appca.models.factors import sparse_chains
from appca.models.factors.sparse_chains import Kind
from appca.models.factors.sparse_gibbs import CachedSparseState, SparsePrior
from appca.models.free_model import Draw, FreeModel
from appca.models.rows.observations import Rows
from appca.models.rows.precise_products import data_of
from appca.models.sampling.chains import Sampler
from appca.models.sampling.conditionals import InverseGamma
from appca.models.sampling.row_sums import look
from appca.models.settings.table import OVERDISPERSED


@dataclass(eq=False, repr=False)
class SparseFA(FreeModel):
    """Sparse factor analysis with either prior of Z."""

    _infinite: ClassVar[bool]

    _: KW_ONLY
    init: str = "ica"
    n_paths: int = 16
    chain_starts: str = OVERDISPERSED
    loading_shape: float = 1.0
    loading_scale: float = 0.01

    @property
    def _kind(self) -> Kind:
        return Kind(self._infinite, self.max_components)

    def _problem(
        self, rngs: list[np.random.Generator], rows: Rows
    ) -> tuple[list[CachedSparseState], Sampler[CachedSparseState]]:
        data = data_of(rows)
        variance = data.squares / data.size
        prior = SparsePrior(
            noise=self._noise_prior(variance),
            loading=InverseGamma(self.loading_shape, self.loading_scale).in_units_of(variance),
            alpha=self._alpha_prior(),
            mean_variance=self._mean_variance(),
            unit=math.sqrt(variance),
        )
        alpha = self._first_alpha()
        others = "random" if self.chain_starts == OVERDISPERSED else self.init
        inits = [self.init, *[others] * (len(rngs) - 1)]
        first = [
            sparse_chains.first_state(rng, rows, self._kind, alpha, init)
            for rng, init in zip(rngs, inits, strict=True)
        ]
        seen = [look(data, state) for state in first]
        return seen, sparse_chains.sampler(data, prior, self._kind)

    def _drawn(self, seen: CachedSparseState) -> Draw:
        state = seen.state
        weights = sparse_chains.expected(state, self._kind)
        power = np.square(state.X).sum(axis=0) * np.square(state.W).sum(axis=0)
        ones = np.ones(len(power))
        return Draw(state.W, state.mu, state.sigma2, ones, weights, power, state.alpha)
