"""The job that computes an experiment of the paper: on two processes, stored when it is whole."""

import time
from collections.abc import Callable
from typing import Any

from appca.jobs.progress import Context

PROCESSES = 2
_LEAST_SHARE = 0.02  # done before the time left is guessed


def study(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store: ``{"study": name, "options": ..., "key": id}`` -> ``{"study": id}``."""
    from appca.studies.catalogue import study_of
    from appca.studies.store import StudyStore

    wanted = study_of(spec["study"])
    options = wanted.options(**spec["options"])
    began = time.perf_counter()
    outcome = wanted.run(options, timed(context), PROCESSES)
    context.report("storing", 1.0)
    context.check()
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(wanted, options, outcome, seconds)}


def timed(
    context: Context, clock: Callable[[], float] = time.perf_counter
) -> Callable[[str, float], None]:
    """Report that guesses the time left from the pace since the beginning."""
    began = clock()

    def report(stage: str, share: float) -> None:
        passed = clock() - began
        left = round(passed * (1 - share) / share, 1) if share > _LEAST_SHARE else None
        context.report(stage, share, seconds_left=left)
        context.check()

    return report
