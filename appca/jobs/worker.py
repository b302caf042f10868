"""A worker process: takes jobs one after the other until the server is gone.

Started as ``python -m appca.jobs.worker HOME``. The server writes one job folder a line to its
standard input, and gets the job's id as a line back when the job is over; everything else goes
through the job's folder. The end of the input, or another parent process, means that the server
is gone, and the worker ends at once: what it was writing is a draft nobody will see.
"""

import contextlib
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from appca.jobs import choose, kinds
from appca.jobs.folder import JobFolder, JobState
from appca.jobs.kinds import project
from appca.jobs.masked import masked
from appca.jobs.progress import Cancelled, Context
from appca.jobs.quality import quality
from appca.jobs.study import brain, study, whitening
from appca.words.errors import TOO_MUCH

Handler = Callable[[dict[str, Any], Context], dict[str, Any]]
KINDS: dict[str, Handler] = {
    "fit": kinds.fit,
    "umap": kinds.umap,
    "download": kinds.download,
    "study": study,
    "brain": brain,
    "whitening": whitening,
    "quality": quality,
    "grid": choose.grid,
    "stability": choose.stability,
    "models": choose.models,
    "masked": masked,
    "project": project,
}
PARENT_CHECK_SECONDS = 1.0
NICENESS = 10  # somebody waits for a page, and a job for idle cores


def warm() -> None:
    """Import what most jobs need while nobody waits for it."""
    with contextlib.suppress(ImportError):  # the job itself will say what is missing
        import appca.models.adaptive_ppca
        import appca.runs.fit
        import appca.runs.store  # noqa: F401


def serve(
    home: Path,
    handlers: Mapping[str, Handler] = KINDS,
    prepare: Callable[[], None] = warm,
) -> None:
    """Work until the standard input ends; `prepare` runs once, before the first job."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints must not be taken for an answer
    inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(inbox,), daemon=True).start()
    threading.Thread(target=_watch_parent, args=(os.getppid(),), daemon=True).start()
    with contextlib.suppress(AttributeError, OSError):  # not on every system
        os.nice(NICENESS)
    prepare()
    while True:
        folder = JobFolder(Path(inbox.get()))
        answer = [folder.id]
        with _printing_to(folder.log_file):
            unwritten = work(folder, home, handlers)
        if unwritten is not None:
            answer.append(json.dumps(unwritten._asdict()))
        with contextlib.suppress(OSError):
            folder.shorten_log()
            folder.seal()
        channel.write(f"{' '.join(answer)}\n")
        channel.flush()


def work(folder: JobFolder, home: Path, handlers: Mapping[str, Handler] = KINDS) -> JobState | None:
    """Do one job and write how it ended; never raises. Returns an end that the disk refused."""
    context = Context(folder, home)
    try:
        context.write()
        context.check()
        job = folder.job()
        if job["kind"] not in handlers:
            msg = f"There is no job of the kind “{job['kind']}”; choose {', '.join(handlers)}."
            raise ValueError(msg)
        kinds.check(job["kind"], job["spec"])
        result = handlers[job["kind"]](job["spec"], context)
    except Cancelled:
        return _ended(context, "cancelled", message="Cancelled; nothing was stored.")
    except Exception as error:
        with contextlib.suppress(OSError):  # a full disk, too, has no room for the trace
            traceback.print_exc()
        return _ended(context, "failed", message=sentence(error, folder.log_file))
    return _ended(context, "done", result=result)


def _ended(context: Context, state: str, **facts: Any) -> JobState | None:
    """Write the end of a job; return it where a full disk does not let it be written."""
    try:
        context.end(state, **facts)
    except OSError:
        return context.state
    return None


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


def _listen(inbox: queue.SimpleQueue[str | None]) -> None:
    for line in sys.stdin:
        inbox.put(line.rstrip("\n"))
    os._exit(0)


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(0)


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
