"""``appca check``: whether all that is stored is as it was written, and what would mend it."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.sources.builtin import SOURCES
from appca.data.store import DatasetStore
from appca.runs import home as homes
from appca.runs import labels
from appca.runs.check import StoredFinding, findings, give_digests
from appca.runs.configuration import RunConfig
from appca.runs.store import remedy, title
from appca.storage.errors import InputError
from appca.storage.files import read_arrays
from appca.storage.packed import as_object
from appca.storage.wording import counted, shortened
from appca.studies.catalogue import STUDIES

EXAMPLES = (
    "python -m appca check",
    "python -m appca check --json",
    "python -m appca check --seal",
)
DAMAGED = 1  # exit code
_MADE_AGAIN = "delete the file; it is made again when it is needed"
_GOES_ON = "start it again on the page {}: what is left is kept, the rest is computed anew"


class Line(NamedTuple):
    """What a person is told of one file."""

    what: str
    file: str
    problem: str
    remedy: str
    damaged: bool


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "check that everything stored is as it was written"
    parser = parsing.command(commands, "check", text, EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument(
        "--home",
        type=Path,
        help="the folder to check (default: APPCA_HOME, else the user's own)",
    )
    parser.add_argument(
        "--seal",
        action="store_true",
        help="give digests to what was stored before there were any (default: no)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Say what is damaged and what would mend it; the exit code tells whether anything is."""
    home = options.home or homes.home()
    if not home.is_dir():
        msg = f"There is no folder “{home}” to check; name one that appca has written to."
        raise InputError(msg)
    if options.seal:
        _seal(home)
    lines = list(checked(home))
    damaged = [line for line in lines if line.damaged]
    options.code = DAMAGED if damaged else 0
    for line in damaged:
        say(f"{line.what}: {line.problem} ({line.file}); {line.remedy}")
    before = len(lines) - len(damaged)
    if before:
        say(f"{counted(before, 'file')} stored before there were digests; --seal adds them")
    say(f"{counted(len(damaged), 'damaged file')} in {home}" if damaged else f"{home} is sound")
    return {"home": str(home), "sound": not damaged, "files": [line._asdict() for line in lines]}


def checked(home: Path) -> Iterator[Line]:
    """Yield what is damaged, and what was stored without digests."""
    for found in findings(home):
        finding = _by_content(found, home)
        what, remedy = _words(finding.file, home)
        file = finding.file.relative_to(home).as_posix()
        remedy = remedy if finding.damaged else "python -m appca check --seal"
        yield Line(what, file, finding.why, remedy, finding.damaged)


def _by_content(finding: StoredFinding, home: Path) -> StoredFinding:
    """Check a data set without digests by its own, which is its name."""
    if finding.damaged or finding.file.name != "meta.json":
        return finding
    try:
        DatasetStore(home).get(finding.file.parent.name)
    except InputError as error:
        return finding._replace(why=str(error.__cause__ or error), damaged=True)
    return finding


def _seal(home: Path) -> None:
    for found in list(findings(home)):
        if not _by_content(found, home).damaged:
            give_digests(found, home)


def _words(file: Path, home: Path) -> tuple[str, str]:
    """Say in a person's words what a file is part of, and what would mend it."""
    kind, *below = file.relative_to(home).parts
    name = below[0].removesuffix(".json").removesuffix(".npz")
    if kind == "datasets":
        return _dataset(home / kind / name)
    if kind == "runs":
        return _run(home / kind / name, file)
    if kind == "selections":
        return _selection(file), "delete the file, then select the rows and save them again"
    if kind == "studies":
        study = STUDIES.get(str(_facts(file.parent / "config.json").get("study")))
        what = f"experiment “{study.title}”" if study else f"experiment {name}"
        return what, "run it again on the page Paper"
    what, remedy = {
        "grids": ("choice of K and L", _GOES_ON.format("Choose K and L")),
        "stability": ("stability of components", _GOES_ON.format("Choose K and L")),
        "masked": ("fit to masked cells", _GOES_ON.format("Fit")),
        "quality": ("comparison of methods", "delete the file and compare again"),
        "embeddings": ("map", _MADE_AGAIN),
        "projections": ("new rows", _MADE_AGAIN),
        "autoencoders": ("autoencoder", _MADE_AGAIN),
        "jobs": ("record of the job", "delete its folder; nothing else needs it"),
    }[kind]
    return f"{what} {name}", remedy


def _dataset(folder: Path) -> tuple[str, str]:
    meta = _facts(folder / "meta.json")
    name = f"“{shortened(meta['name'])}”" if "name" in meta else folder.name[:12]
    about = meta.get("provenance")
    source = SOURCES.get(str(about.get("source"))) if isinstance(about, dict) else None
    again = f"open {source.title} again" if source else "open its file again"
    return f"data set {name}", f"{again} on the page Data"


def _run(folder: Path, file: Path) -> tuple[str, str]:
    meta = _facts(folder / "config.json")
    given = f" “{shortened(meta['name'])}”" if meta.get("name") else ""
    if file.name == labels.FILE:
        what = f"names of the components of run {folder.name}{given}"
        return what, "delete the file, then name the components again"
    try:
        config = RunConfig.from_record(meta["config"])
        again = f"{remedy(config)}: {title(config)}"
    except Exception:  # what is damaged fails in as many ways as its parsers can
        again = "fit it again"
    return f"run {folder.name}{given}", again


def _selection(file: Path) -> str:
    try:
        return f"selection “{shortened(read_arrays(file)['name'])}”"
    except Exception:  # as above
        return f"a selection of the data set {file.parent.name[:12]}"


def _facts(file: Path) -> dict[str, Any]:
    """Return what can still be read of a damaged description."""
    try:
        return as_object(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
