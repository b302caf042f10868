"""The data sets that come with scikit-learn, read straight from its folder.

Importing ``sklearn.datasets`` takes about 1.5 s, most of the time to the app's first picture;
its files are plain tables that NumPy reads in milliseconds.
"""

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from appca.data.dataset import Dataset
from appca.words.errors import InputError

_WINE = (
    "alcohol", "malic acid", "ash", "alcalinity of ash", "magnesium", "total phenols",
    "flavanoids", "nonflavanoid phenols", "proanthocyanins", "color intensity", "hue",
    "od280/od315 of diluted wines", "proline",
)  # fmt: skip
_NUCLEUS = (
    "radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity",
    "concave points", "symmetry", "fractal dimension",
)  # fmt: skip
_STATISTICS = ("mean {}", "{} error", "worst {}")


def digits() -> Dataset:
    """Return 1,797 handwritten digits of 8 x 8 pixels in 17 grey values."""
    table = _numbers(gzip.decompress(_file("digits.csv.gz"))).reshape(-1, 65)
    return Dataset(
        name="Handwritten digits, 8 × 8",
        X=table[:, :-1].astype(np.uint8),
        ids=_row_ids("digit", len(table)),
        labels={"digit": table[:, -1].astype(np.uint8).astype(str)},
        image_shape=(8, 8),
        provenance={
            "source": "digits",
            "files": ["digits.csv.gz of scikit-learn"],
            "image_range": [0, 16],
            "citation": "E. Alpaydin, C. Kaynak (1998), Optical Recognition of Handwritten Digits,"
            " UCI Machine Learning Repository (test part)",
        },
    )


def wine() -> Dataset:
    """Return 178 wines of three growers with 13 chemical measurements."""
    citation = "S. Aeberhard, M. Forina (1992), Wine, UCI Machine Learning Repository"
    return _table("wine_data.csv", "wine", "Wine", "wine", "cultivar", _WINE, citation)


def breast_cancer() -> Dataset:
    """Return 569 breast tumours with 30 measurements of cell nuclei."""
    names = tuple(form.format(part) for form in _STATISTICS for part in _NUCLEUS)
    citation = (
        "W. Wolberg, O. Mangasarian, N. Street, W. Street (1993), Breast Cancer Wisconsin "
        "(Diagnostic), UCI Machine Learning Repository"
    )
    title = "Breast cancer (Wisconsin)"
    return _table(
        "breast_cancer.csv", "breast_cancer", title, "tumour", "diagnosis", names, citation
    )


def _table(
    file: str, key: str, title: str, row: str, label: str, names: tuple[str, ...], citation: str
) -> Dataset:
    """Read a file whose first line is: rows, columns, names of the classes."""
    head, body = _file(file).split(b"\n", 1)
    n_rows, n_columns, *classes = head.decode().strip().split(",")
    table = _numbers(body).reshape(int(n_rows), int(n_columns) + 1)
    return Dataset(
        name=title,
        X=table[:, :-1],
        ids=_row_ids(row, len(table)),
        labels={label: np.array(classes)[table[:, -1].astype(int)]},
        feature_names=names,
        provenance={"source": key, "files": [f"{file} of scikit-learn"], "citation": citation},
    )


def _numbers(text: bytes) -> np.ndarray:
    return np.array(text.replace(b"\n", b",").strip(b",\r ").split(b","), dtype=np.float64)


def _file(name: str) -> bytes:
    spec = find_spec("sklearn")  # finds the folder without running the package
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder) / "datasets" / "data" / name
        if path.is_file():
            return path.read_bytes()
    msg = f"{name} is missing from the installed scikit-learn; install scikit-learn again."
    raise InputError(msg)


def _row_ids(word: str, n: int) -> np.ndarray:
    return np.array([f"{word}-{row}" for row in range(n)])
