"""Numbers of components on screen: 1 to K in every run, assigned once and stored with the run.

When a run is first shown, the Hungarian method matches its components to those of the fit on
screen. A component with |cos| of at least `ROUGHLY` gets the number of its match, if at most K.
The others get the free numbers in the order of explained variance. Signs and names belong to
directions, which never change: a registry in the home, for each data set (with the rows left out)
and model, applies them. `numbered` reorders a run before it is shown or saved.
"""

from contextlib import AbstractContextManager, suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.analysis.components import ROUGHLY, patterns
from appca.analysis.fitted import FittedModel, FittedRun
from appca.data.store import DatasetStore
from appca.runs.run import RunConfig
from appca.runs.store import LABELS, NAME_LENGTH, Labels, Run, changeable, labels, put
from appca.storage import lock
from appca.storage.files import or_none, read_json, read_numbered, write_json, write_numbered
from appca.storage.identity import digest_of
from appca.words import storing

FILE = "numbers.json"  # file in a run's folder
_NAMES = f"<U{NAME_LENGTH}"


class Numbering(NamedTuple):
    """Order, signs and names of components 1, 2, ... K on screen."""

    order: tuple[int, ...]  # (K,) index in the estimator, counted from 0
    signs: tuple[int, ...]  # (K,) 1 if as fitted, -1 if flipped
    names: tuple[str, ...]  # (K,) empty if unnamed

    @property
    def key(self) -> str:
        """The cache key of the numbering; empty if the run is shown as fitted."""
        as_fitted = self.order == tuple(range(len(self.order))) and -1 not in self.signs
        return "" if as_fitted and not any(self.names) else digest_of([*map(list, self)])


class _Stored(NamedTuple):
    """The stored numbering of a run, in the order of the estimator."""

    numbers: tuple[int, ...]  # (K,) distinct numbers of directions in the registry
    signs: tuple[int, ...]  # (K,) signs before the registry's flips
    names: tuple[str, ...]  # (K,) names in this run only
    places: tuple[int, ...]  # (K,) numbers on screen: 1 to K


class _Registry(NamedTuple):
    """The directions shown so far for a data set and model."""

    numbers: np.ndarray  # (M,) int64
    directions: np.ndarray  # (M, D) float32, unit length in scaled units, as first shown
    turned: np.ndarray  # (M,) bool; True if a user flipped the direction
    names: np.ndarray  # (M,) str

    def followed_by(self, numbers: np.ndarray, directions: np.ndarray) -> "_Registry":
        n = len(numbers)
        new = (numbers, directions.astype(np.float32), np.zeros(n, bool), np.zeros(n, _NAMES))
        return _Registry(*(np.concatenate(both) for both in zip(self, new, strict=True)))


