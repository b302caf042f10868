"""Built-in data sets: bundled tables, drawn samples, MNIST and COIL-20."""

import gzip
from collections.abc import Iterable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from appca.data import downloads
from appca.data.brain import brain
from appca.data.dataset import Dataset
from appca.data.downloads import Progress
from appca.data.files import File, chunks_of, file_stream
from appca.data.folders import folder_of_files, sample_file
from appca.storage import files
from appca.words import InputError, refuse_if, storing


class Option(NamedTuple):
    """One choice a person has when opening a source."""

    name: str
    default: object
    help: str
    choices: tuple[object, ...] | None = None
    least: int = 1
    most: int = 0

    def check(self, title: str, value: Any) -> None:
        """Raise InputError unless a value is among the choices, or a number within the bounds."""
        if value is None and (self.choices is None or self.default is None):
            return
        if self.choices is None:
            rule = f"must be a whole number from {self.least} to {self.most:,}"
            is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            is_right = is_whole and self.least <= value <= self.most
        elif self.default is None:
            rule = f"must be a list of some of {', '.join(map(str, self.choices))}"
            is_list = isinstance(value, Iterable) and not isinstance(value, str)
            wanted = set(map(str, value)) if is_list else set()
            is_right = bool(wanted) and wanted <= set(map(str, self.choices))
        else:
            rule = f"must be {' or '.join(map(str, self.choices))}"
            is_right = value in self.choices
        refuse_if(not is_right, f"The option {self.name} of {title} {rule}; got {value!r}.")


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
_OF_MNIST = (
    Option("n", 10_000, "Number of digits", least=2, most=70_000),
    Option("per_class", None, "Number of each class", most=6313),
    Option("classes", None, "Classes", tuple("0123456789")),
)
_OF_COIL20 = (
    Option("size", 32, "Pixels along a side", (32, 128)),
    Option("n", None, "Number of views", least=2, most=1440),
    Option("per_class", None, "Number of each object", most=72),
    Option("classes", None, "Objects", tuple(map(str, range(1, 21)))),
)
_BRAIN = "A made-up brain recording with its events"
_IMAGES = "Handwritten digits of 28 × 28 pixels"
_SOURCES = (
    Source("digits", "Digits, 8 × 8", "Small handwritten digits", True, 1797, 64),
    Source("mnist", "MNIST", _IMAGES, False, 70_000, 784, _OF_MNIST, "28 × 28"),
    Source(
        "coil20", "COIL-20", "20 objects, 72 views each", False, 1440, 1024, _OF_COIL20, "20 × 72"
    ),
    Source("turntable", "Turntable", "13 solids, 72 views each", True, 936, 1024),
    Source("planes", "Three planes", "Points near three planes in space", True, 900, 3),
    Source("brain", "Small brain", _BRAIN, True, 2720, 120),
    Source("wine", "Wine", "Wines of three growers", True, 178, 13),
    Source("breast_cancer", "Breast cancer", "Measurements of cell nuclei", True, 569, 30),
)
SOURCES = {source.key: source for source in _SOURCES}


def load(
    key: str,
    *,
    progress: Progress | None = None,
    data_folder: Path | str | None = None,
    **options: Any,
) -> Dataset:
    """Open a built-in data set by its key in `SOURCES`, with the options that it lists.

    `progress` is called with (bytes done, bytes in all) while files are fetched. MNIST and COIL-20
    are read from, or fetched to, `data_folder`; see `appca.data.folders.folder_of_files`. Raises
    InputError for another key, another option or a value that the option does not have.
    """
    refuse_if(
        key not in SOURCES,
        f"There is no built-in data set {key!r}; choose one of {', '.join(SOURCES)}.",
    )
    choices = {option.name: option for option in SOURCES[key].options}
    has = f"the options {', '.join(sorted(choices))}" if choices else "no options"
    unknown = sorted(set(options) - set(choices))
    refuse_if(unknown, f"The data set {key!r} has {has}; got {', '.join(unknown)}.")
    for name, value in options.items():
        choices[name].check(SOURCES[key].title, value)
    if not SOURCES[key].offline:
        read: Any = downloads.load_mnist if key == "mnist" else downloads.load_coil20
        dataset: Dataset = read(folder_of_files(data_folder), progress=progress, **options)
        return dataset
    small = (digits, wine, breast_cancer, turntable, planes, brain)
    return {make.__name__: make for make in small}[key]()


