"""Stored files damaged, exchanged or forged on the disk: the sentence that a page or command says.

A forged file is one with a digest that fits: what it says is checked all the same.
"""

import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.commands.home import checked
from appca.data.store import DatasetStore
from appca.runs import store
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage.files import write_numbered
from appca.words import InputError
from tests.fixtures.home import DIGITS, EM, copied
from tests.forged import forge, rewrite
from tests.ui.conftest import go, sentences, start

__all__ = ["start"]  # the fixture
CHANGED = "has been changed since it was stored"


@pytest.fixture
def home(appca_home: Path) -> Path:
    """Return a home that holds one of everything."""
    shutil.rmtree(appca_home, ignore_errors=True)
    return copied(appca_home)


def data(home: Path) -> Path:
    metas = home.glob("datasets/*/meta.json")
    return next(file.parent for file in metas if DIGITS in file.read_text("utf-8"))


def run(home: Path, **more: int) -> Path:
    config = RunConfig(data(home).name, {"divide": 16.0}, "aPPCA", EM | more)
    return home / "runs" / config.id


def selection(home: Path) -> Path:
    return next((home / "selections" / data(home).name).glob("*.npz"))


def alter(file: Path) -> None:
    """Change a byte in the middle of a file, which stays as long as it was."""
    content = bytearray(file.read_bytes())
    member = content.find(b"components.npy")
    content[member + 200 if member >= 0 else len(content) // 2] ^= 0x10
    file.write_bytes(content)


def edit(file: Path, old: str, new: str) -> None:
    """Change a text as an editor does."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def bomb(home: Path) -> None:
    """Replace a selection by zeros that unpack to thousands of times their size."""
    with (
        zipfile.ZipFile(selection(home), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive,
        archive.open("bits.npy", "w", force_zip64=True) as member,
    ):
        header = {"shape": (1 << 26,), "fortran_order": False, "descr": "|u1"}
        np.lib.format.write_array_header_1_0(member, header)
        member.write(bytes(1 << 22))


def other_rows(home: Path) -> None:
    arrays = {"name": np.array("x"), "bits": np.array([1], np.uint8), "n_rows": np.array(3)}
    write_numbered(selection(home), {**arrays, "created": np.array(1.0)}, "x")


def command(home: Path) -> str:
    """Return what `appca check` says of the one thing that is damaged."""
    (line,) = checked(home)
    return f"{re.sub('[0-9a-f]{12}', 'ID', line.what)}: {line.problem}; {line.remedy}"


def of_data(home: Path) -> str:
    with pytest.raises(InputError, match=r"is damaged .*; delete it, or load the data") as error:
        DatasetStore(home).get(data(home).name)
    return str(error.value)


def of_run(home: Path) -> str:
    name = run(home).name
    assert RunStore(home).get(name) is None
    return RunStore(home).damage(name) or ""


def of_arrays(home: Path) -> str:
    with pytest.raises(InputError, match="cannot be read") as error:
        _ = RunStore(home).get(run(home).name).fitted
    return str(error.value)


def of_labels(home: Path) -> str:
    stored = RunStore(home).get(run(home).name)
    assert store.labels(stored).names == ("",) * 4
    return store.damage(stored) or ""


def of_selection(home: Path) -> str:
    digest = data(home).name
    (sentence,) = SelectionStore(home).damaged(digest, 48)
    return sentence


ATTACKS: dict[str, tuple[Callable[[Path], object], Callable[[Path], str], str]] = {
    "a matrix altered at equal length": (
        lambda home: alter(data(home) / "matrix.npy"),
        command,
        f"data set “{DIGITS}”: matrix.npy {CHANGED}; open Digits, 8 × 8 again on the page Data",
    ),
    "objects in place of ids": (
        lambda home: np.save(data(home) / "ids.npy", np.array([{}] * 60), allow_pickle=True),
        of_data,
        "(ids.npy cannot be read)",
    ),
    "a name edited by hand": (
        lambda home: edit(data(home) / "meta.json", "Forty", "Fifty"),
        lambda home: "".join(line.problem for line in checked(home)),
        f"meta.json {CHANGED}",
    ),
    "a description that lists a file of the system": (
        lambda home: rewrite(data(home) / "meta.json", files={"/etc/passwd": "0" * 64}),
        command,
        "it lists other files than its own",
    ),
    "a description with a list in place of digests": (
        lambda home: rewrite(run(home) / "config.json", files=["arrays.npz"]),
        command,
        "it lists other files than its own; fit it again: aPPCA, K = 4, L = 2",
    ),
    "a description of more rows": (
        lambda home: rewrite(data(home) / "meta.json", n_rows=10**9),
        of_data,
        "(matrix.npy is not the matrix that meta.json describes)",
    ),
    "a run's arrays altered": (lambda home: alter(run(home) / "arrays.npz"), of_arrays, "fit it a"),
    "a run's arrays in place of another's": (
        lambda home: shutil.copyfile(
            next(home.glob("runs/*/arrays.npz")).with_name("config.json"), run(home) / "arrays.npz"
        ),
        of_run,
        " bytes instead of ",
    ),
    "its settings edited by hand": (
        lambda home: edit(run(home) / "config.json", '"n_components": 4', '"n_components": 3'),
        of_run,
        f"(config.json {CHANGED}) and left out; delete it or fit it again.",
    ),
    "its settings forged": (
        lambda home: forge(
            run(home) / "config.json",
            lambda text: text.replace('"n_components": 4', '"n_components": 3'),
        ),
        of_run,
        "(its settings are not those it was fitted with)",
    ),
    "settings nested without end": (
        lambda home: (run(home) / "config.json").write_text("[" * 100_000),
        of_run,
        "(it is nested too deep)",
    ),
    "names of components altered": (
        lambda home: edit(run(home) / "labels.json", "größe", "große"),
        of_labels,
        f"(labels.json {CHANGED}) and left out; name a component again, which replaces the file.",
    ),
    "names for more components than there are": (
        lambda home: rewrite(run(home) / "labels.json", names=["x"] * 9, signs=[1] * 9),
        of_labels,
        "(they are not those of 4 components)",
    ),
    "a selection altered": (
        lambda home: alter(selection(home)),
        command,
        f".npz {CHANGED}; delete the file, then select the rows and save them again",
    ),
    "a selection that unpacks to thousands of times its size": (
        bomb,
        of_selection,
        "then select its rows and save them again.",
    ),
    "a selection of other rows": (other_rows, of_selection, "(it is not of 48 rows)"),
    "a table of a study altered": (
        lambda home: alter(next(home.glob("studies/*/mixed.csv"))),
        command,
        f"mixed.csv {CHANGED}; run it again on the page Paper",
    ),
    "a map altered": (
        lambda home: alter(next(home.glob("embeddings/*.npz"))),
        command,
        "delete the file; it is computed again when needed",
    ),
    "a record of a grid altered": (
        lambda home: alter(next(home.glob("grids/*/records.txt"))),
        command,
        "choice of K and L ID: records.txt has damaged lines (1); start it again on the page "
        "Choose K and L; only the damaged part is computed again",
    ),
}


@pytest.mark.parametrize("how", ATTACKS)
def test_what_was_not_stored_so_is_answered_by_one_sentence(home, how):
    make, door, words = ATTACKS[how]
    make(home)
    sentence = door(home)
    assert words in sentence
    assert "\n" not in sentence


def test_the_pages_say_so_and_show_the_rest(home, start):
    edit(run(home) / "labels.json", "größe", "große")
    bomb(home)
    app = start("components/gallery", run=run(home).name)
    warnings = [box.value.replace("\\", "") for box in app.warning]
    assert any(f"are damaged (labels.json {CHANGED})" in text for text in warnings)
    go(app, "groups/differences")
    warnings = [box.value.replace("\\", "") for box in app.warning]
    assert any(f"delete {selection(home)}, then" in text for text in warnings)
    assert sentences(app) == []
