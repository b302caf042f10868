"""The job that computes an experiment of the paper, also on stored data; kept when it is whole."""

import time
from functools import partial
from typing import Any

from appca.jobs.progress import Context, Paced

PROCESSES = 2


def study(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store: ``{"study": name, "options": ..., "key": id}`` -> ``{"study": id}``.

    The data of the experiment "whitening" may be named by the digest of a stored data set.
    """
    from appca.data.sources.builtin import SOURCES
    from appca.data.store import DatasetStore
    from appca.studies.catalogue import study_of
    from appca.studies.experiments.whitening import classify
    from appca.studies.store import StudyStore

    wanted = study_of(spec["study"])
    options, run = wanted.options(**spec["options"]), wanted.run
    if wanted.name == "whitening" and options["data"] not in SOURCES:
        run = partial(classify, str(DatasetStore(context.home).path(options["data"])))
    began = time.perf_counter()
    outcome = run(options, Paced(context).at, PROCESSES)
    context.report("storing", 1.0)
    context.check()
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(wanted, options, outcome, seconds)}