class ComponentNumbers:
    """The registries of a home, below ``<home>/numbers/``."""

    def __init__(self, home: Path) -> None:
        self._folder = Path(home) / "numbers"

    def of_run(self, run: Run, screen: np.ndarray | None = None) -> Numbering:
        """Return the numbering of a stored run; assign it if the run was never shown before.

        `screen` (K', D) contains the `directions` of the fit on screen, if any. If the numbering
        cannot be stored, it is assigned again next time.
        """
        stored = _stored(run)
        registry = self._read(run.config, len(run.fitted.preprocessing.offset))
        if stored is None or not set(stored.numbers) <= set(registry.numbers.tolist()):
            with self._held(run.config):  # another window may have assigned it since
                stored, registry = self._decided(run, screen)
        return _as_shown(stored, registry)

    def expected(
        self, config: RunConfig, fitted: FittedModel, screen: np.ndarray | None = None
    ) -> Numbering:
        """Return the numbering that a fit would get as a stored run."""
        rows = directions(fitted)
        registry = self._read(config, rows.shape[1])
        return _as_shown(*_matched(rows, fitted.explained_variance, registry, screen))

    def adopt(self, run: Run, numbering: Numbering) -> None:
        """Store the original numbering of an imported run, unless this home has a numbering for it.

        Raises InputError if writing fails.
        """
        if _stored(run) is not None or (run.path / LABELS).exists():
            return
        rows = np.argsort(numbering.order).tolist()
        names, signs = (tuple(values[j] for j in rows) for values in numbering[:0:-1])
        if any(names) or -1 in signs:
            put(run, Labels(names, signs))
        with storing(f"The names of fit {run.id}", self._folder), self._held(run.config):
            stored, registry = self._decided(run, None, Labels(names, signs))
            turned = np.isin(stored.numbers, registry.numbers[registry.turned])
            before = np.where(turned, -1, 1) * signs
            places = tuple(row + 1 for row in rows)
            _store(run, stored._replace(signs=tuple(before.tolist()), places=places))

    def rename(self, run: Run, component: int, name: str) -> Numbering:
        """Name a component in all runs that have it, or unname it; InputError if writing fails."""
        return self._change(run, component, name=" ".join(name.split())[:NAME_LENGTH])

    def flip(self, run: Run, component: int) -> Numbering:
        """Flip a component and its scores in all runs that have it; InputError if writing fails."""
        return self._change(run, component)

    def _change(self, run: Run, component: int, name: str | None = None) -> Numbering:
        run = changeable(run, self._folder.parent / "runs")
        with storing(f"The names of fit {run.id}", self._folder), self._held(run.config):
            stored, registry = self._decided(run, None)
            row = stored.places.index(component + 1)
            place = registry.numbers.tolist().index(stored.numbers[row])
            if name is None:
                registry.turned[place] ^= True
            else:
                registry.names[place] = name
                names = (*stored.names[:row], "", *stored.names[row + 1 :])
                stored = stored._replace(names=names)
                _store(run, stored)
            self._write(run.config, registry)
        shown = _as_shown(stored, registry)
        rows = np.argsort(shown.order)
        names, signs = (tuple(values[row] for row in rows) for values in (shown.names, shown.signs))
        put(run, Labels(names, signs))  # stores the run permanently
        return shown

    def _decided(
        self, run: Run, screen: np.ndarray | None, came: Labels | None = None
    ) -> tuple[_Stored, _Registry]:
        """Return the stored numbering of a run, or a new one, and the registry."""
        stored, rows = _stored(run), directions(run.fitted)
        registry = self._read(run.config, rows.shape[1])
        old = registry.numbers.tolist()
        if stored is not None:
            lost = [k for k, number in enumerate(stored.numbers) if number not in old]
            if not lost:
                return stored, registry
            signs, numbers = np.array(stored.signs)[lost, None], np.array(stored.numbers)[lost]
            registry = registry.followed_by(numbers, rows[lost] * signs)
        else:
            stored, registry = _matched(rows, run.fitted.explained_variance, registry, screen)
            every, texts, kept = registry.numbers.tolist(), registry.names, []
            for number, name, sign in zip(stored.numbers, *(came or labels(run)), strict=True):
                place = every.index(number)
                texts[place] = texts[place] or ("" if run.config.imported is not None else name)
                registry.turned[place] |= number not in old and sign == -1
                kept.append(name if texts[place] != name else "")
            stored = stored._replace(names=tuple(kept))
        with suppress(OSError):
            self._write(run.config, registry)
        with suppress(OSError):
            _store(run, stored)
        return stored, registry

    def _write(self, config: RunConfig, registry: _Registry) -> None:
        write_numbered(self._file(config), registry._asdict(), "The numbers of components")

    def _read(self, config: RunConfig, n_features: int) -> _Registry:
        arrays = or_none(lambda: read_numbered(self._file(config), "The numbers of components"))
        if arrays is not None and set(_Registry._fields) <= set(arrays):
            registry = _Registry(*(arrays[name] for name in _Registry._fields))
            if registry.directions.shape == (len(registry.numbers), n_features):
                return registry._replace(names=registry.names.astype(_NAMES))
        return _nothing(n_features)

    def _file(self, config: RunConfig) -> Path:
        whole = or_none(lambda: DatasetStore(self._folder.parent).summary(config.dataset).whole)
        separate, common = (
            self._folder / digest_of({"dataset": of, "model": config.model}) / "registry.npz"
            for of in (config.dataset, whole or config.dataset)
        )
        return separate if separate.exists() else common

    def _held(self, config: RunConfig) -> AbstractContextManager[None]:
        folder = self._file(config).parent
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        return lock.held(folder)


@lru_cache(maxsize=4)
def numbered(fitted: FittedRun, numbering: Numbering) -> FittedRun:
    """Return a run as shown: component j at index j, flipped if needed, with its name."""
    return fitted.arranged(*numbering)


def numbered_after(fitted: FittedRun, before: FittedRun | None) -> FittedRun:
    """Return a run numbered and signed as similar components in `before`, else by variance."""
    rows, screen = directions(fitted), None if before is None else directions(before)
    matched = _matched(rows, fitted.explained_variance, _nothing(rows.shape[1]), screen)
    return numbered(fitted, _as_shown(*matched))


