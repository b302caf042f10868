"""What a fit gives: the fitted run, and facts about how it came to be."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from appca.analysis.fitted import FittedRun


class RunInfo(NamedTuple):
    """How a fit went; in this order on disk."""

    n_iter: int
    stop_reason: str
    log_likelihood: float  # of all rows, nats
    likelihood: str  # how it was computed, such as "exact"
    likelihood_error: float  # its standard error, nats; 0 where exact
    n_rows: int
    n_features: int  # after preprocessing
    versions: dict[str, str]  # of the packages that the numbers depend on
    stopped_at: int | None  # iterations, of all stages, after which a person stopped it
    n_missing: int | None  # cells; None where none is
    preview: bool  # whether few rows and passes stand in for the fit
    seconds: float
    place: str | None = None  # where, if a cluster fitted it

    @classmethod
    def from_dict(cls, about: Mapping[str, Any]) -> "RunInfo":
        """Rebuild what `to_dict` took apart; older runs lack some of it.

        Raises
        ------
        KeyError
            Without what every run has had from the first.
        """
        return cls(
            n_iter=about["n_iter"],
            stop_reason=about["stop_reason"],
            log_likelihood=about["log_likelihood"],
            likelihood=str(about.get("likelihood", "exact")),
            likelihood_error=float(about.get("likelihood_error", 0.0)),
            n_rows=about["n_rows"],
            n_features=about.get("n_features", 0),
            versions=dict(about.get("versions", {})),
            stopped_at=about.get("stopped_at"),
            n_missing=about.get("n_missing"),
            preview=bool(about.get("preview")),
            seconds=about["seconds"],
            place=about.get("place"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-able facts."""
        idle = {name for name in ("n_missing", "preview", "place") if not getattr(self, name)}
        return {name: value for name, value in self._asdict().items() if name not in idle}


class FitResult(NamedTuple):
    """What a fit gives."""

    fitted: FittedRun
    info: RunInfo
