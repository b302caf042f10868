"""A worker process: runs jobs one after the other until the server ends.

``python -m appca.jobs.worker HOME`` starts it. It receives a job, reports progress, and returns the
result. It ends with the server; an unfinished file is then a draft, which is never read.
"""

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from appca import processes
from appca.jobs import tasks
from appca.jobs.queue import FOLDER, LOG
from appca.jobs.tasks import Context
from appca.processes import Tell
from appca.words import TOO_MUCH, refuse_if

Handler = Callable[[dict[str, Any], Context], dict[str, Any]]
KINDS: dict[str, Handler] = {
    "fit": tasks.fit,
    "umap": tasks.umap,
    "download": tasks.download,
    "study": tasks.study,
    "project": tasks.project,
    **{kind: partial(tasks.campaign, kind) for kind in tasks.CAMPAIGNS},
}
NICENESS = 10  # jobs must not slow down pages


def warm() -> None:
    """Import the libraries of most jobs in advance."""
    with suppress(ImportError):  # the job reports the missing package
        import appca.models.adaptive_ppca
        import appca.runs.fit
        import appca.runs.store  # noqa: F401


def serve(
    home: Path, handlers: Mapping[str, Handler] = KINDS, prepare: Callable[[], None] = warm
) -> None:
    """Run jobs until the server ends; call `prepare` once, before the first job."""

    def answer(job: dict[str, Any], tell: Tell) -> dict[str, Any]:
        context = Context(home, tell, processes.stop_was_asked.is_set)
        return work(job["kind"], job["spec"], context, handlers)

    processes.serve(answer, prepare, NICENESS)


def work(
    kind: str, spec: dict[str, Any], context: Context, handlers: Mapping[str, Handler] = KINDS
) -> dict[str, Any]:
    """Run one job and return its result as fields of `appca.jobs.queue.JobStatus`."""
    context.tell()
    try:
        msg = f"There is no kind of job “{kind}”; choose {', '.join(handlers)}."
        refuse_if(kind not in handlers, msg)
        result = handlers[kind](spec, context)
    except Exception as error:
        with suppress(OSError):
            traceback.print_exc()
        return {"state": "failed", "message": sentence(error, context.home / FOLDER / LOG)}
    context.tell()
    return {"state": "done", "result": result}


def sentence(error: Exception, log: Path) -> str:
    """Return the cause of a failure in one sentence; the log contains the details."""
    text = " ".join(str(error).split())
    if isinstance(error, ValueError) and text:
        return text
    if isinstance(error, MemoryError):
        return TOO_MUCH
    if isinstance(error, OSError):
        return f"The disk or the network refused ({error.strerror or text}); see {log}."
    return f"The job failed unexpectedly ({type(error).__name__}: {text[:200]}); see {log}."


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
