"""Which waiting job is next: windows take turns, and short jobs have a worker beside the others."""

from collections.abc import Callable, Mapping, Sequence

from appca.jobs.turns.job import Job

BESIDE = 1  # workers for short jobs alone, beside those for all


def following(
    waiting: Sequence[Job],
    running: Sequence[Job],
    served: Mapping[str, int],
    workers: int,
    fits: Callable[[Job], bool],
) -> Job | None:
    """Return the job to begin now, if any.

    The window comes first that has the fewest jobs running, then the one that was served longest
    ago; of its jobs the oldest that a person has asked for. While all `workers` are busy, or the
    next job must wait for memory, only short jobs begin.

    Parameters
    ----------
    waiting : sequence of Job
        Whose time has come, oldest first.
    running : sequence of Job
    served : mapping of str to int
        When a window last had a job begun, as a number that rises; missing: never.
    workers : int
        That take any job.
    fits : callable
        Whether there is memory for a job.
    """
    fair = sorted(waiting, key=lambda job: (_turn(job, running, served), not job.is_asked))
    if fair and len(running) < workers and fits(fair[0]):
        return fair[0]
    if len(running) >= workers + min(workers, BESIDE):
        return None
    return next((job for job in fair if job.needs.is_short and fits(job)), None)


def _turn(job: Job, running: Sequence[Job], served: Mapping[str, int]) -> tuple[int, int]:
    return min(
        (sum(owner in one.claims for one in running), served.get(owner, 0)) for owner in job.claims
    )
