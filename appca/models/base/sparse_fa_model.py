"""What finite and infinite sparse factor analysis share as estimators."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from appca.models.algebra.loop import Callback
from appca.models.base.free_model import RULES, Draw, FreeModel
from appca.models.base.parameters import Rule, one_of, whole
from appca.models.factors import sparse_chains
from appca.models.factors.sparse_chains import STARTS, Kind
from appca.models.factors.sparse_gibbs import CachedSparseState
from appca.models.rows.observations import Rows
from appca.models.sampling.chain_data import data_of
from appca.models.sampling.chains import Sampler
from appca.models.sampling.row_sums import look


@dataclass(eq=False, repr=False)
class SparseFA(FreeModel):
    """Sparse factor analysis with either prior of Z."""

    _rules: ClassVar[dict[str, Rule]] = RULES | {"n_paths": whole(2), "init": one_of(*STARTS)}
    _infinite: ClassVar[bool]

    max_components: int
    _: KW_ONLY
    alpha: Any = "infer"
    init: str = "ica"
    mean: str = "learned"
    n_paths: int = 16
    n_chains: int = 2
    burn_in: int = 200
    n_draws: int = 500
    thin: int = 1
    random_state: Any = None
    callback: Callback | None = None
    whiten: bool = False

    @property
    def _kind(self) -> Kind:
        return Kind(self._infinite, self.max_components)

    def _problem(
        self, rngs: list[np.random.Generator], rows: Rows
    ) -> tuple[list[CachedSparseState], Sampler[CachedSparseState]]:
        data = data_of(rows)
        variance = data.squares / data.size
        prior = sparse_chains.defaults(variance, self._mean_variance(), self._alpha_prior())
        alpha = self._first_alpha()
        first = [sparse_chains.first_state(rng, rows, self._kind, alpha, self.init) for rng in rngs]
        seen = [look(data, state) for state in first]
        return seen, sparse_chains.sampler(data, prior, self._kind)

    def _drawn(self, seen: CachedSparseState) -> Draw:
        state = seen.state
        weights = sparse_chains.expected(state, self._kind)
        power = np.square(state.X).sum(axis=0) * np.square(state.W).sum(axis=0)
        ones = np.ones(len(power))
        return Draw(state.W, state.mu, state.sigma2, ones, weights, power, state.alpha)