def are_here(key: str) -> bool:
    """Whether the files of MNIST or COIL-20 are in the data folder, so that nothing is fetched."""
    names = downloads.MNIST if key == "mnist" else (downloads.ZIP,)
    return all((folder_of_files() / key / name).is_file() for name in names)


def receive(name: str, file: File, data_folder: Path | None = None) -> str | None:
    """Keep a file of MNIST or COIL-20 where `appca.data.sources.load` looks for it.

    Returns the key of the data set it belongs to; None, with nothing done, when the name is none of
    those published. Raises InputError when the name is, and the content is not.
    """
    if name not in (*downloads.MNIST, downloads.ZIP):
        return None
    key = "coil20" if name == downloads.ZIP else "mnist"
    target = folder_of_files(data_folder) / key / name
    remedy = "free some space, or name another folder in APPCA_DATA"
    with storing(f"“{name}”", target.parent, remedy):
        target.parent.mkdir(parents=True, exist_ok=True)
        check = partial(downloads.check, name=name)
        try:
            with file_stream(name, file) as stream, files.growing(target, check) as kept:
                kept.writelines(chunks_of(stream))
        except InputError as error:
            msg = f"“{name}” is not the published file of that name, so get it again."
            raise InputError(msg) from error
    return key


def digits() -> Dataset:
    """Return 1,797 handwritten digits of 8 x 8 pixels in 17 gray values."""
    spec = find_spec("sklearn")  # finds the folder without running the package
    folder = Path(next(iter((spec and spec.submodule_search_locations) or ("",))))
    path = folder / "datasets" / "data" / "digits.csv.gz"
    refuse_if(not path.is_file(), f"{path} is missing; install scikit-learn again.")
    lines = gzip.decompress(path.read_bytes()).split()
    table = np.array([line.split(b",") for line in lines], np.float64).astype(np.uint8)
    citation = (
        "E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI Machine "
        "Learning Repository (test part)"
    )
    facts: dict[str, Any] = {"source": "digits", "files": ["digits.csv.gz of scikit-learn"]}
    facts |= {"citation": citation, "image_range": [0, 16]}
    title, labels = "Handwritten digits, 8 × 8", {"digit": table[:, -1].astype(str)}
    ids = _row_ids("digit", len(table))
    return Dataset(title, table[:, :-1], ids, labels, (8, 8), provenance=facts)


def wine() -> Dataset:
    """Return 178 wines of three growers with 13 chemical measurements."""
    from sklearn.datasets import load_wine

    citation = "S. Aeberhard, M. Forina (1992), Wine, UCI Machine Learning Repository"
    facts = {"source": "wine", "files": ["wine_data.csv of scikit-learn"], "citation": citation}
    return _table(load_wine(), "Wine", "wine", "cultivar", facts)


def breast_cancer() -> Dataset:
    """Return 569 breast tumours with 30 measurements of cell nuclei."""
    from sklearn.datasets import load_breast_cancer

    facts = {
        "source": "breast_cancer",
        "files": ["breast_cancer.csv of scikit-learn"],
        "citation": "W. Wolberg, O. Mangasarian, N. Street, W. Street (1993), Breast Cancer "
        "Wisconsin (Diagnostic), UCI Machine Learning Repository",
    }
    title = "Breast cancer (Wisconsin)"
    return _table(load_breast_cancer(), title, "tumour", "diagnosis", facts)


def _table(bunch: Any, title: str, row: str, label: str, facts: dict[str, Any]) -> Dataset:
    labels = {label: np.array(bunch.target_names).astype(str)[bunch.target]}
    names = tuple(name.replace("_", " ") for name in bunch.feature_names)
    ids = _row_ids(row, len(bunch.data))
    return Dataset(title, bunch.data, ids, labels, feature_names=names, provenance=facts)


