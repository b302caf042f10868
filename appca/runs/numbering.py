"""Numbers of components that stay: one registry a data set and model, kept in the home.

When a run is first shown, its components are matched (Hungarian) to those that the registry knows:
at |cos| `ROUGHLY` or more a component keeps number, sign and name, whatever K, L, seed or settings
the run has; a new one gets the least number that is free. What was decided is stored with the run,
so that every window, export and script gives the same. The registry never changes the direction
that it knows a number by: K = 6, 7, 6 leads back to the numbers of the first 6. Numbers that only a
preview has shown go to its fit, at any |cos|, so that the picture keeps its places.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from appca.analysis.components.alignment import ROUGHLY
from appca.analysis.fitted import FittedModel, FittedRun
from appca.runs.configuration import RunConfig
from appca.runs.labels import NAME_LENGTH, labels
from appca.runs.store import Run
from appca.storage import lock, rights
from appca.storage.files import read_json, read_numbered, write_json, write_numbered
from appca.storage.formats import or_none
from appca.storage.identity import digest_of
from appca.storage.refusal import storing

FILE = "numbers.json"  # in the folder of a run
PREVIEWS = 8  # whose components keep the numbers they were shown with until they are fitted
_STORED = ""  # instead of the id of a preview


class Numbering(NamedTuple):
    """How people see the components of a run, in the order of the run."""

    numbers: tuple[int, ...]  # (K,) from 1, all different
    signs: tuple[int, ...]  # (K,) 1 as fitted, -1 turned round
    names: tuple[str, ...]  # (K,) empty where nobody gave one

    @property
    def key(self) -> str:
        """Name the numbering in a cache; empty where components are counted and nothing else."""
        counted = (tuple(range(1, len(self.numbers) + 1)), (1,) * len(self.numbers))
        plain = self[:2] == counted and not any(self.names)
        return "" if plain else digest_of([*map(list, self)])


class _Known(NamedTuple):
    """The components that a registry knows."""

    numbers: np.ndarray  # (M,) int64
    directions: np.ndarray  # (M, D) float32, of length one in data units, as first seen
    turned: np.ndarray  # (M,) bool: a person turned it round since
    names: np.ndarray  # (M,) str
    preview: np.ndarray  # (M,) str: id of the settings whose preview it is from, or _STORED

    def place_of(self, number: int) -> int | None:
        """Return where a number stands, None where it does not."""
        found = np.flatnonzero(self.numbers == number)
        return int(found[0]) if len(found) else None

    def some(self, places: np.ndarray) -> "_Known":
        """Return some of them."""
        return _Known(*(one[places] for one in self))

    def followed_by(self, others: "_Known") -> "_Known":
        """Return these and others."""
        return _Known(*(np.concatenate(two) for two in zip(self, others, strict=True)))


class ComponentNumbers:
    """The registries of a home, below ``<home>/numbers/``."""

    def __init__(self, home: Path) -> None:
        self._folder = Path(home) / "numbers"

    def of_run(self, run: Run) -> Numbering:
        """Return the numbering of a stored run, decided now if it was never shown before.

        On a disk that refuses, it is decided anew the next time.
        """
        stored, known = _stored(run), self._read(run.config, len(run.fitted.preprocessing.offset))
        if stored is None or not set(stored.numbers) <= set(known.numbers.tolist()):
            with self._held(run.config):  # another window may just have decided
                stored, known = self._decided(run)
        return _as_shown(stored, known)

    def of_preview(self, config: RunConfig, fitted: FittedModel) -> Numbering:
        """Return the numbering of a preview, which the fit of the same settings will continue."""
        with self._held(config):
            found = _directions(fitted)
            known = _without_old_previews(self._read(config, found.shape[1]))
            numbering, known, changed = _matched(found, known, config.id)
            if changed:
                self._keep(config, known)
        return _as_shown(numbering, known)

    def expected(self, config: RunConfig, fitted: FittedModel) -> Numbering:
        """Return the numbering that a fit would get as a run; nothing is decided by looking."""
        found = _directions(fitted)
        known = self._read(config, found.shape[1])
        return _as_shown(_matched(found, known, config.id, final=True)[0], known)

    def rename(self, run: Run, component: int, name: str) -> Numbering:
        """Name a component, counted from 0, in all runs that have it; an empty name is none.

        Raises InputError when the disk refuses.
        """
        return self._change(run, component, name=" ".join(name.split())[:NAME_LENGTH])

    def flip(self, run: Run, component: int) -> Numbering:
        """Turn a component, counted from 0, and its scores round in all runs that have it.

        Raises InputError when the disk refuses.
        """
        return self._change(run, component)

    def _change(self, run: Run, component: int, name: str | None = None) -> Numbering:
        with storing(f"The names of fit {run.id}", self._folder), self._held(run.config):
            stored, known = self._decided(run)
            place = known.place_of(stored.numbers[component])
            if place is None:  # the registry could not be written to
                return _as_shown(stored, known)
            if name is None:
                known.turned[place] ^= True
            else:
                texts = known.names.tolist()
                texts[place] = name
                known = known._replace(names=np.array(texts, dtype=str))
                own = list(stored.names)
                own[component] = ""
                stored = stored._replace(names=tuple(own))
                _store(run, stored)
            self._write(run.config, known)
        return _as_shown(stored, known)

    def _decided(self, run: Run) -> tuple[Numbering, _Known]:
        """Return what is stored of a run, without what the registry says, and the registry."""
        stored, found = _stored(run), _directions(run.fitted)
        known = self._read(run.config, found.shape[1])
        if stored is not None:  # the registry was lost: the run still knows
            lost = [k for k, n in enumerate(stored.numbers) if known.place_of(n) is None]
            if lost:
                signs = np.array(stored.signs)[lost, None]
                numbers = np.array(stored.numbers)[lost]
                known = known.followed_by(_entries(numbers, found[lost] * signs, _STORED))
                self._keep(run.config, known)
            return stored, known
        old = set(known.numbers[known.preview == _STORED].tolist())
        decided, known, _ = _matched(found, known, run.config.id, final=True)
        mine = known.preview != run.config.id  # its fit has taken what it needs of its preview
        decided, known = _with_given(decided, known.some(np.flatnonzero(mine)), run, old)
        self._keep(run.config, known)
        with suppress(OSError):
            _store(run, decided)
        return decided, known

    def _keep(self, config: RunConfig, known: _Known) -> None:
        with suppress(OSError):
            self._write(config, known)

    def _write(self, config: RunConfig, known: _Known) -> None:
        write_numbered(self._file(config), known._asdict(), "The numbers of components")

    def _read(self, config: RunConfig, n_features: int) -> _Known:
        file = self._file(config)
        found = or_none(lambda: _Known(**read_numbered(file, "The numbers of components")))
        if found is not None and found.directions.shape == (len(found.numbers), n_features):
            return found
        return _entries(np.empty(0, np.int64), np.empty((0, n_features)), _STORED)

    def _file(self, config: RunConfig) -> Path:
        name = digest_of({"dataset": config.dataset, "model": config.model})
        return self._folder / name / "registry.npz"

    @contextmanager
    def _held(self, config: RunConfig) -> Iterator[None]:
        folder = self._file(config).parent
        with suppress(OSError):
            rights.make_folder(folder)
        with lock.held(folder):
            yield


def numbered(fitted: FittedRun, numbering: Numbering) -> FittedRun:
    """Return a run as people see it: components and scores turned, with names and numbers.

    The draws of a sampled run stay as they are: they are brought to the components' signs wherever
    they are shown.
    """
    found = replace(fitted, **numbering._asdict())
    if -1 not in numbering.signs:
        return found
    signs = np.array(numbering.signs, dtype=np.float32)
    turned = fitted.components * signs[:, None]
    return replace(found, components=turned, scores=fitted.scores * signs)


def numbered_after(fitted: FittedRun, before: FittedRun | None) -> FittedRun:
    """Return a run whose components keep the numbers and signs of those they are like in another.

    Without another they are counted from 1.
    """
    found = _directions(fitted)
    old = np.empty((0, found.shape[1])) if before is None else _directions(before)
    numbers = np.array([] if before is None else before.numbers, np.int64)
    decided, _, _ = _matched(found, _entries(numbers, old, _STORED), "another")
    return numbered(fitted, decided)


def _matched(
    found: np.ndarray, known: _Known, config: str, *, final: bool = False
) -> tuple[Numbering, _Known, bool]:
    """Match the directions (K, D) of a preview, or of the `final` fit, to those that are known.

    Returns
    -------
    The numbering, what is known now, and whether that has changed.
    """
    cosine = found @ known.directions.T
    own, theirs = _pairs(np.abs(cosine), ROUGHLY)
    if final:
        rest = np.setdiff1d(np.arange(len(found)), own)
        shown = np.setdiff1d(np.flatnonzero(known.preview == config), theirs)
        more, others = _pairs(np.abs(cosine[np.ix_(rest, shown)]), 0.0)
        own, theirs = np.append(own, rest[more]), np.append(theirs, shown[others])
    numbers, signs = np.zeros(len(found), np.int64), np.ones(len(found), np.int64)
    numbers[own] = known.numbers[theirs]
    signs[own] = np.where(cosine[own, theirs] < 0, -1, 1)
    begun = (known.preview[theirs] != _STORED) & (final | (known.preview[theirs] != config))
    source = _STORED if final else config
    previews = known.preview.tolist()
    for place in theirs[begun].tolist():  # from now on it belongs to what shows it last
        previews[place] = source
    if final:
        known.directions[theirs[begun]] = (found * signs[:, None])[own[begun]]
    new = np.flatnonzero(numbers == 0)
    taken = set(known.numbers.tolist())
    free = (number for number in count(1) if number not in taken)
    numbers[new] = list(islice(free, len(new)))
    known = known._replace(preview=np.array(previews, dtype=str))
    known = known.some(np.argsort(known.preview == config, kind="stable"))  # the newest last
    known = known.followed_by(_entries(numbers[new], found[new], source))
    numbering = Numbering(tuple(numbers.tolist()), tuple(signs.tolist()), ("",) * len(found))
    return numbering, known, bool(len(new) or begun.any())


def _pairs(likeness: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return which go together so that they are most alike, at least so much."""
    from scipy.optimize import linear_sum_assignment

    worth = np.where(likeness >= least, likeness, -1.0)
    own, theirs = linear_sum_assignment(-worth)
    alike = worth[own, theirs] >= 0
    return own[alike], theirs[alike]


