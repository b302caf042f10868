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
from appca.runs.check import StoredFinding, findings
from appca.runs.configuration import RunConfig
from appca.runs.store import remedy, title
from appca.storage.files import marks, read_arrays
from appca.storage.packed import as_object
from appca.studies.catalogue import STUDIES
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

EXAMPLES = ("python -m appca check", "python -m appca check --json")
DAMAGED = 1  # exit code
_MADE_AGAIN = "delete the file; it is computed again when needed"
_GOES_ON = "start it again on the page {}; only the damaged part is computed again"


class Line(NamedTuple):
    """What a person is told of one file."""

    what: str
    file: str
    problem: str
    remedy: str


def add(commands: parsing.Commands) -> None:
    """Add the command."""
    text = "verify the checksums of everything stored"
    parser = parsing.command(commands, "check", text, EXAMPLES, run)
    parser.add_argument(
        "--home",
        type=Path,
        help="the folder to check (default: APPCA_HOME, or the user's data folder)",
    )


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Say what is damaged and what would mend it; the exit code tells whether anything is."""
    home = options.home or homes.home()
    if not home.is_dir():
        msg = f"There is no folder “{home}” to check; name one that appca has written to."
        raise InputError(msg)
    damaged = list(checked(home))
    options.code = DAMAGED if damaged else 0
    for line in damaged:
        say(f"{line.what}: {line.problem} ({line.file}); {line.remedy}")
    say(f"{counted(len(damaged), 'damaged file')} in {home}" if damaged else f"{home} is sound")
    return {"home": str(home), "sound": not damaged, "files": [line._asdict() for line in damaged]}


def checked(home: Path) -> Iterator[Line]:
    """Yield what is damaged; of a data set of format 1 that is told by its name, its digest."""
    damages = list(findings(home))
    store, named = DatasetStore(home), {damage.file.parent.name for damage in damages}
    for summary in store.list():
        try:
            store.get(summary.digest)
        except InputError as error:
            if summary.digest not in named:
                file = store.folder / summary.digest / "matrix.npy"
                damages.append(StoredFinding(file, str(error.__cause__ or error)))
    for finding in damages:
        what, remedy = _words(finding.file, home)
        if not finding.file.exists():
            remedy = remedy.removeprefix("delete the file, then ")
        yield Line(what, finding.file.relative_to(home).as_posix(), finding.why, remedy)


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
        "models": ("comparison of models", _GOES_ON.format("Which model?")),
        "quality": ("comparison of methods", "delete the file and compare again"),
        "embeddings": ("map", _MADE_AGAIN),
        "projections": ("new rows", _MADE_AGAIN),
        "numbers": ("names of components", "delete the file and name the components again"),
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
    label = f" “{shortened(meta['name'])}”" if meta.get("name") else ""
    if file.name == labels.FILE:
        what = f"names of the components of run {folder.name}{label}"
        return what, "delete the file, then name the components again"
    try:
        config = RunConfig.from_record(meta["config"])
        again = f"{remedy(config)}: {title(config)}"
    except Exception:  # what is damaged fails in as many ways as its parsers can
        again = "fit it again"
    return f"run {folder.name}{label}", again


def _selection(file: Path) -> str:
    try:
        name = marks(file.parent).get(file.name) or read_arrays(file)["name"]
        return f"selection “{shortened(name)}”"
    except Exception:  # as above
        return f"a selection of the data set {file.parent.name[:12]}"


def _facts(file: Path) -> dict[str, Any]:
    """Return what can still be read of a damaged description."""
    try:
        return as_object(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
