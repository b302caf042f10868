"""Comparing all files of a home with their checksums, whatever their contents mean."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from appca.storage.digests import check_file, check_sealed, lines_in
from appca.storage.files import read_json
from appca.storage.formats import FILES
from appca.words.refusal import reason

JOURNAL = "records.txt"
# folder of a home -> files that every folder in it has
_NEEDED: dict[str, tuple[str, ...]] = {
    "datasets": ("meta.json",),
    "runs": ("config.json",),
    "studies": ("config.json",),
    **dict.fromkeys(("grids", "stability", "masked", "models"), ("config.json", JOURNAL)),
    **dict.fromkeys(("selections", "embeddings", "projections", "quality", "numbers"), ()),
}
FOLDERS = (*_NEEDED, "jobs", "uploads")


class StoredFinding(NamedTuple):
    """A file that is not as it was stored."""

    file: Path
    why: str


def findings(home: Path) -> Iterator[StoredFinding]:
    """Yield the damaged and missing files of a home; hidden files are not checked."""
    for name, needed in _NEEDED.items():
        for folder in _folders(home / name):
            must = needed if folder.parent == home / name else ()
            damages = list(_in_folder(folder, must))
            if damages and folder.is_dir():  # a file may have been replaced meanwhile: look again
                yield from _in_folder(folder, must)


def _folders(top: Path) -> Iterator[Path]:
    """Yield a folder and those in it; none where there is none."""
    with suppress(OSError):
        inside = sorted(path for path in top.iterdir() if not path.name.startswith("."))
        yield top
        for path in inside:
            if path.is_dir() and not path.is_symlink():
                yield from _folders(path)


def _in_folder(folder: Path, needed: tuple[str, ...]) -> Iterator[StoredFinding]:
    entries = (path for path in folder.iterdir() if not path.name.startswith("."))
    files = {path.name: path for path in sorted(entries) if path.is_file()}
    listed: dict[str, str] = {}
    for name in needed:
        if name not in files:
            yield StoredFinding(folder / name, f"{name} is missing")
    is_described = set(needed[:1]) <= set(files)
    for file in files.values():
        try:
            if file.suffix == ".json":
                listed |= _listed(file)
        except Exception as error:  # a damaged file fails in as many ways as its parsers can
            yield StoredFinding(file, reason(error))
            is_described &= file.name not in needed
    others = [name for name in files if name not in listed] if is_described else []
    for name in (*listed, *others):
        try:
            _check(folder / name, listed.get(name))
        except Exception as error:  # as above
            yield StoredFinding(folder / name, reason(error))


def _listed(file: Path) -> dict[str, str]:
    """Return the digests that a description lists, which must be of files beside it."""
    listed = read_json(file, file.name).get(FILES, {})
    if not isinstance(listed, dict) or any(Path(name).name != name for name in listed):
        msg = "it lists other files than its own"
        raise ValueError(msg)
    return listed


def _check(file: Path, digest: str | None) -> None:
    """Raise an exception for a file that differs from its checksums."""
    if digest is not None:
        check_file(file, digest)
    elif file.suffix == ".npz":
        check_sealed(file)
    elif file.name == JOURNAL:
        lines, n_damaged = lines_in(file.read_bytes())
        if n_damaged or not lines:
            why = f"has damaged lines ({n_damaged})" if n_damaged else "is empty"
            msg = f"{file.name} {why}"
            raise ValueError(msg)
