"""``appca runs`` and ``appca check``: list stored runs, and find damaged files."""

import argparse
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from appca.commands import parsing
from appca.commands.terminal import say
from appca.data.sources import SOURCES
from appca.data.store import DatasetStore
from appca.runs import home as homes
from appca.runs.run import RunConfig
from appca.runs.store import LABELS, RunStore, findings, remedy, title
from appca.storage.files import read_arrays
from appca.storage.packed import as_object
from appca.studies.catalogue import STUDIES
from appca.words import counted, refuse_if, shortened

DAMAGED = 1  # exit code
_RECOMPUTED = "delete the file; it is computed again when needed"
_RESUMED = "start it again on the page {}; only the damaged part is computed again"
_OTHERS = {  # folder of a home -> description of its entries, and how to repair them
    "choices": ("choice of K and L", _RESUMED.format("Choose K and L")),
    "stability": ("stability of components", _RESUMED.format("Choose K and L")),
    "masked": ("fit to masked cells", _RESUMED.format("Fit")),
    "models": ("comparison of models", _RESUMED.format("Which model?")),
    "quality": ("comparison of methods", _RESUMED.format("Map quality")),
    "embeddings": ("map", _RECOMPUTED),
    "projections": ("new rows", _RECOMPUTED),
    "numbers": ("names of components", "delete the file and name the components again"),
}


class Line(NamedTuple):
    """A damaged file, as `check` reports it."""

    what: str
    file: str
    problem: str
    remedy: str


def add(commands: parsing.Commands) -> None:
    """Add the commands."""
    text = "list the stored runs, newest first"
    parsing.command(commands, "runs", text, ("python -m appca runs",), list_runs)
    examples = ("python -m appca check", "python -m appca check --json")
    text = "verify the checksums of everything stored"
    parser = parsing.command(commands, "check", text, examples, check)
    parser.add_argument(
        "--home",
        type=Path,
        help="the folder to check (default: APPCA_HOME, or the user's data folder)",
    )


def list_runs(_options: argparse.Namespace) -> dict[str, Any]:
    """Print id, time, log-likelihood, data and name of every run."""
    store, runs = RunStore(homes.home()), []
    names = {item.digest: item.name for item in DatasetStore(homes.home()).list()}
    for run in store.list():
        when = datetime.fromtimestamp(run.created)
        nats, data = run.info.log_likelihood / run.info.n_rows, names.get(run.config.dataset)
        shown = shortened(data or "data not kept", 24)
        say(f"{run.id}  {when:%Y-%m-%d %H:%M}  {nats:10.4g} nats per row  {shown:24}  {run.name}")
        created = datetime.fromtimestamp(run.created, UTC).isoformat(timespec="seconds")
        facts: dict[str, Any] = {"run": run.id, "name": run.name, "created": created, "data": data}
        facts |= {"model": run.config.model, "parameters": run.config.parameters}
        facts |= {"rows": run.info.n_rows, "features": run.info.n_features}
        runs.append(facts | {"log_likelihood_per_row": nats})
    if not runs:
        say("no runs are stored; `fit --store` stores one")
    problems = list(store.damaged().values())
    for sentence in problems:
        say(sentence)
    return {"runs": runs, "problems": problems}


def check(options: argparse.Namespace) -> dict[str, Any]:
    """Print the damaged files and how to repair them; exit with 1 if there are any."""
    home = options.home or homes.home()
    msg = f"There is no folder “{home}” to check; name one that appca has written to."
    refuse_if(not home.is_dir(), msg)
    damaged = list(checked(home))
    options.code = DAMAGED if damaged else 0
    for line in damaged:
        say(f"{line.what}: {line.problem} ({line.file}); {line.remedy}")
    say(f"{counted(len(damaged), 'damaged file')} in {home}" if damaged else f"{home} is sound")
    return {"home": str(home), "sound": not damaged, "files": [line._asdict() for line in damaged]}


def checked(home: Path) -> Iterator[Line]:
    """Yield the damaged files."""
    for finding in findings(home):
        what, repair = _words(finding.file, home)
        if not finding.file.exists():
            repair = repair.removeprefix("delete the file, then ")
        yield Line(what, finding.file.relative_to(home).as_posix(), finding.why, repair)


def _words(file: Path, home: Path) -> tuple[str, str]:
    kind, *below = file.relative_to(home).parts
    name = below[0].removesuffix(".json").removesuffix(".npz")
    if kind == "datasets":
        meta = _facts(home / kind / name / "meta.json")
        shown = f"“{shortened(meta['name'])}”" if "name" in meta else name[:12]
        provenance = meta.get("provenance")
        key = provenance.get("source") if isinstance(provenance, dict) else None
        source = SOURCES.get(str(key))
        again = f"open {source.title} again" if source else "open its file again"
        return f"data set {shown}", f"{again} on the page Data"
    if kind == "runs":
        return _run(home / kind / name, file)
    if kind == "selections":
        what = f"a selection of the data set {file.parent.name[:12]}"
        with suppress(Exception):  # parsers raise any exception
            what = f"selection “{shortened(read_arrays(file)['name'])}”"
        return what, "delete the file, then select the rows and save them again"
    if kind == "studies":
        study = STUDIES.get(str(_facts(file.parent / "config.json").get("study")))
        what = f"experiment “{study.title}”" if study else f"experiment {name}"
        return what, "run it again on the page Paper"
    what, repair = _OTHERS[kind]
    return f"{what} {name}", repair


def _run(folder: Path, file: Path) -> tuple[str, str]:
    meta = _facts(folder / "config.json")
    run = folder.name + (f" “{shortened(meta['name'])}”" if meta.get("name") else "")
    if file.name == LABELS:
        what = f"names of the components of run {run}"
        return what, "delete the file, then name the components again"
    try:
        config = RunConfig.from_record(meta["config"])
        again = f"{remedy(config)}: {title(config)}"
    except Exception:  # parsers raise any exception
        again = "fit it again"
    return f"run {run}", again


def _facts(file: Path) -> dict[str, Any]:
    try:
        return as_object(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError, RecursionError):
        return {}
