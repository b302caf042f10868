"""What a fit gives: the fitted run, and facts about how it came to be."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from appca.analysis.fitted import FittedRun
from appca.storage.schema import Count, Finite, FromOne, NotNegative, Text, fitted


class RunInfo(NamedTuple):
    """How a fit went; in this order on disk."""

    n_iter: Count
    stop_reason: Text
    log_likelihood: Finite  # of all rows, nats
    likelihood: Text  # how it was computed, such as "exact"
    likelihood_error: NotNegative  # its standard error, nats; 0 where exact
    n_rows: FromOne
    n_features: Count  # after preprocessing
    versions: Annotated[dict[Text, Text], Meta(max_length=100)]  # of packages the numbers depend on
    seconds: NotNegative
    stopped_at: FromOne | None = None  # iterations, of all stages, after which a person stopped it
    n_missing: Count | None = None  # cells; None where none is
    preview: bool = False  # whether few rows and passes stand in for the fit

    @classmethod
    def from_dict(cls, about: Mapping[str, Any]) -> "RunInfo":
        """Rebuild what `to_dict` took apart; older runs lack some of it.

        Raises ValueError without what every run has had from the first, or where something is of
        another type.
        """
        info: RunInfo = fitted(cls, {**_NOT_FROM_THE_FIRST, **about})
        return info

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able facts."""
        idle = {name for name in ("n_missing", "preview") if not getattr(self, name)}
        return {name: value for name, value in self._asdict().items() if name not in idle}


_NOT_FROM_THE_FIRST: dict[str, Any] = {
    "likelihood": "exact",
    "likelihood_error": 0.0,
    "n_features": 0,
    "versions": {},
}


class FitResult(NamedTuple):
    """What a fit gives."""

    fitted: FittedRun
    info: RunInfo
