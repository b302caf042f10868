"""Recorded settings of a model, whose id leaves out what `settings.table.later` says."""

from collections.abc import Mapping
from typing import Any, Self

from appca.data.preprocessing import Preprocessing
from appca.models.settings.table import later
from appca.storage.identity import Recorded, plain, without


class OfModel(Recorded):
    """Base of recorded settings with those of a model, ``parameters``, among them."""

    preprocessing: dict[str, Any]
    model: str
    parameters: dict[str, Any]

    def __post_init__(self) -> None:
        """Own the dicts, so that the id cannot change under it."""
        options = Preprocessing.from_dict(plain("preprocessing", self.preprocessing))
        object.__setattr__(self, "preprocessing", options.to_dict())
        object.__setattr__(self, "parameters", plain("parameters", self.parameters))

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able settings, from which `from_dict` makes equal ones."""
        return super().to_dict() | {"parameters": without(self.parameters, later(self.model))}

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Rebuild settings from `to_dict`."""
        before = later(settings.get("model", getattr(cls, "model", "")))
        return super().from_dict({**settings, "parameters": {**before, **settings["parameters"]}})
