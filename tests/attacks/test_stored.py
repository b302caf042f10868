"""Stored files damaged, exchanged or forged on the disk: the sentence that a page or command says.

A forged file is one with a digest that fits: what it says is checked all the same.
"""

import io
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from appca.analysis.explore.umap import EmbeddingStore
from appca.analysis.groups.selections import SelectionStore
from appca.commands.check import checked
from appca.data.store import DatasetStore
from appca.runs import labels
from appca.runs.store import RunStore
from appca.storage.files import write_numbered
from appca.studies.store import StudyStore
from appca.words.errors import InputError
from tests.fixtures.contents import FIXTURES
from tests.forged import forge, rewrite
from tests.ui.conftest import go, sentences, start

__all__ = ["start"]  # the fixture
DATA = "0fc7382d5961dd28680ad1c0901029cfb04493dc98f4b9c69778c656abf3d95a"
RUN, OTHER = "1cf984c65bad", "38c1a48da485"
CHANGED = "has been changed since it was stored"


@pytest.fixture
def home(appca_home: Path) -> Path:
    """Return a home that holds one of everything."""
    shutil.copytree(
        FIXTURES / "home_format_2", appca_home, copy_function=shutil.copyfile, dirs_exist_ok=True
    )
    return appca_home


def altered(name: str) -> Callable[[Path], None]:
    """Return what changes a byte in the middle of a file, which stays as long as it was."""

    def alter(home: Path) -> None:
        (file,) = sorted(home.glob(name))[:1]
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0x10
        file.write_bytes(content)

    return alter


def edited(name: str, old: str, new: str) -> Callable[[Path], object]:
    """Return what changes a text as an editor does."""

    def edit(home: Path) -> None:
        file = home / name
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    return edit


def forged(name: str, **changes: object) -> Callable[[Path], object]:
    return lambda home: rewrite(home / name, **changes)


def exchanged(one: str, other: str) -> Callable[[Path], object]:
    return lambda home: shutil.copyfile(home / other, home / one)


def selection(home: Path) -> Path:
    return min(home.glob("selections/*/*.npz"))


