"""The job that whitens a stored data set, kept as an experiment with its own options."""

import time
from typing import Any

from appca.jobs.progress import Context
from appca.jobs.study import PROCESSES, timed


def whitening(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Classify the rows of a stored data set: ``{"options": ..., "key": id}`` -> ``{"study": id}``.

    The options are those of the experiment "whitening", with a data set's digest as the data.
    """
    from appca.data.store import DatasetStore
    from appca.studies.experiments.whitening import STUDY, classify
    from appca.studies.store import StudyStore

    options = STUDY.options(**spec["options"])
    began = time.perf_counter()
    folder = DatasetStore(context.home).path(options["data"])
    outcome = classify(str(folder), options, timed(context), PROCESSES)
    context.report("storing", 1.0)
    context.check()
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(STUDY, options, outcome, seconds)}
