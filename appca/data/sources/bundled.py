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
    table, grower = _table("wine_data.csv")
    return Dataset(
        name="Wine",
        X=table,
        ids=_row_ids("wine", len(table)),
        labels={"cultivar": grower},
        feature_names=_WINE,
        provenance={
            "source": "wine",
            "files": ["wine_data.csv of scikit-learn"],
            "citation": "S. Aeberhard, M. Forina (1992), Wine, UCI Machine Learning Repository",
        },
    )


def breast_cancer() -> Dataset:
    """Return 569 breast tumours with 30 measurements of cell nuclei."""
    table, diagnosis = _table("breast_cancer.csv")
    return Dataset(
        name="Breast cancer (Wisconsin)",
        X=table,
        ids=_row_ids("tumour", len(table)),
        labels={"diagnosis": diagnosis},
        feature_names=tuple(form.format(part) for form in _STATISTICS for part in _NUCLEUS),
        provenance={
            "source": "breast_cancer",
            "files": ["breast_cancer.csv of scikit-learn"],
            "citation": "W. Wolberg, O. Mangasarian, N. Street, W. Street (1993), Breast Cancer "
            "Wisconsin (Diagnostic), UCI Machine Learning Repository",
        },
    )


def _table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Read a file whose first line is: rows, columns, names of the classes."""
    head, body = _file(name).split(b"\n", 1)
    rows, columns, *classes = head.decode().strip().split(",")
    table = _numbers(body).reshape(int(rows), int(columns) + 1)
    return table[:, :-1], np.array(classes)[table[:, -1].astype(int)]


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
