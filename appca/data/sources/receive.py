"""Published files a person drops onto the page instead of letting them be fetched."""

from collections.abc import Callable
from pathlib import Path

from appca.data.readers.source import File, chunks_of, file_stream
from appca.data.sources import coil20, mnist
from appca.data.sources.folder import data_folder as folder_of_files
from appca.storage import atomic
from appca.words.errors import InputError
from appca.words.refusal import storing

_MNIST = {item.name: item for pair in mnist.FILES.values() for item in pair}


def receive(name: str, file: File, data_folder: Path | None = None) -> str | None:
    """Keep a file of MNIST or COIL-20 where `appca.data.sources.builtin.load` looks for it.

    Returns the key of the data set it belongs to; None, with nothing done, when the name is none of
    those published. Raises InputError when the name is, and the content is not.
    """
    if name in _MNIST:
        target = folder_of_files(data_folder) / "mnist" / name
        _keep(name, file, target, lambda path: mnist.check(path, _MNIST[name]))
        return "mnist"
    if name in (coil20.ZIP, coil20.MAT):
        target = folder_of_files(data_folder) / "coil20" / name
        _keep(name, file, target, coil20.check)
        return "coil20"
    return None


def _keep(name: str, file: File, target: Path, check: Callable[[Path], object]) -> None:
    """Write beside the target, check what was written, then put it in its place in one step."""
    remedy = "free some space, or name another folder in APPCA_DATA"
    with storing(f"“{name}”", target.parent, remedy):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file_stream(name, file) as stream, atomic.growing(target, check) as kept:
                kept.writelines(chunks_of(stream))
        except InputError as error:
            msg = (
                f"“{name}” is not the published file of that name, so it was not kept; get it "
                "again."
            )
            raise InputError(msg) from error
