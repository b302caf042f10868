"""What every fit hands to its estimator, whatever the model."""

from typing import Protocol

from appca.models.algebra.gaussian import Array


class ModelState(Protocol):
    """Parameters of y = W (x * z) + origin - W shift + e."""

    @property
    def W(self) -> Array:
        """Loadings (D, K)."""

    @property
    def shift(self) -> Array:
        """What the mean is away from the origin of the rows, in components (K,)."""

    @property
    def latent(self) -> Array:
        """Variances (K,) of x."""

    @property
    def noise(self) -> float:
        """Noise variance."""
