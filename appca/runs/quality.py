"""Comparisons of a run's projection with other methods': settings, and results on disk."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from appca.runs.configuration import RunConfig
from appca.storage.files import read_json, write_json
from appca.storage.formats import or_none
from appca.storage.identity import Recorded, digest_of, is_id, plain
from appca.words.refusal import storing

SECONDS = 120.0


@dataclass(frozen=True, eq=False)
class QualityConfig(Recorded):
    """Everything that decides a comparison.

    `run` is a `RunConfig` as dict: data, preprocessing, model and its settings. The other methods
    have `k` components, of which a row uses `n_active` where they can choose. `rows` is the size of
    the random sample of rows that is compared, None for all. Each method has so many `seconds`;
    what can stop early keeps what it has, the rest is left out. `random_state` is the seed of the
    sample and of the rows held out.
    """

    run: dict[str, Any]
    k: int
    n_active: int
    rows: int | None = None
    n_neighbors: int = 15
    seconds: float = SECONDS
    random_state: int = 0

    def __post_init__(self) -> None:
        """Own the dict."""
        config = RunConfig.from_dict(plain("run", self.run))
        run = replace(config, imported=None).to_dict()  # what is measured is a fit
        object.__setattr__(self, "run", run)


class MethodComparison(NamedTuple):
    """What has been measured so far."""

    lines: list[dict[str, Any]]  # one a method, see `measured`
    facts: dict[str, Any]  # n_neighbors: k of the measures of nearest rows
    complete: bool


class QualityStore:
    """Comparisons below ``<home>/quality/``, one JSON file each, replaced whole."""

    def __init__(self, home: Path) -> None:
        self.folder = Path(home) / "quality"

    def save(self, config: QualityConfig, comparison: MethodComparison) -> str:
        """Store what has been measured and return its id.

        Raises InputError when the disk refuses.
        """
        facts = {"config": config.to_dict(), **comparison._asdict()}
        with storing("The comparison", self.folder):
            write_json(self._file(config.id), facts, f"Comparison {config.id}")
        return config.id

    def get(self, comparison_id: str) -> MethodComparison | None:
        """Return a comparison, or None when it is not there or cannot be read; see `or_none`."""
        return or_none(partial(self._read, comparison_id)) if is_id(comparison_id) else None

    def _read(self, comparison_id: str) -> MethodComparison | None:
        stored = read_json(self._file(comparison_id), f"Comparison {comparison_id}")
        if digest_of(stored["config"]) != comparison_id:
            return None
        return MethodComparison(**{name: stored[name] for name in MethodComparison._fields})

    def _file(self, comparison_id: str) -> Path:
        return self.folder / f"{comparison_id}.json"
