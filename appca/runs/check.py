"""Looking through a home for what was damaged, block by block, whatever its files mean.

What format 1 stored has no digests: of it only what cannot be read is known to be damaged.
"""

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from appca.storage import digests
from appca.storage.files import marks, number_of, read_json
from appca.storage.formats import FILES, TooNew
from appca.words.refusal import reason

JOURNAL = "records.txt"
# folder of a home -> the description that every folder in it has, and its kind in `formats.STEPS`
_DESCRIBED = {
    "datasets": ("meta.json", "data set"),
    "runs": ("config.json", "run"),
    "studies": ("config.json", "study"),
    "grids": ("config.json", "journal"),
    "stability": ("config.json", "journal"),
    "masked": ("config.json", "journal"),
    "models": ("config.json", "journal"),
    "jobs": ("job.json", "job"),
}
_SINGLE = ("selections", "embeddings", "projections", "quality", "numbers")
_BESIDE = {"journal": (JOURNAL,), "job": ("status.json",)}  # kind -> files beside a description
FOLDERS = (*_DESCRIBED, *_SINGLE, "uploads")


class StoredFinding(NamedTuple):
    """A file that is not as it was stored."""

    file: Path
    why: str


def findings(home: Path) -> Iterator[StoredFinding]:
    """Look at all that is stored in a home.

    Files that are hidden or of another kind are not appca's; drafts and signs of life are hidden.
    """
    for name in (*_DESCRIBED, *_SINGLE):
        for folder in _folders(home / name):
            in_home = folder.parent.name if folder.parent.parent == home else ""
            kind = _DESCRIBED.get(in_home, ("", ""))
            damages = list(_in_folder(folder, *kind))
            if damages:  # or somebody wrote to it just now: look again
                damages = list(_in_folder(folder, *kind)) if folder.is_dir() else []
            yield from damages


def _folders(top: Path) -> Iterator[Path]:
    """Yield a folder and those in it; none where there is none."""
    with suppress(OSError):
        inside = sorted(path for path in top.iterdir() if not path.name.startswith("."))
        yield top
        for path in inside:
            if path.is_dir() and not path.is_symlink():
                yield from _folders(path)


def _files(folder: Path) -> list[Path]:
    paths = (path for path in folder.iterdir() if not path.name.startswith("."))
    return sorted(path for path in paths if path.is_file())


def _in_folder(folder: Path, description: str, kind: str) -> Iterator[StoredFinding]:
    """Look at the files of one folder: at descriptions first, which say what others must be."""
    if description and not (folder / description).is_file():
        yield StoredFinding(folder / description, f"{description} is missing")
        return
    entries, seen = _files(folder), set[str]()
    for file in (entry for entry in entries if entry.suffix == ".json"):
        try:
            facts = read_json(file, file.name, kind if file.name == description else "")
        except TooNew as error:
            yield StoredFinding(file, str(error))
            return
        except Exception as error:  # a damaged file fails in as many ways as its parsers can
            yield StoredFinding(file, reason(error))
            if file.name == description:
                return  # nothing is known of the others
            continue
        yield from _of_description(file, facts, seen)
        by_itself = facts.get("ended") and FILES not in facts  # a job's digests stood beside, once
        is_sealed = by_itself and digests.is_sealed(file, file.read_bytes())
        yield from _lost(folder, ["sealed.json"] if is_sealed else [])
    yield from _lost(folder, [*_BESIDE.get(kind, ()), *marks(folder)])
    for file in entries:
        if file.name not in seen and file.suffix in {".npz", ".txt"}:
            yield from _alone(file)


def _lost(folder: Path, needed: Iterable[str]) -> Iterator[StoredFinding]:
    for name in needed:
        if not (folder / name).is_file():
            yield StoredFinding(folder / name, f"{name} is missing")


def _of_description(file: Path, facts: dict[str, Any], seen: set[str]) -> Iterator[StoredFinding]:
    """Look at the files that a description lists, and note what needs no other look."""
    listed = facts.get(FILES)
    if listed is None:
        return
    if not isinstance(listed, dict) or any(Path(name).name != name for name in listed):
        seen.update(path.name for path in _files(file.parent))  # nothing is known of them
        yield StoredFinding(file, "it lists other files than its own")
        return
    for name, blocks in listed.items():
        seen.add(name)
        try:
            digests.check_file(file.parent / name, blocks, anew=True)
        except Exception as error:
            yield StoredFinding(file.parent / name, reason(error))


def _alone(file: Path) -> Iterator[StoredFinding]:
    """Look at a file that no description lists."""
    try:
        if file.name == JOURNAL:
            lines, n_damaged = digests.lines_in(file.read_bytes())
            if n_damaged or not lines:
                why = f"has damaged lines ({n_damaged})" if n_damaged else "is empty"
                yield StoredFinding(file, f"{file.name} {why}")
        elif file.suffix == ".npz" and not digests.is_sealed_zip(file):
            with zipfile.ZipFile(file) as archive:
                if archive.testzip() is not None or number_of(file) > 1:
                    raise digests.Damaged(file)
    except Exception as error:
        yield StoredFinding(file, reason(error))