def _entries(numbers: np.ndarray, directions: np.ndarray, source: str) -> _Known:
    n = len(numbers)
    names, sources = np.array([""] * n, dtype=str), np.array([source] * n, dtype=str)
    return _Known(numbers, directions.astype(np.float32), np.zeros(n, bool), names, sources)


def _with_given(
    decided: Numbering, known: _Known, run: Run, old: set[int]
) -> tuple[Numbering, _Known]:
    """Take over the names and signs that a person gave a run before there were registries.

    A new component gets both; one that was known gets the name if it has none. A name that clashes
    stays with its run alone, as do all that came in a file.
    """
    given, names, own = labels(run), known.names.tolist(), []
    foreign = run.config.imported is not None
    for number, name, sign in zip(decided.numbers, *given, strict=True):
        place = known.place_of(number)
        assert place is not None  # all that were decided are known
        names[place] = names[place] or ("" if foreign else name)
        known.turned[place] |= number not in old and sign == -1
        own.append(name if names[place] != name else "")
    known = known._replace(names=np.array(names, dtype=str))
    return decided._replace(names=tuple(own)), known


def _as_shown(stored: Numbering, known: _Known) -> Numbering:
    """Add what the registry says now to what is stored of a run."""
    places = [known.place_of(number) for number in stored.numbers]
    turned = [place is not None and bool(known.turned[place]) for place in places]
    signs = (-s if turn else s for s, turn in zip(stored.signs, turned, strict=True))
    names = (
        own or ("" if place is None else str(known.names[place]))
        for own, place in zip(stored.names, places, strict=True)
    )
    return Numbering(stored.numbers, tuple(signs), tuple(names))


