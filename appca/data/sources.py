"""Built-in data sets: bundled tables, simulated samples, and published MNIST and COIL-20."""

import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from appca.data.brain import brain
from appca.data.dataset import Dataset
from appca.data.folders import folder_of_files, sample_file
from appca.storage.identity import sha256_of_file
from appca.words import InputError, refuse_if, refused

Progress = Callable[[int, int], None]


class Option(NamedTuple):
    """A choice that a user has when opening a source."""

    name: str
    default: object
    help: str
    choices: tuple[object, ...] | None = None
    least: int = 1
    most: int = 0

    def check(self, title: str, value: Any) -> None:
        """Raise InputError for a value that is not a choice, or a number outside the bounds."""
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
    """A built-in data set, as listed."""

    key: str
    title: str
    description: str
    offline: bool  # opens without a network and without downloaded files
    rows: int
    features: int
    options: tuple[Option, ...] = ()
    tile: str = ""  # text shown instead of a picture


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
_SOURCES = (
    ("digits", "Digits, 8 × 8", "Small handwritten digits", True, 1797, 64),
    ("mnist", "MNIST", "Handwritten digits, 28 × 28", False, 70_000, 784, _OF_MNIST, "28 × 28"),
    ("coil20", "COIL-20", "20 objects, 72 views each", False, 1440, 1024, _OF_COIL20, "20 × 72"),
    ("turntable", "Turntable", "13 solids, 72 views each", True, 936, 1024),
    ("planes", "Three planes", "Points near three planes in space", True, 900, 3),
    ("brain", "Small brain", "A made-up brain recording with its events", True, 2720, 120),
    ("wine", "Wine", "Wines of three growers", True, 178, 13),
    ("breast_cancer", "Breast cancer", "Measurements of cell nuclei", True, 569, 30),
)
SOURCES, ZIP = {facts[0]: Source(*facts) for facts in _SOURCES}, "coil-20-proc.zip"
_MNIST = {
    "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
# Published files with their SHA-256. Zip files of COIL-20 may differ, so its checksum is that of
# the uint8 pixels in object, then view order.
FILES = {
    "mnist": {f"{stem}-ubyte.gz": sha256 for stem, sha256 in _MNIST.items()},
    "coil20": {ZIP: "7274cbacb79ea6c57340827c9f9301745a8e9b3173dea4aa828e00b49c42946c"},
}
MIRRORS: dict[str, tuple[str, ...]] = {
    "mnist": (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    "coil20": (
        "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/",
        "https://cave.cs.columbia.edu/old/databases/SLAM_coil-20_coil-100/coil-20/",
    ),
}
_CITATIONS = {
    "mnist": "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998), Gradient-based learning applied "
    "to document recognition, Proceedings of the IEEE 86(11), 2278-2324",
    "coil20": "S. A. Nene, S. K. Nayar, H. Murase (1996), Columbia Object Image Library (COIL-20), "
    "technical report CUCS-005-96, Columbia University",
    "digits": "E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits, UCI "
    "Machine Learning Repository (test part)",
    "wine": "S. Aeberhard, M. Forina (1992), Wine, UCI Machine Learning Repository",
    "breast_cancer": "W. Wolberg, O. Mangasarian, N. Street, W. Street (1993), Breast Cancer "
    "Wisconsin (Diagnostic), UCI Machine Learning Repository",
}


def load(
    key: str,
    *,
    progress: Progress | None = None,
    data_folder: Path | str | None = None,
    **options: Any,
) -> Dataset:
    """Open a built-in data set by its key in `SOURCES`, with the options listed there.

    MNIST and COIL-20 are read from `data_folder`, by default `appca.data.folders.folder_of_files`,
    and downloaded if missing; `progress` is called with (bytes done, total bytes). The first
    `per_class` rows of each of the `classes` (default: all), or the first `n` rows are read. Images
    of COIL-20 of size 32 are means of 4 x 4 blocks (float32, exact), as in the paper. Raises
    InputError for an unknown key or option, or an invalid value.
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
    if SOURCES[key].offline:
        return brain() if key == "brain" else _bundled(key)
    options = {name: option.default for name, option in choices.items()} | options
    return _published(key, folder_of_files(data_folder) / key, progress, options)


def are_here(key: str) -> bool:
    """Whether the files of MNIST or COIL-20 are present, so that no download is needed."""
    return all((folder_of_files() / key / name).is_file() for name in FILES.get(key, ()))


def fetch(
    urls: Sequence[str],
    path: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    advice: str = "try again later.",
) -> None:
    """Download a file by pooch from the first of `urls` that works; `path` is never incomplete.

    An exception from `progress` stops the download. Raises InputError if no mirror has a file with
    checksum `sha256`; the message has the last reason, then `advice`.
    """
    import pooch
    import requests

    class Meter:  # pooch counts whole chunks, so its total is too high
        total = done = 0

        def update(self, n_bytes: int) -> None:
            self.done += n_bytes
            if progress is not None:
                progress(min(self.done, self.total or self.done), self.total)

        def reset(self) -> None:
            self.done = 0

        close = reset

    pooch.get_logger().setLevel("ERROR")
    downloader = pooch.HTTPDownloader(
        progressbar=Meter(),
        chunk_size=1 << 16,
        headers={"Accept-Encoding": "identity"},  # a compressed copy has another checksum
        timeout=(10, 30),
    )
    checksum, reason = sha256 and f"sha256:{sha256}", ""
    for url in urls:
        host = urlsplit(url).hostname or url
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except requests.RequestException as error:
            status = getattr(error.response, "status_code", None)
            failed = f"the connection to {host} failed: {type(error).__name__}"
            reason = f"{host} answered {status}" if status else failed
        except OSError as error:
            what = f"{path} could not be written"
            raise refused(what, error, advice.rstrip(".")) from error
        except ValueError:  # raised by pooch for a wrong checksum
            reason = f"the file from {host} does not have the published checksum"
        else:
            return
    msg = f"{path.name} could not be downloaded ({reason}); {advice}"
    raise InputError(msg)


def _content(path: Path, name: str) -> np.ndarray:
    """Return the values (n,), uint8, of a published file; raises InputError for other files."""
    if name != ZIP:
        digest, right = sha256_of_file(path), FILES["mnist"][name]
        msg = f"{path} is not the published {name} (its SHA-256 starts with {digest[:8]}, not "
        msg += f"{right[:8]}); delete it, and the right one will be downloaded."
        refuse_if(digest != right, msg)
        head = 16 if "images" in name else 8
        return np.frombuffer(gzip.decompress(path.read_bytes()), np.uint8, offset=head)
    from PIL import Image

    images = []
    try:
        with zipfile.ZipFile(path) as archive:
            members = {name.rpartition("/")[2]: name for name in archive.namelist()}
            for number, view in np.ndindex(20, 72):
                with archive.open(members[f"obj{number + 1}__{view}.png"]) as member:
                    data = io.BytesIO(member.read(1 << 20))
                with Image.open(data, formats=["PNG"]) as image:
                    images.append(np.asarray(image.convert("L")).reshape(128, 128))
    except Exception as error:  # decoders raise many kinds of exceptions
        msg = f"{path} is damaged ({type(error).__name__}); delete it and download it again."
        raise InputError(msg) from error
    X = np.stack(images)
    digest, right = hashlib.sha256(X.data).hexdigest(), FILES["coil20"][ZIP]
    msg = f"The pixels in {path} are not from COIL-20 (SHA-256 {digest[:8]}, not {right[:8]}); "
    msg += "delete it and download it again."
    refuse_if(digest != right, msg)
    return X.reshape(-1)


def _published(key: str, folder: Path, progress: Progress | None, how: dict[str, Any]) -> Dataset:
    """Read rows of MNIST (training digits first) or COIL-20 (objects before views)."""
    title, content = SOURCES[key].title, []
    advice = f"to open {title} without a network, put {', '.join(FILES[key])} into {folder}, or "
    advice += f"drop {'them' if len(FILES[key]) > 1 else 'it'} onto the Data page."
    for name, sha256 in FILES[key].items():
        path, urls = folder / name, [mirror + name for mirror in MIRRORS[key]]
        if is_new := not path.is_file():
            checksum = None if name == ZIP else sha256
            fetch(urls, path, sha256=checksum, progress=progress, advice=advice)
        try:
            content.append(_content(path, name))
        except InputError:
            if is_new:
                path.unlink(missing_ok=True)
            raise
    n, per_class = how["n"], how["per_class"]
    if key == "mnist":
        X = np.concatenate([content[0], content[2]]).reshape(-1, 784)
        column = np.concatenate([content[1], content[3]]).astype(str)
        split, side = len(content[1]), 28
        part = np.repeat(["train", "test"], [split, len(column) - split])
        ids = [f"train-{i}" if i < split else f"test-{i - split}" for i in range(len(column))]
        labels, (row, group) = {"digit": column, "part": part}, ("digits", "digits")
        digests = FILES[key]
    else:
        X, side = content[0].reshape(-1, 32, 4, 32, 4), how["size"]
        if side == 32:  # exact, because float32 represents sixteenths below 256
            X = X.sum(axis=(2, 4), dtype=np.uint16).astype(np.float32) / np.float32(16)
        X, places = X.reshape(1440, -1), np.arange(1440)
        column, angle = (places // 72 + 1).astype(str), (places % 72 * 5).astype(np.int16)
        ids = [f"obj{i // 72 + 1}__{i % 72}" for i in range(1440)]
        labels, (row, group) = {"object": column, "angle": angle}, ("views", "objects")
        digests, title = {ZIP: f"pixels sha256:{FILES[key][ZIP]}"}, f"{title}, {side} x {side}"
    chosen = how["classes"]
    wanted = list(dict.fromkeys(map(str, np.unique(column) if chosen is None else chosen)))
    group += "" if chosen is None else f" {', '.join(wanted)}"
    rows = np.flatnonzero(np.isin(column, wanted))
    if per_class is None:
        rows = rows[:n]
        name = f"{len(rows):,} {row if chosen is None else f'of {group}'}"
    else:
        rows = np.sort(np.concatenate([rows[column[rows] == each][:per_class] for each in wanted]))
        name = f"{group}, {per_class:,} each"
    facts = {"source": key, "files": digests, "image_range": [0, 255], "citation": _CITATIONS[key]}
    facts["options"] = how | {"classes": None if chosen is None else wanted}
    title = title if key == "coil20" and len(rows) == len(X) else f"{title}, {name}"
    labels = {label: values[rows] for label, values in labels.items()}
    parts: Any = X[rows], np.array(ids)[rows], labels, (side, side), None, facts
    return Dataset(title, *parts)


def _bundled(key: str) -> Dataset:
    names = shape = None
    X: Any
    named: Sequence[str]
    facts: dict[str, Any] = {"source": key}
    if key == "digits":
        spec = find_spec("sklearn")  # locates the package without importing it
        folder = Path(next(iter((spec and spec.submodule_search_locations) or ("",))))
        path = folder / "datasets" / "data" / "digits.csv.gz"
        refuse_if(not path.is_file(), f"{path} is missing; install scikit-learn again.")
        table = np.loadtxt(path, np.uint8, delimiter=",")
        X, labels, shape = table[:, :-1], {"digit": table[:, -1].astype(str)}, (8, 8)
        title, row, file = "Handwritten digits, 8 × 8", "digit", f"{path.name} of scikit-learn"
        facts["image_range"] = [0, 16]
    elif key in ("wine", "breast_cancer"):
        from sklearn import datasets

        title, row, label, file = "Wine", "wine", "cultivar", "wine_data.csv"
        if key == "breast_cancer":
            title, row, label = "Breast cancer (Wisconsin)", "tumour", "diagnosis"
            file = "breast_cancer.csv"
        bunch = getattr(datasets, f"load_{key}")()
        X, labels = bunch.data, {label: np.array(bunch.target_names).astype(str)[bunch.target]}
        names = tuple(name.replace("_", " ") for name in bunch.feature_names)
        file = f"{file} of scikit-learn"
    elif key == "planes":
        title, names, file = "Three planes in space", ("x", "y", "z"), "planes.csv"
        lines = sample_file(file).read_text(encoding="utf-8").splitlines()
        named, *axes, plane = zip(*(line.split(",") for line in lines[1:]), strict=True)
        X, labels = np.array(axes, dtype=np.float64).T, {"plane": np.array(plane)}
        facts["comparable"] = True
    else:  # shaded solids, 72 views each
        file = "turntable.npz"
        with np.load(sample_file(file), allow_pickle=False) as npz:
            images, solid, angle = npz["images"], npz["solid"], npz["angle"]
        X, shape, labels = images.reshape(len(images), -1), images.shape[1:], {"solid": solid}
        labels["angle"], title = angle, f"Turntable, {len(set(solid.tolist()))} solids"
        named = [f"{name}__{degrees}" for name, degrees in zip(solid, angle, strict=True)]
        facts["image_range"] = [0, 255]
    if key in _CITATIONS:
        facts["citation"] = _CITATIONS[key]
        named = [f"{row}-{i}" for i in range(len(X))]
    facts["files"] = [file]
    return Dataset(title, X, np.array(named), labels, shape, names, facts)


DESIGNS = ("sparse", "dense", "subspace", "balanced", "single")


class Synthetic(NamedTuple):
    """A sample from the model, with the true parameters."""

    Y: np.ndarray  # (N, D) data
    W: np.ndarray  # (D, K) true columns
    X: np.ndarray  # (N, K) true scores, also of inactive factors
    Z: np.ndarray  # (N, K) bool: factors that a row uses
    noise_sd: float


def draw_indicators(
    rng: np.random.Generator, design: str, n_rows: int, n_components: int, n_active: int
) -> np.ndarray:
    """Draw the indicator matrix Z, (N, K) bool, of one of `DESIGNS`.

    L matters only for ``subspace`` (size of a block), ``balanced`` and ``single``. Raises
    InputError if the design is unknown or L is not between 1 and K.
    """
    refuse_if(
        not 1 <= n_active <= n_components,
        f"n_active must be between 1 and n_components={n_components}; got {n_active}.",
    )
    refuse_if(design not in DESIGNS, f"design must be one of {', '.join(DESIGNS)}; got {design!r}.")
    shape = (n_rows, n_components)
    if design == "sparse":
        return rng.random(shape) < rng.beta(3.0 / n_components, 1.0, n_components)
    if design == "dense":
        return rng.random(shape) < rng.beta(8.0, 2.0, n_components)
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
    """Draw Y (N, D) = (X * Z) W' + noise by a design, W, X normal (5.1); return W, X, Z, sd too."""
    Z = draw_indicators(rng, design, n_rows, n_components, n_active)
    W = rng.standard_normal((n_features, n_components))
    X, noise = rng.standard_normal(Z.shape), noise_sd * rng.standard_normal((n_rows, n_features))
    return Synthetic((X * Z) @ W.T + noise, W, X, Z, noise_sd)
