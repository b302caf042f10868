"""Recorded settings of a model, and the keywords it was given after runs of it had been stored.

The id of a run is made of its settings. A keyword of `LATER` is part of them only where it differs
from the value beside it, which does what was done before the keyword was there: so the runs from
before keep their ids, and are found for the same settings. That value stays as it is even if the
keyword's default changes. A keyword that does not stand here is part of every id.
"""

from collections.abc import Mapping
from typing import Any, Self

from appca.storage.identity import Recorded, without

# model -> keyword -> the value that does what was done before
_WEAK: dict[str, object] = {"noise_shape": 1.0, "noise_scale": 0.01}
_SCORES: dict[str, object] = {"latent_shape": 1.0, "latent_scale": 0.01}
_LOADINGS: dict[str, object] = {"loading_shape": 1.0, "loading_scale": 0.01}
_MASS: dict[str, object] = {"alpha_shape": 1.0, "alpha_rate": 1.0}
_STARTS: dict[str, object] = {"chain_starts": "init"}
_EXTENSIONS: dict[str, object] = {"noise": "shared", "row_scale": "none"}
LATER: dict[str, dict[str, object]] = {
    "aPPCA": _WEAK | _SCORES | _STARTS | _EXTENSIONS,
    "aFA": _WEAK | _LOADINGS | _STARTS,
    "NPPCA": _WEAK | _SCORES | _MASS,
    "isFA": _WEAK | _LOADINGS | _MASS | _STARTS,
    "fsFA": _WEAK | _LOADINGS | _MASS | _STARTS,
}


class OfModel(Recorded):
    """Base of recorded settings with those of a model, ``parameters``, among them."""

    model: str
    parameters: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, from which `from_dict` makes equal ones."""
        later = LATER.get(self.model, {})
        return super().to_dict() | {"parameters": without(self.parameters, later)}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Rebuild settings from `to_dict`."""
        later = LATER.get(settings.get("model", getattr(cls, "model", "")), {})
        return super().from_dict({**settings, "parameters": {**later, **settings["parameters"]}})