def _without_old_previews(known: _Known) -> _Known:
    """Forget the components of all previews but the last few."""
    sources = list(dict.fromkeys(one for one in known.preview.tolist() if one != _STORED))
    old = sources[: max(0, len(sources) - PREVIEWS + 1)]
    return known.some(np.flatnonzero(~np.isin(known.preview, old)))


def _directions(fitted: FittedModel) -> np.ndarray:
    """Return the components (K, D) in data units, at length one."""
    in_data = fitted.preprocessing.directions(fitted.components.T.astype(np.float64)).T
    lengths = np.linalg.norm(in_data, axis=1, keepdims=True)
    return np.asarray(in_data / np.where(lengths > 0, lengths, 1.0))


def _stored(run: Run) -> Numbering | None:
    """Return the numbering in a run's folder; None where there is none, or a damaged one."""
    try:
        kept = read_json(run.path / FILE, f"The numbers of fit {run.id}", "numbers")
        numbers = tuple(int(number) for number in kept["numbers"])
        signs = tuple(-1 if sign == -1 else 1 for sign in kept["signs"])
        names = tuple(str(name)[:NAME_LENGTH] for name in kept["names"])
    except Exception:  # a damaged file fails in as many ways as there are types
        return None
    whole = len(set(numbers)) == len(signs) == len(names) == len(run.fitted.components)
    return Numbering(numbers, signs, names) if whole and min(numbers, default=1) > 0 else None


def _store(run: Run, numbering: Numbering) -> None:
    with lock.held(run.path):
        write_json(run.path / FILE, numbering._asdict(), f"The numbers of fit {run.id}")
