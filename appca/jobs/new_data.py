"""The job that describes new rows by a stored run."""

from typing import Any

from appca.jobs.progress import Context
from appca.runs import new_data
from appca.runs.store import RunStore
from appca.storage import cache
from appca.storage.errors import InputError


def project(spec: dict[str, Any], context: Context) -> dict[str, Any]:
    """Describe rows kept by `new_data.keep_rows`: ``{"key", "run"}`` -> ``{"key": key}``."""
    from appca.models.algebra.loop import Progress
    from appca.runs.fit import project as described

    key, home = spec["key"], context.home
    if new_data.stored(home, key) is not None:
        return {"key": key}
    context.report("reading the rows", 0.0)
    run, rows = RunStore(home).get(spec["run"]), cache.read(new_data.rows_file(home, key))
    if run is None or rows is None:
        msg = "The fit or the new rows are not there any more; open both again."
        raise InputError(msg)

    def report(progress: Progress) -> None:
        context.report("describing the rows", progress.iteration / progress.max_iter)

    found = described(run.config, run.fitted, rows["X"], report)
    context.check()
    file = new_data.file_of(home, key)
    cache.write(file, **found.row_arrays())
    new_data.rows_file(home, key).unlink(missing_ok=True)
    cache.prune(file.parent, "*.npz", new_data.MOST_BYTES, keep=file)
    return {"key": key}