def _row_ids(word: str, n: int) -> np.ndarray:
    return np.array([f"{word}-{row}" for row in range(n)])


DESIGNS = ("sparse", "dense", "subspace", "balanced", "single")
SPARSE_MASS = 3.0
DENSE_SHAPE = (8.0, 2.0)


class Synthetic(NamedTuple):
    """A draw of the model together with the truth behind it."""

    Y: np.ndarray  # (N, D) data
    W: np.ndarray  # (D, K) true columns
    X: np.ndarray  # (N, K) true scores, also of the factors that are off
    Z: np.ndarray  # (N, K) bool, which factors a row uses
    noise_sd: float


def draw_indicators(
    rng: np.random.Generator, design: str, n_rows: int, n_components: int, n_active: int
) -> np.ndarray:
    """Draw the indicator matrix Z, (N, K) bool, of one of `DESIGNS`.

    L only matters for ``subspace`` (size of a block), ``balanced`` and ``single``. Raises
    InputError if the design is unknown or L is not between 1 and K.
    """
    refuse_if(
        not 1 <= n_active <= n_components,
        f"n_active must be between 1 and n_components={n_components}; got {n_active}.",
    )
    refuse_if(design not in DESIGNS, f"design must be one of {', '.join(DESIGNS)}; got {design!r}.")
    shape = (n_rows, n_components)
    if design == "sparse":
        odds = rng.beta(SPARSE_MASS / n_components, 1.0, n_components)
        return rng.random(shape) < odds
    if design == "dense":
        return rng.random(shape) < rng.beta(*DENSE_SHAPE, n_components)
    if design == "subspace":
        block = np.arange(n_components) // n_active
        return np.equal(block, rng.integers(block[-1] + 1, size=n_rows)[:, None])
    if design == "balanced":
        return rng.random(shape).argsort(axis=1).argsort(axis=1) < n_active
    return np.broadcast_to(rng.permutation(n_components) < n_active, shape).copy()


def draw_synthetic(
    rng: np.random.Generator,
    design: str,
    *,
    n_rows: int = 1000,
    n_features: int = 50,
    n_components: int = 10,
    n_active: int = 5,
    noise_sd: float = 0.1,
) -> Synthetic:
    """Draw Y = (X * Z) W' + noise of one design, W and X standard normal (paper, section 5.1).

    Returns Y (N, D), W (D, K), X and Z (N, K), and the noise standard deviation.
    """
    Z = draw_indicators(rng, design, n_rows, n_components, n_active)
    W = rng.standard_normal((n_features, n_components))
    X = rng.standard_normal(Z.shape)
    noise = noise_sd * rng.standard_normal((n_rows, n_features))
    return Synthetic((X * Z) @ W.T + noise, W, X, Z, noise_sd)


def planes() -> Dataset:
    """Return points near three planes in space, each spanned by two of three directions."""
    lines = sample_file("planes.csv").read_text(encoding="utf-8").splitlines()
    ids, x, y, z, plane = zip(*(line.split(",") for line in lines[1:]), strict=True)
    X, labels = np.array([x, y, z], dtype=np.float64).T, {"plane": np.array(plane)}
    facts = {"source": "planes", "files": ["planes.csv"], "comparable": True}
    names, title = ("x", "y", "z"), "Three planes in space"
    return Dataset(title, X, np.array(ids), labels, feature_names=names, provenance=facts)


def turntable() -> Dataset:
    """Return shaded solids on a turntable, 72 views each, of 32 x 32 pixels."""
    with np.load(sample_file("turntable.npz"), allow_pickle=False) as file:
        images, solid, angle = file["images"], file["solid"], file["angle"]
    X, title = images.reshape(len(images), -1), f"Turntable, {len(set(solid.tolist()))} solids"
    ids = np.array([f"{name}__{degrees}" for name, degrees in zip(solid, angle, strict=True)])
    facts = {"source": "turntable", "files": ["turntable.npz"], "image_range": [0, 255]}
    labels = {"solid": solid, "angle": angle}
    return Dataset(title, X, ids, labels, images.shape[1:], provenance=facts)
