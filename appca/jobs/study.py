"""Jobs that compute an experiment of the paper, also on own data; stored when it is whole."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from appca.jobs.progress import Context, Paced

if TYPE_CHECKING:
    from appca.studies.study import Options, Outcome, Report, Study

PROCESSES = 2


def study(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Compute and store: ``{"study": name, "options": ..., "key": id}`` -> ``{"study": id}``."""
    from appca.studies.catalogue import study_of

    wanted = study_of(spec["study"])
    options = wanted.options(**spec["options"])
    return _stored(wanted, options, context, lambda tell: wanted.run(options, tell, PROCESSES))


def brain(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Separate a stored recording: ``{"options": ..., "key": id}`` -> ``{"study": id}``.

    The options are those of the experiment "fmri", with a data set's digest as the recording.
    """
    from appca.data.brain.recording import of_dataset
    from appca.data.store import DatasetStore
    from appca.studies.experiments.brain import STUDY, separate

    options = STUDY.options(**spec["options"])

    def compute(tell: "Report") -> "Outcome":
        tell("reading the recording", 0.0)
        recording = of_dataset(DatasetStore(context.home).get(options["recording"]))
        return separate(recording, options, tell)

    return _stored(STUDY, options, context, compute)


def whitening(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Classify the rows of a stored data set: ``{"options": ..., "key": id}`` -> ``{"study": id}``.

    The options are those of the experiment "whitening", with a data set's digest as the data.
    """
    from appca.data.store import DatasetStore
    from appca.studies.experiments.whitening import STUDY, classify

    options = STUDY.options(**spec["options"])
    folder = str(DatasetStore(context.home).path(options["data"]))
    return _stored(STUDY, options, context, lambda tell: classify(folder, options, tell, PROCESSES))


def _stored(
    wanted: "Study", options: "Options", context: Context, compute: "Callable[[Report], Outcome]"
) -> dict[str, Any]:
    from appca.studies.store import StudyStore

    began = time.perf_counter()
    outcome = compute(Paced(context).at)
    context.report("storing", 1.0)
    context.check()
    seconds = time.perf_counter() - began
    return {"study": StudyStore(context.home).save(wanted, options, outcome, seconds)}
