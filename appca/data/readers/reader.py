"""What each format offers to `appca.data.readers.read`."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from appca.data.dataset import Dataset
from appca.data.readers.source import File, Files, ReadLimits

ENDINGS = (  # of images
    *(".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff"),
    *(".webp", ".pgm", ".ppm", ".pnm"),
)
LONGEST_NAME = 80  # characters that a sentence, and the data set, keep of a file's name
OptionsT = TypeVar("OptionsT", bound=tuple[Any, ...])


class Reader(NamedTuple, Generic[OptionsT]):
    """How files of one format become a data set."""

    options: type[OptionsT]  # a NamedTuple whose fields all have defaults
    read: Callable[[str, File, OptionsT, ReadLimits], Dataset] | None  # None: see the next
    # several files that make one data set, or a single one; None where only `read` can be used
    read_many: Callable[[Files, OptionsT, ReadLimits], Dataset] | None = None
