"""Experiments on the command line: computed, stored, printed and written."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from appca.studies.catalogue import STUDIES, study_of
from appca.studies.files import aligned, claim_lines, words, write
from appca.studies.report import ReportEntry, heading, page
from appca.studies.store import StudyStore
from appca.studies.study import Options, Report, Study
from appca.words.errors import InputError
from appca.words.refusal import OTHER, refusing

MOST_PROCESSES = 2
REPORT = "report.html"


def paper(
    names: Sequence[str],
    size: str,
    changes: Options,
    store: StudyStore,
    out: Path | None,
    say: Callable[[str], None],
    report: Report,
) -> None:
    """Compute experiments one after the other, all of them if none is named.

    `changes` are options that differ from those of the size. `store` keeps the results, for the app
    to show; the folder `out` receives CSV, HTML and pictures. `say` gets the lines of the printed
    answer, `report` (stage, share done).

    Raises InputError for an unknown name or option, before anything is computed.
    """
    named = [study_of(name) for name in names or STUDIES]
    wanted = [study for study in STUDIES.values() if study in named]
    planned = [(study, study.options(size, **changes)) for study in wanted]
    if out is not None and out.exists() and not out.is_dir():
        msg = f"The place of the output must be a folder; “{out}” is a file."
        raise InputError(msg)
    results = [_one(study, options, store, out, say, report) for study, options in planned]
    if out is not None:
        with refusing(f"{out / REPORT} could not be written", OTHER):
            out.mkdir(parents=True, exist_ok=True)
            (out / REPORT).write_text(page(results), encoding="utf-8")
        say(f"wrote {REPORT} in {out}")
    refused = [result for result in results if result.outcome is None]
    if refused:
        missing = "; ".join(f"{result.study.name}: {result.note}" for result in refused)
        msg = f"{len(refused)} of {len(results)} results are missing. {missing}"
        raise InputError(refused[0].note if len(results) == 1 else msg)


def _one(
    study: Study,
    options: Options,
    store: StudyStore,
    out: Path | None,
    say: Callable[[str], None],
    report: Report,
) -> ReportEntry:
    """Compute, store, print and write one experiment; what its data lack becomes a sentence."""
    say(heading(study))
    say("; ".join(f"{name} {words(value)}" for name, value in options.items()))
    began = time.perf_counter()
    try:
        outcome = study.run(options, report, min(MOST_PROCESSES, os.cpu_count() or 1))
    except InputError as error:
        return ReportEntry(study, options, None, str(error))
    seconds = time.perf_counter() - began
    name = store.save(study, options, outcome, seconds)
    numbers = aligned(next(iter(outcome.tables.values())), study.columns)
    for line in (*numbers, "", *claim_lines(outcome), outcome.text):
        say(line)
    say(f"{seconds:.0f} s; stored as {name}")
    if out is not None:
        files = write(study, outcome, out)
        say(f"wrote {', '.join(path.name for path in files)} in {out}")
    return ReportEntry(study, options, outcome, f"Computed in {seconds:.0f} s, stored as {name}.")
