"""Which waiting job is next: people take turns, and short jobs have a worker beside the others."""

from collections.abc import Callable, Mapping, Sequence

from appca.jobs.turns.job import Job

BESIDE = 1  # workers for short jobs alone, beside those for all
OVERDUE = 1  # more, for short jobs behind such that turn out to be long


def following(
    waiting: Sequence[Job],
    running: Sequence[Job],
    served: Mapping[str, int],
    workers: int,
    fits: Callable[[Job], bool],
    is_open: Callable[[str], bool] = lambda _: True,
) -> Job | None:
    """Return the job to begin now, if any.

    Jobs come first that an open window waits for. Of these, the person comes first who has the
    fewest jobs running, then the one who was served longest ago; of his jobs those that he has
    asked for, short ones before long ones, then the oldest. While all `workers` are busy, or the
    next job must wait for memory, only short jobs begin.

    `waiting` are the jobs whose time has come, oldest first. `served` says when a person last had a
    job begun, as a number that rises. `fits` says whether there is memory for a job, `is_open`
    whether the window of an owner is open.
    """

    def place(job: Job) -> tuple[bool, tuple[int, int], bool, bool]:
        turn = _turn(job, running, served)
        return not job.is_awaited(is_open), turn, not job.is_asked, not job.is_short

    fair = sorted(waiting, key=place)
    if fair and len(running) < workers and fits(fair[0]):
        return fair[0]
    overdue = sum(job.needs.is_short and not job.is_short for job in running)
    if len(running) >= workers + min(workers, BESIDE + min(overdue, OVERDUE)):
        return None
    return next((job for job in fair if job.is_short and fits(job)), None)


def _turn(job: Job, running: Sequence[Job], served: Mapping[str, int]) -> tuple[int, int]:
    return min(
        (sum(name in other.people for other in running), served.get(name, 0)) for name in job.people
    )
