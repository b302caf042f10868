"""What uploaded files may take of the server's memory, those of one window and of all.

Streamlit keeps them in memory until they are taken out or their window is gone, each up to its own
limit, as many as come. ``APPCA_UPLOADS`` bounds those of all windows together, as ``2GB``, by
default a quarter of the memory; one window may hold half of that.
"""

from collections import defaultdict
from collections.abc import Callable

from streamlit import runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from appca.jobs.turns.limits import size, total_memory

MOST_BYTES = 4 * 10**9  # by default, on a machine of any size
_refused: defaultdict[str, list[str]] = defaultdict(list)  # session -> sentences to show


def bound() -> None:
    """Let this server keep no more files than there is room for, from now on."""
    manager = runtime.get_instance().uploaded_file_mgr if runtime.exists() else None
    if isinstance(manager, MemoryUploadedFileManager) and "add_file" not in vars(manager):
        vars(manager)["add_file"] = _bounded(manager, manager.add_file)


def refusals() -> list[str]:
    """Return why files of this session were not kept, once."""
    context = get_script_run_ctx()
    return _refused.pop(context.session_id, []) if context is not None else []


def most_bytes() -> int:
    """Return what the files of all windows may take together."""
    default = min(MOST_BYTES, (total_memory() or 4 * MOST_BYTES) // 4)
    return size("APPCA_UPLOADS", None) or default


def _bounded(
    manager: MemoryUploadedFileManager, keep: Callable[[str, UploadedFileRec], None]
) -> Callable[[str, UploadedFileRec], None]:
    def add_file(session_id: str, file: UploadedFileRec) -> None:
        held = {
            session: sum(len(one.data) for one in list(files.values()))
            for session, files in list(manager.file_storage.items())
        }
        most, new = most_bytes(), len(file.data)
        if held.get(session_id, 0) + new > most // 2:
            whose, room = "this window", most // 2
        elif sum(held.values()) + new > most:
            whose, room = "all windows", most
        else:
            keep(session_id, file)
            return
        _refused[session_id].append(
            f"“{file.name}” of {_mb(new)} was not kept, since files in the uploaders of {whose} "
            f"may take {_mb(room)}; take some out, or use a smaller file."
        )

    return add_file


def _mb(n: int) -> str:
    return f"{n / 1e6:,.0f} MB"
