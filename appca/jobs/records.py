"""What is known of jobs: their folders, and ends that a full disk did not let be written."""

import contextlib
import time
from pathlib import Path
from typing import Any

from appca.jobs.folder import ENDED, JobFolder, JobState, JobStatus
from appca.storage import atomic
from appca.storage.identity import is_id
from appca.words.errors import InputError
from appca.words.refusal import refusing

GONE = "The app was closed before this job finished; start it again."
UNREADABLE = (OSError, ValueError, KeyError, TypeError)  # a folder somebody has tampered with
FOLDERS_KEPT = 200
FOLDER_DAYS = 7


class JobRecords:
    """Reads and closes the books on the jobs in a folder, also those of an earlier server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unwritten: dict[str, JobState] = {}  # ends of jobs that a full disk refused

    def create(self, kind: str, spec: dict[str, Any], key: str) -> JobFolder:
        """Note a job to be done.

        Raises InputError when the disk refuses, or what the job is told cannot be written.
        """
        task = {"kind": kind, "spec": spec, "key": key}
        remedy = "free some space, then start it again"
        try:
            with refusing(f"The job could not be stored in {self.folder}", remedy):
                return JobFolder.create(self.folder, task)
        except InputError:
            raise
        except ValueError as error:
            msg = f"The settings of this job cannot be stored: {error}."
            raise InputError(msg) from None

    def status(self, job_id: str) -> JobStatus | None:
        """Say what became of a job that this server does not do; None if it is not known."""
        if not is_id(job_id):
            return None
        folder = JobFolder(self.folder / job_id)
        try:
            job, state = folder.job(), self._unwritten.get(job_id) or folder.read()
        except UNREADABLE:
            return None
        if state.state not in ENDED:
            state = state._replace(state="failed", message=GONE, seconds_left=None)
        return JobStatus.of(job_id, job["kind"], job["spec"], state)

    def end(self, folder: JobFolder, last: JobState) -> None:
        """Write how a job ended; what a full disk refuses is remembered."""
        try:
            folder.write(last)
        except (OSError, ValueError):
            self._unwritten[folder.id] = last

    def clean(self, open_ids: set[str]) -> None:
        """Remove folders of jobs that were over long ago."""
        folders = [path for path in self.folder.glob("[0-9a-f]*") if path.name not in open_ids]
        ages = sorted((_age(path), path) for path in folders)
        for place, (age, path) in enumerate(ages):
            if age > FOLDER_DAYS * 86_400 or place >= FOLDERS_KEPT:
                atomic.remove(path)
        atomic.sweep(self.folder)


def _age(path: Path) -> float:
    for file in (path / "status.json", path):
        with contextlib.suppress(OSError):
            return time.time() - file.stat().st_mtime
    return 0.0
