"""The job that separates an own brain recording, kept as an experiment with its own options."""

import time
from typing import Any

from appca.jobs.progress import Context
from appca.jobs.study import timed


def brain(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Separate a stored recording: ``{"options": ..., "key": id}`` -> ``{"study": id}``.

    The options are those of the experiment "fmri", with a data set's digest as the recording.
    """
    from appca.data.brain.recording import of_dataset
    from appca.data.store import DatasetStore
    from appca.studies.experiments.brain import STUDY, separate
    from appca.studies.store import StudyStore

    options = STUDY.options(**spec["options"])
    report = timed(context)
    began = time.perf_counter()
    report("reading the recording", 0.0)
    recording = of_dataset(DatasetStore(context.home).get(options["recording"]))
    outcome = separate(recording, options, report)
    context.report("storing", 1.0)
    context.check()
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(STUDY, options, outcome, seconds)}
