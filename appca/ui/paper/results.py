"""Results of experiments on the pages: those that are stored, and those that are being made."""

from collections.abc import Iterator

from appca.runs.home import home
from appca.studies.store import Stored, StudyStore
from appca.studies.study import Options, Study
from appca.ui.session import watching

SIZES = {"quick": "Quick", "default": "Default", "full": "Full"}
AT_ONCE = 1.0  # seconds that the page itself may take


def stored(study: Study, options: Options) -> Stored | None:
    """Return the result with these options, if there is one."""
    return StudyStore(home()).get(study.id(options))


def made_at_once(study: Study, size: str) -> None:
    """Make the result of an experiment that takes no time, unless it is there."""
    options = study.options(size)
    if study.takes[size] < AT_ONCE and stored(study, options) is None:
        outcome = study.run(options, lambda _stage, _share: None, 1)
        StudyStore(home()).save(study, options, outcome, 0.0)


def known(name: str | None = None) -> Iterator[tuple[str, Options]]:
    """Yield experiment and options of what this window waits for, then of what is stored."""
    for job in watching.mine():
        study = job.spec.get("study")
        if study is not None and name in (None, study):
            yield study, job.spec["options"]
    yield from ((kept.study, kept.options) for kept in StudyStore(home()).list(name))


def spec_of(study: Study, options: Options) -> Options:
    """Return what the job needs to know that makes a result."""
    return {"study": study.name, "options": options, "key": study.id(options)}