def directions(fitted: FittedModel) -> np.ndarray:
    """Return the components (K, D) in units of scaled features, scaled to unit length."""
    rows = patterns(fitted, None).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1.0))


def likeness(rows: np.ndarray, screen: np.ndarray | None) -> dict[int, tuple[int, int]]:
    """Map directions (K, D) to matching ones on screen (K', D): index to (index, sign)."""
    if screen is None or screen.shape[1] != rows.shape[1]:
        return {}
    cosine = rows @ screen.T
    return {
        int(k): (int(there), -1 if cosine[k, there] < 0 else 1)
        for k, there in zip(*_pairs(np.abs(cosine)), strict=True)
    }


def _matched(
    rows: np.ndarray, power: np.ndarray, registry: _Registry, screen: np.ndarray | None
) -> tuple[_Stored, _Registry]:
    """Assign numbers to directions (K, D) with explained variance (K,); register new ones."""
    K, cosine = len(rows), rows @ registry.directions.T
    ours, theirs = _pairs(np.abs(cosine))
    on_screen = likeness(rows, screen)
    signs = np.array([on_screen.get(k, (0, 1))[1] for k in range(K)], np.int64)
    signs[ours] = np.where(cosine[ours, theirs] < 0, -1, 1)
    numbers = np.zeros(K, np.int64)
    numbers[ours] = registry.numbers[theirs]
    new = np.flatnonzero(numbers == 0)
    numbers[new] = registry.numbers.max(initial=0) + 1 + np.arange(len(new))
    # matched components keep their numbers; the others get free numbers
    there = {k: place for k, (place, _) in on_screen.items()}
    placed = {k: place for k, place in there.items() if place < K}
    falling = np.argsort(-power, kind="stable").tolist()
    rest = sorted((k for k in falling if k not in placed), key=lambda k: there.get(k, np.inf))
    placed |= dict(zip(rest, sorted(set(range(K)) - set(placed.values())), strict=True))
    registry = registry.followed_by(numbers[new], rows[new] * signs[new, None])
    places = tuple(int(placed[k]) + 1 for k in range(K))
    return _Stored(tuple(numbers.tolist()), tuple(signs.tolist()), ("",) * K, places), registry


def _pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Match rows to columns with the largest total; drop values below `ROUGHLY`."""
    from scipy.optimize import linear_sum_assignment

    worth = np.where(values >= ROUGHLY, values, -1.0)
    rows, theirs = linear_sum_assignment(-worth)
    alike = worth[rows, theirs] >= 0
    return rows[alike], theirs[alike]


def _nothing(n_features: int) -> _Registry:
    none = np.empty(0, np.int64)
    return _Registry(none, np.empty((0, n_features)), none.astype(bool), none.astype(str))


def _as_shown(stored: _Stored, registry: _Registry) -> Numbering:
    turned = set(registry.numbers[registry.turned].tolist())
    all_names = dict(zip(registry.numbers.tolist(), registry.names.tolist(), strict=True))
    shown = sorted(zip(stored.places, range(len(stored.places)), *stored[:3], strict=True))
    return Numbering(
        order=tuple(row for _, row, *_ in shown),
        signs=tuple(-sign if n in turned else sign for _, _, n, sign, _ in shown),
        names=tuple(name or all_names.get(n, "") for _, _, n, _, name in shown),
    )


def _stored(run: Run) -> _Stored | None:
    """Return the stored numbering of a run; None if it is missing or damaged."""
    try:
        kept = read_json(run.path / FILE, f"The numbers of fit {run.id}")
        numbers, places = (tuple(map(int, kept[name])) for name in ("numbers", "places"))
        signs = tuple(-1 if sign == -1 else 1 for sign in kept["signs"])
        names = tuple(str(name)[:NAME_LENGTH] for name in kept["names"])
    except Exception:  # parsers raise many kinds of exceptions
        return None
    K = len(run.fitted.components)
    whole = len(set(numbers)) == len(signs) == len(names) == K and min(numbers, default=1) > 0
    whole &= sorted(places) == list(range(1, K + 1))
    return _Stored(numbers, signs, names, places) if whole else None


def _store(run: Run, stored: _Stored) -> None:
    if not run.is_shared:
        with lock.held(run.path):
            write_json(run.path / FILE, stored._asdict(), f"The numbers of fit {run.id}")
