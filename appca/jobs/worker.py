"""A worker process: takes jobs one after the other until the server is gone.

Started as ``python -m appca.jobs.worker HOME``. It is asked to do the job of a folder, tells how
far it is, and answers how that ended. It ends with the server: what it was writing is a draft
nobody will see.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from appca.jobs import check, kinds
from appca.jobs.folder import JobFolder, JobState
from appca.jobs.progress import Cancelled, Context
from appca.jobs.quality import quality
from appca.jobs.study import study
from appca.processes import served
from appca.processes.served import Tell
from appca.words.errors import TOO_MUCH

Handler = Callable[[dict[str, Any], Context], dict[str, Any]]
KINDS: dict[str, Handler] = {
    "fit": kinds.fit,
    "umap": kinds.umap,
    "download": kinds.download,
    "study": study,
    "quality": quality,
    "grid": check.grid,
    "stability": check.stability,
    "models": check.models,
    "masked": check.masked,
    "project": kinds.project,
}
NICENESS = 10  # somebody waits for a page, and a job for idle cores


def warm() -> None:
    """Import what most jobs need while nobody waits for it."""
    with contextlib.suppress(ImportError):  # the job itself will say what is missing
        import appca.models.adaptive_ppca
        import appca.runs.fit
        import appca.runs.store  # noqa: F401


def serve(
    home: Path, handlers: Mapping[str, Handler] = KINDS, prepare: Callable[[], None] = warm
) -> None:
    """Do jobs until the server is gone; `prepare` runs once, before the first."""

    def answer(path: str, tell: Tell) -> dict[str, Any]:
        folder = JobFolder(Path(path))
        with _printing_to(folder.log_file):
            return work(folder, home, handlers, tell)._asdict()

    served.serve(answer, prepare, NICENESS)


def work(
    folder: JobFolder,
    home: Path,
    handlers: Mapping[str, Handler] = KINDS,
    tell: Tell = lambda _: None,
) -> JobState:
    """Do one job and return how it ended; never raises."""
    context = Context(folder, home, tell=tell)
    try:
        context.tell()
        context.check()
        job = folder.job()
        if job["kind"] not in handlers:
            msg = f"There is no job of the kind “{job['kind']}”; choose {', '.join(handlers)}."
            raise ValueError(msg)
        result = handlers[job["kind"]](job["spec"], context)
    except Cancelled:
        return context.ended("cancelled", message="Cancelled; nothing was stored.")
    except Exception as error:
        with contextlib.suppress(OSError):  # a full disk, too, has no room for the trace
            traceback.print_exc()
        return context.ended("failed", message=sentence(error, folder.log_file))
    return context.ended("done", result=result)


def sentence(error: Exception, log: Path) -> str:
    """Say in one sentence what went wrong; the job's log has the rest."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError) and text:
        return text
    if isinstance(error, MemoryError):
        return TOO_MUCH
    if isinstance(error, OSError):
        return f"The disk or the network refused ({error.strerror or text}); see {log}."
    return f"The job failed unexpectedly ({type(error).__name__}: {text[:200]}); see {log}."


def _opened(file: Path) -> int:
    """Open a log; where the disk refuses, what is printed is lost and the job goes on."""
    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


@contextlib.contextmanager
def _printing_to(file: Path) -> Iterator[None]:
    """Send what Python and compiled libraries print to a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    outer = os.dup(2)
    log = _opened(file)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os.dup2(outer, 1)
        os.dup2(outer, 2)
        os.close(outer)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