def bomb(home: Path) -> None:
    """Put a selection of 4 GB into 4 MB, which nothing may unpack."""
    with zipfile.ZipFile(selection(home), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        with archive.open("bits.npy", "w", force_zip64=True) as member:
            header = {"shape": (1 << 25,), "fortran_order": False, "descr": "|u1"}
            np.lib.format.write_array_header_1_0(member, header)
            for _ in range(32):
                member.write(bytes(1 << 20))
        archive.writestr("format.npy", npy(np.array(2)))


def npy(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def other_rows(home: Path) -> None:
    arrays = {"name": np.array("x"), "bits": np.array([1], np.uint8), "n_rows": np.array(3)}
    write_numbered(selection(home), {**arrays, "created": np.array(1.0)}, "x")


def refused(read: Callable[[Path], object]) -> Callable[[Path], str]:
    """Return a door: the sentence with which something is not read."""

    def told(home: Path) -> str:
        with pytest.raises(InputError) as error:
            read(home)
        return str(error.value)

    return told


def command(home: Path) -> str:
    """Return what `appca check` says of the one thing that is damaged."""
    (line,) = checked(home)
    what = re.sub(r"(?<=job )[0-9a-f]{12}", "JOB", line.what)
    return f"{what}: {line.problem}; {line.remedy}"


def of_selection(home: Path) -> str:
    file = selection(home)
    n_rows = DatasetStore(home).get(file.parent.name).n_rows
    (sentence,) = SelectionStore(home).damaged(file.parent.name, n_rows)
    assert len(SelectionStore(home).list(file.parent.name, n_rows)) == 1, "the other one"
    return sentence.replace(str(file), "FILE")


def of_labels(home: Path) -> str:
    run = RunStore(home).get(RUN)
    assert labels.labels(run).names == ("",) * 4
    return labels.damage(run) or ""


def of_run(home: Path) -> str:
    assert RunStore(home).get(RUN) is None
    return RunStore(home).damage(RUN) or ""


def of_study(home: Path) -> str:
    """Return what the command says; the page shows it as never computed."""
    assert StudyStore(home).get(next(home.glob("studies/*/whitening.csv")).parent.name) is None
    return command(home)


def of_map(home: Path) -> str:
    """Return what the command says; on the page it is made again without a word."""
    assert EmbeddingStore(home).get("a6b515fb4d67") is None
    return command(home)


dataset = refused(lambda home: DatasetStore(home).get(DATA))
arrays = refused(lambda home: RunStore(home).get(RUN).fitted)
OF_DATA = (
    f"The stored data set {DATA[:12]} is damaged ({{}}); delete it, or load the data again in its "
    "place."
)
OF_RUN = f"Fit {RUN} is damaged ({{}}) and left out; delete it or fit it again."
OF_ARRAYS = f"The arrays of fit {RUN} cannot be read ({{}}); fit it again."
OF_LABELS = (
    f"The names of fit {RUN} are damaged ({{}}) and left out; name a component again, which "
    "replaces the file."
)
OF_SELECTION = (
    "A saved selection is damaged ({}) and left out; delete FILE, then select its rows and save "
    "them again."
)
META, CONFIG = f"datasets/{DATA}/meta.json", f"runs/{RUN}/config.json"


class Attack(NamedTuple):
    """A home that somebody has been at."""

    name: str
    make: Callable[[Path], object]
    door: Callable[[Path], str]
    sentence: str


ATTACKS = (
    Attack(
        "a matrix altered at equal length",
        altered(f"datasets/{DATA}/matrix.npy"),
        dataset,
        OF_DATA.format(f"matrix.npy {CHANGED}"),
    ),
    Attack(
        "a class altered",
        altered(f"datasets/{DATA}/label_0.npy"),
        dataset,
        OF_DATA.format(f"label_0.npy {CHANGED}"),
    ),
    Attack(
        "objects in place of ids",
        lambda home: np.save(
            home / f"datasets/{DATA}/ids.npy", np.array([{}] * 60), allow_pickle=True
        ),
        dataset,
        OF_DATA.format(f"ids.npy {CHANGED}"),
    ),
    Attack(
        "a name edited by hand",
        edited(META, "Three", "Four"),
        dataset,
        OF_DATA.format(f"meta.json {CHANGED}"),
    ),
    Attack(
        "a description that says nothing of files",
        forged(META, files={}),
        dataset,
        OF_DATA.format("its description lists other files"),
    ),
    Attack(
        "a description that lists files elsewhere",
        forged(META, files={"../../../../../etc/passwd": ["0" * 32]}),
        dataset,
        OF_DATA.format("its description lists other files"),
    ),
    Attack(
        "a description that lists a file of the system, checked",
        forged(META, files={"/etc/passwd": ["0" * 32]}),
        command,
        "data set “Three planes in space”: it lists other files than its own; open Three planes "
        "again on the page Data",
    ),
    Attack(
        "a description with a list in place of digests, checked",
        forged(CONFIG, files=["arrays.npz"]),
        command,
        f"run {RUN} “Strokes, the first try”: it lists other files than its own; fit it again: "
        "aPPCA, K = 4, L = 2",
    ),
    Attack(
        "a description of more rows",
        forged(META, n_rows=10**9),
        dataset,
        OF_DATA.format("matrix.npy is not the matrix that meta.json describes"),
    ),
    Attack(
        "a description without digests, and other numbers",
        lambda home: (
            rewrite(home / META, files=None),
            altered(f"datasets/{DATA}/matrix.npy")(home),
        ),
        dataset,
        OF_DATA.format(f"matrix.npy {CHANGED}"),
    ),
    Attack(
        "a run's arrays altered",
        altered(f"runs/{RUN}/arrays.npz"),
        arrays,
        OF_ARRAYS.format(f"arrays.npz {CHANGED}"),
    ),
    Attack(
        "a run's arrays in place of another's",
        exchanged(f"runs/{RUN}/arrays.npz", f"runs/{OTHER}/arrays.npz"),
        of_run,
        OF_RUN.format("arrays.npz has 16442 bytes instead of 9312"),
    ),
    Attack(
        "its settings edited by hand",
        edited(CONFIG, '"n_components": 4', '"n_components": 3'),
        of_run,
        OF_RUN.format(f"config.json {CHANGED}"),
    ),
    Attack(
        "its settings forged",
        lambda home: forge(
            home / CONFIG,
            lambda text: text.replace('"n_components": 4', '"n_components": 3'),
        ),
        of_run,
        OF_RUN.format("its settings are not those it was fitted with"),
    ),
    Attack(
        "settings nested without end",
        lambda home: (home / CONFIG).write_text("[" * 100_000),
        of_run,
        OF_RUN.format("it is nested too deep"),
    ),
    Attack(
        "names of components altered",
        altered(f"runs/{RUN}/labels.json"),
        of_labels,
        OF_LABELS.format(f"labels.json {CHANGED}"),
    ),
    Attack(
        "names for more components than there are",
        forged(f"runs/{RUN}/labels.json", names=["x"] * 9, signs=[1] * 9),
        of_labels,
        OF_LABELS.format("they are not those of 4 components"),
    ),
    Attack(
        "a selection altered",
        lambda home: altered(str(selection(home).relative_to(home)))(home),
        of_selection,
        OF_SELECTION.format(f"470e65fce91358e8.npz {CHANGED}"),
    ),
    Attack(
        "a selection that unpacks to thousands of times its size",
        bomb,
        of_selection,
        OF_SELECTION.format(f"470e65fce91358e8.npz {CHANGED}"),
    ),
    Attack(
        "a selection of other rows",
        other_rows,
        of_selection,
        OF_SELECTION.format("it is not of 48 rows"),
    ),
    Attack(
        "a table of a study altered",
        altered("studies/*/whitening.csv"),
        of_study,
        f"experiment “Whitening before a classifier”: whitening.csv {CHANGED}; run it again on the "
        "page Paper",
    ),
    Attack(
        "a map altered",
        altered("embeddings/a6b515fb4d67.npz"),
        of_map,
        f"map a6b515fb4d67: a6b515fb4d67.npz {CHANGED}; delete the file; it is computed again when "
        "needed",
    ),
    Attack(
        "a record of a grid altered",
        altered("grids/*/records.txt"),
        command,
        "choice of K and L 0a0f1c92dbe9: records.txt has damaged lines (1); start it again on the "
        "page Choose K and L; only the damaged part is computed again",
    ),
    Attack(
        "the state of a job edited by hand",
        lambda home: edited(
            str(min(home.glob("jobs/*/status.json")).relative_to(home)), '"done"', '"failed"'
        )(home),
        command,
        f"record of the job JOB: status.json {CHANGED}; delete its folder; nothing else needs it",
    ),
)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_what_was_not_stored_so_is_answered_by_one_sentence(home, attack):
    attack.make(home)
    assert attack.door(home) == attack.sentence


def test_the_pages_say_so_and_show_the_rest(home, start):
    for attack in ("run's labels", "selection", "study"):
        {
            "run's labels": altered(f"runs/{RUN}/labels.json"),
            "selection": bomb,
            "study": altered("studies/*/designs.csv"),
        }[attack](home)
    app = start("components/gallery", run=RUN)
    warnings = [box.value.replace("\\", "") for box in app.warning]
    assert OF_LABELS.format(f"labels.json {CHANGED}") in warnings
    go(app, "groups/named")
    warnings = [box.value.replace("\\", "") for box in app.warning]
    damaged = OF_SELECTION.format(f"470e65fce91358e8.npz {CHANGED}")
    assert damaged.replace("FILE", str(selection(home))) in warnings
    assert sentences(app) == []
    altered(f"datasets/{DATA}/matrix.npy")(home)
    app = start(data=DATA)
    assert sentences(app) == [OF_DATA.format(f"matrix.npy {CHANGED}")]
