"""Fit aPPCA with a noise of each feature, a scale of each row, or learned sizes."""

from typing import Any, Literal, Self

import numpy as np

from appca.models.algebra.gaussian import Array
from appca.models.base.batches import InBatches
from appca.models.base.criteria import Criteria
from appca.models.base.data_checks import (
    refuse_few_features,
    refuse_sizes,
    warn_of_constant,
    warn_of_end,
)
from appca.models.orthonormal.screening import EMControl
from appca.models.orthonormal.starts import Candidate
from appca.models.rows.dask_rows import is_dask
from appca.models.rows.observations import Observations
from appca.models.variants.em import Variant, VariantSettings, VariantState, settings_for
from appca.models.variants.fit import fit_variant
from appca.models.variants.queries import VariantQueries

LEARNED = "learned"
MOST_WITH_SIZES = 500  # components: a table of all sizes has K^2 numbers a row, up to C(K, K/2)


class VariantModel(InBatches, Criteria, VariantQueries):
    """aPPCA that may give up assumptions of the paper's model."""

    n_active: int | Literal["learned"]
    noise: Literal["shared", "feature"]
    row_scale: Literal["none", "learned"]
    latent_variance: Literal["shared", "component"] | float
    inference: str
    init: Any
    w_update: str
    n_init: int
    max_iter: int

    def _start(self, n_features: int) -> Array | list[Candidate]:
        """Return directions (D, K), or candidates."""
        raise NotImplementedError

    def _ended(self, log_likelihoods: list[float], stop_reason: str) -> Self:
        self.log_likelihoods_: Array = np.array(log_likelihoods)
        self.n_iter_ = len(log_likelihoods)
        self.stop_reason_ = stop_reason
        return self

    @property
    def _variant(self) -> Variant:
        return Variant(self.noise == "feature", self.row_scale == LEARNED, self.n_active == LEARNED)

    def _first_size(self) -> int:
        """Return L, or where it is learned the L of the fit that gives a start."""
        learned = self.n_active == LEARNED
        return (self.n_components + 1) // 2 if learned else int(self.n_active)

    def _fit_variant(
        self, rng: np.random.Generator, rows: Observations, control: EMControl
    ) -> Self:
        settings = settings_for(control.settings, self._variant, rows)
        refuse_few_features(self.n_components, settings.most)
        start = self._directions_or_state(rng, rows, settings)
        same_order = isinstance(start, VariantState)
        self._forget_fit()
        fit = fit_variant(rng, rows, start, control, settings)
        self._publish_variant(rows, fit, same_order=same_order)
        warn_of_constant(settings.most)
        warn_of_end(fit.stop_reason, self.max_iter)
        return self._ended(fit.log_likelihoods, fit.stop_reason)

    def _directions_or_state(
        self, rng: np.random.Generator, rows: Observations, settings: VariantSettings
    ) -> Array | list[Candidate] | VariantState:
        continued = self._continued(rng, rows)
        if continued is None:
            return self._start(rows.d)
        W, more = continued
        state = self._variant_state(rows, settings)
        return state or (W if more is None else np.hstack([W, more.V]))

    def _forget_fit(self) -> None:
        super()._forget_fit()
        self._forget_variant()

    def row_scales(self, X: Any) -> Any:
        """Posterior mean (N,) of the scale u_n of each row: how unusual it is; 1 if not learned.

        A row of scale u has u times the variance of noise and scores.
        """
        return self._by_chunks_of("row_scales", X) if is_dask(X) else self._scales_of_rows(X)

    def _n_loadings(self) -> int:
        K, D = len(self.components_), self._n_varying()
        if self.n_active == K and self.latent_variance == "shared":
            return K * (D - K)  # no more than the span is identified
        return D * K - K * (K + 1) // 2

    def _n_variances(self) -> int:
        K = len(self.components_)
        latent = {"shared": 1, "component": K}.get(str(self.latent_variance), 0)
        noise = self._n_varying() if self._variant.by_feature else 1
        scales = len(getattr(self, "row_scale_probabilities_", [1])) - 1
        return latent + noise + scales + len(getattr(self, "size_probabilities_", [1])) - 1

    def _n_varying(self) -> int:
        """Count the features that the likelihood counts."""
        psi = np.broadcast_to(self.noise_variance_, self.components_.shape[1])
        return int((psi > 0.0).sum())

    def _refuse_conflicts(self, shape: tuple[int, int]) -> None:
        """Raise ValueError for parameters that exclude one another or do not suit the data."""
        refuse_sizes(self.n_components, *shape)
        self._refuse_variant()
        if self._first_size() > self.n_components:
            msg = (
                f"n_active must be at most n_components={self.n_components}; got {self.n_active}: "
                "lower n_active or raise n_components."
            )
            raise ValueError(msg)
        if self.w_update == "sample" and self.inference != "gibbs":
            msg = (
                f"w_update must not be 'sample' with inference={self.inference!r}, which maximises"
                ": leave w_update at 'auto', or set inference='gibbs'."
            )
            raise ValueError(msg)
        if not isinstance(self.init, str) and self.n_init > 1:
            msg = (
                f"n_init must be 1 when init is an array; got {self.n_init}: "
                "name a start to have random ones beside it."
            )
            raise ValueError(msg)

    def _refuse_variant(self) -> None:
        """Raise ValueError for what the extensions of the paper's model cannot do."""
        learned = [
            f"{name}={getattr(self, name)!r}"
            for name, is_new in zip(("noise", "row_scale", "n_active"), self._variant, strict=True)
            if is_new
        ]
        if learned and self.inference != "em":
            msg = (
                f"inference must be 'em' with {' and '.join(learned)}; got {self.inference!r}: "
                "set inference='em', or take the paper's model."
            )
            raise ValueError(msg)
        if self._variant.by_feature and not isinstance(self.latent_variance, str):
            msg = (
                "latent_variance must be 'shared' or 'component' with noise='feature', where it is "
                f"relative to the noise; got {self.latent_variance!r}: choose one of these."
            )
            raise ValueError(msg)
        if self._variant.learn_sizes and self.n_components > MOST_WITH_SIZES:
            msg = (
                f"n_components must be at most {MOST_WITH_SIZES} with n_active='learned'; got "
                f"{self.n_components}: ask for fewer components, or give n_active a number."
            )
            raise ValueError(msg)
