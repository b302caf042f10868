"""The built-in data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from appca.data.dataset import Dataset
from appca.data.sources.download import Progress
from appca.data.sources.folder import data_folder as folder_of_files
from appca.words.errors import InputError


class Option(NamedTuple):
    """One choice a person has when opening a source."""

    name: str
    default: object
    help: str
    choices: tuple[object, ...] | None = None
    least: int | None = None
    most: int | None = None


class Source(NamedTuple):
    """A built-in data set, as a list of them shows it."""

    key: str
    title: str
    description: str
    offline: bool  # opens on a machine without network and without files of its owner
    rows: int
    features: int
    options: tuple[Option, ...] = ()
    tile: str = ""  # in place of a picture


LICENCES = dict.fromkeys(("digits", "wine", "breast_cancer"), "Licence: CC BY 4.0") | dict.fromkeys(
    ("turntable", "planes", "brain"), "Drawn by appca, under its licence"
)

SOURCES: dict[str, Source] = {
    source.key: source
    for source in (
        Source("digits", "Digits, 8 × 8", "Small handwritten digits", True, 1797, 64),
        Source(
            "mnist",
            "MNIST",
            "Handwritten digits of 28 × 28 pixels",
            False,
            70_000,
            784,
            (
                Option("n", 10_000, "Number of digits", least=2, most=70_000),
                Option("per_class", None, "Number of each class", least=1, most=6313),
                Option("classes", None, "Classes", tuple("0123456789")),
            ),
            "28 × 28",
        ),
        Source(
            "coil20",
            "COIL-20",
            "20 objects, 72 views each",
            False,
            1440,
            1024,
            (
                Option("size", 32, "Pixels along a side", (32, 128)),
                Option("n", None, "Number of views", least=2, most=1440),
                Option("per_class", None, "Number of each object", least=1, most=72),
                Option("classes", None, "Objects", tuple(map(str, range(1, 21)))),
            ),
            "20 × 72",
        ),
        Source("turntable", "Turntable", "13 solids, 72 views each", True, 936, 1024),
        Source("planes", "Three planes", "Points near three planes in space", True, 900, 3),
        Source(
            "brain", "Small brain", "A made-up brain recording with its events", True, 2720, 120
        ),
        Source("wine", "Wine", "Wines of three growers", True, 178, 13),
        Source("breast_cancer", "Breast cancer", "Measurements of cell nuclei", True, 569, 30),
    )
}


def load(
    key: str,
    *,
    progress: Progress | None = None,
    data_folder: Path | str | None = None,
    **options: object,
) -> Dataset:
    """Open a built-in data set by its key in `SOURCES`, with the options that it lists.

    `progress` is told (bytes done, bytes in all) while files are fetched. MNIST and COIL-20 are
    read from, or fetched to, `data_folder`; see `appca.data.sources.folder.data_folder`.
    """
    if key not in SOURCES:
        msg = f"There is no built-in data set {key!r}; choose one of {', '.join(SOURCES)}."
        raise InputError(msg)
    names = {option.name for option in SOURCES[key].options}
    unknown = sorted(set(options) - names)
    if unknown:
        has = f"the options {', '.join(sorted(names))}" if names else "no options"
        msg = f"The data set {key!r} has {has}; got {', '.join(unknown)}."
        raise InputError(msg)
    if key in {"mnist", "coil20"}:
        from appca.data.sources import coil20, mnist

        read: Callable[..., Dataset] = mnist.load if key == "mnist" else coil20.load
        return read(folder_of_files(data_folder), progress=progress, **options)
    from appca.data.sources import bundled, samples

    small = {
        "digits": bundled.digits,
        "wine": bundled.wine,
        "breast_cancer": bundled.breast_cancer,
        "turntable": samples.turntable,
        "planes": samples.planes,
        "brain": samples.brain,
    }
    return small[key]()


def are_here(key: str, data_folder: Path | str | None = None) -> bool:
    """Whether the files of MNIST or COIL-20 lie in the data folder, so that nothing is fetched."""
    from appca.data.sources import coil20, mnist

    folder = folder_of_files(data_folder)
    if key == "coil20":
        return any((folder / "coil20" / name).is_file() for name in (coil20.ZIP, coil20.MAT))
    return all(
        (folder / "mnist" / file.name).is_file() for pair in mnist.FILES.values() for file in pair
    )
