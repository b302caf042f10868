"""Stored files damaged, exchanged or forged: each door says so in a sentence, and the rest works.

A forged file is one with a digest that fits: what it says is checked all the same.
"""

import errno
import json
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from appca.analysis.selections import SelectionStore
from appca.analysis.umap import EmbeddingConfig
from appca.commands.home import checked
from appca.data.sources import load
from appca.data.store import DatasetStore
from appca.runs import store
from appca.runs.run import RunConfig
from appca.runs.store import RunStore
from appca.storage.files import write_numbered
from appca.ui import services
from appca.words import InputError
from tests.faults.writers import MAP, ROWS, WRITERS
from tests.fixtures.home import DIGITS, EM, copied
from tests.forged import forge, rewrite
from tests.pages import give, select, table
from tests.ui.conftest import address, go, healthy, html, sentences, start

__all__ = ["start"]  # the fixture
CHANGED = "has been changed since it was stored"
NESTED = "[" * 100_000


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def replace_by_file(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("a file")


def flip(file: Path) -> None:
    """Change a byte in the middle of a file, which stays as long as it was."""
    content = bytearray(file.read_bytes())
    member = content.find(b"components.npy")
    content[member + 200 if member >= 0 else len(content) // 2] ^= 0x10
    file.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "cut": cut,
    "gone": Path.unlink,
    "empty": lambda file: file.write_bytes(b""),
    "nested": lambda file: file.write_text(NESTED),
    "a list": lambda file: file.write_text("[1]"),
    "null": lambda file: file.write_text("null"),
    "a folder": lambda file: (file.unlink(), file.mkdir()),
    "a file in place of its folder": replace_by_file,
}
KINDS = [kind for kind in WRITERS if "command" not in kind]


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_seen_never_read_as_another_and_replaced(kind, how, tmp_path):
    writer = WRITERS[kind]
    writer.write(tmp_path / "whole", 1)
    files = [one for one in (tmp_path / "whole").rglob("*") if one.is_file()]
    for number, file in enumerate(files):
        home = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", home)
        DAMAGES[how](home / file.relative_to(tmp_path / "whole"))
        if how in ("flipped", "cut"):
            assert len(list(checked(home))) >= 1, file.name
        try:
            found, said = writer.read(home), ""
        except InputError as error:
            found, said = None, str(error)
        except AssertionError:  # arrays of data and runs are not hashed when they are opened
            found, said = None if how == "flipped" else 0, ""
        assert found in {None, 1}, file.name
        assert re.fullmatch(r"([^\n]*(damaged|no stored|cannot be read)[^\n]*\.)?", said)
        replaced = "folder" not in how or kind in ("data set", "study")
        if replaced and not kind.startswith("name"):
            writer.write(home, 1)
            assert writer.read(home) == 1, file.name


@pytest.fixture
def home(appca_home: Path) -> Path:
    """Return a home that holds one of everything."""
    shutil.rmtree(appca_home, ignore_errors=True)
    return copied(appca_home)


def data(home: Path) -> Path:
    metas = home.glob("datasets/*/meta.json")
    return next(file.parent for file in metas if DIGITS in file.read_text("utf-8"))


def run(home: Path) -> Path:
    return home / "runs" / RunConfig(data(home).name, {"divide": 16.0}, "aPPCA", EM).id


def selection(home: Path) -> Path:
    return next((home / "selections" / data(home).name).glob("*.npz"))


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
    assert RunStore(home).damaged()[name] == RunStore(home).damage(name)
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
    (sentence,) = SelectionStore(home).damaged(data(home).name, 48)
    return sentence


def meta(**changes: object) -> Callable[[Path], object]:
    return lambda home: rewrite(data(home) / "meta.json", **changes)


def config(**changes: object) -> Callable[[Path], object]:
    return lambda home: rewrite(run(home) / "config.json", **changes)


K4, K3 = '"n_components": 4', '"n_components": 3'
ATTACKS: dict[str, tuple[Callable[[Path], object], Callable[[Path], str], str]] = {
    "a matrix altered at equal length": (
        lambda home: flip(data(home) / "matrix.npy"),
        command,
        f"data set “{DIGITS}”: matrix.npy {CHANGED}; open Digits, 8 × 8 again on the page Data",
    ),
    "objects in place of ids": (
        lambda home: np.save(data(home) / "ids.npy", np.array([{}] * 60), allow_pickle=True),
        of_data,
        "(ids.npy cannot be read)",
    ),
    "a list of a file of the system": (
        meta(files={"/etc/passwd": "0" * 64}),
        command,
        "it lists other files than its own",
    ),
    "more rows": (
        meta(n_rows=10**9),
        of_data,
        "(matrix.npy is not the matrix that meta.json describes)",
    ),
    "the digest of other data": (meta(digest="0" * 64), of_data, "is damaged"),
    "labels a number": (meta(labels=7), of_data, "is damaged"),
    "a list in place of digests": (
        config(files=["arrays.npz"]),
        command,
        "it lists other files than its own; fit it again: aPPCA, K = 4, L = 2",
    ),
    "facts a list": (config(info=[1, 2]), of_run, "damaged"),
    "facts too few": (config(info={"n_iter": 3}), of_run, "damaged"),
    "a fact a text": (config(info={"n_iter": "3", "seconds": 1}), of_run, "damaged"),
    "a run's name of numbers": (config(name=[1]), of_run, "damaged"),
    "a time of letters": (config(created="<b>noon</b>"), of_run, "damaged"),
    "another run's settings": (config(id="0" * 12), of_run, "damaged"),
    "a run's arrays altered": (lambda home: flip(run(home) / "arrays.npz"), of_arrays, "fit it a"),
    "a run's arrays of another length": (
        lambda home: shutil.copyfile(run(home) / "config.json", run(home) / "arrays.npz"),
        of_run,
        " bytes instead of ",
    ),
    "its settings edited by hand": (
        lambda home: edit(run(home) / "config.json", K4, K3),
        of_run,
        f"(config.json {CHANGED}) and left out; delete it or fit it again.",
    ),
    "its settings forged": (
        lambda home: forge(run(home) / "config.json", lambda text: text.replace(K4, K3)),
        of_run,
        "(its settings are not those it was fitted with)",
    ),
    "settings nested without end": (
        lambda home: (run(home) / "config.json").write_text(NESTED),
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
        lambda home: flip(selection(home)),
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
        lambda home: flip(next(home.glob("studies/*/mixed.csv"))),
        command,
        f"mixed.csv {CHANGED}; run it again on the page Paper",
    ),
    "a map altered": (
        lambda home: flip(next(home.glob("embeddings/*.npz"))),
        command,
        "delete the file; it is computed again when needed",
    ),
    "a record of a grid altered": (
        lambda home: flip(next(home.glob("grids/*/records.txt"))),
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


def facts(**changes: object) -> np.ndarray:
    return np.array(json.dumps({"config": MAP.to_dict(), "n_rows": ROWS} | changes))


PLACES = np.zeros((ROWS, 2), np.float32)
FORGED: list[tuple[str, Callable[[Path], object] | dict]] = [
    *(
        ("embedding", {"coordinates": places, "facts": told})
        for places, told in (
            (PLACES, np.array("{")),
            (PLACES, np.array("[]")),
            (PLACES[1:], facts()),
            (PLACES[:, :1], facts()),
            (PLACES.astype("U4"), facts()),
            (PLACES, facts(config=EmbeddingConfig("e" * 64, {}).to_dict())),
        )
    ),
    *(
        ("study", changes)
        for changes in (
            {"tables": ["mixed"]},
            {"options": 7},
            {"created": "noon"},
            {"versions": "1.0"},
        )
    ),
]


@pytest.mark.parametrize(("kind", "changes"), FORGED)
def test_a_forged_map_or_study_counts_as_none_and_is_made_again(kind, changes, tmp_path):
    writer = WRITERS[kind]
    writer.write(tmp_path, 1)
    if kind == "study":
        rewrite(next(tmp_path.glob("studies/*/config.json")), **changes)
    else:
        write_numbered(next(tmp_path.glob("embeddings/*.npz")), changes, "x")
    assert writer.read(tmp_path) is None
    writer.write(tmp_path, 1)
    assert writer.read(tmp_path) == 1


# on the pages


def unbroken(app):
    assert [problem.message for problem in app.exception] == []
    return app


def warnings(app) -> list[str]:
    return [box.value.replace("\\", "") for box in app.warning]


def test_the_pages_name_what_is_damaged_and_show_the_rest(home, start):
    edit(run(home) / "labels.json", "größe", "große")
    bomb(home)
    app = start("components/gallery", run=run(home).name)
    assert any(f"are damaged (labels.json {CHANGED})" in text for text in warnings(app))
    go(app, "groups/differences")
    assert any(f"delete {selection(home)}, then" in text for text in warnings(app))
    assert sentences(app) == []
    kept, *doomed = [one for one in RunStore(home).list() if one.config.dataset == data(home).name]
    for one, how in zip(doomed, ("gone", "nested"), strict=False):
        DAMAGES[how](one.path / "config.json")
    app = go(app, "data/open")
    for one in doomed[:2]:
        (told,) = [text for text in warnings(app) if f"Fit {one.id} is damaged" in text]
        assert told.endswith("delete it or fit it again.")
        healthy(app.button(key=f"drop-{one.id}").click().run())
        assert not os.path.lexists(one.path)
    assert kept.id in {one.id for one in RunStore(home).list()}


def test_a_link_to_a_damaged_or_absent_run_gives_a_sentence_and_the_page_lives(start, appca_home):
    first = address(start(k="3", l="1"))
    for damage in (lambda folder: rewrite(folder / "config.json", info=[1]), shutil.rmtree):
        damage(appca_home / "runs" / first["run"])
        app = unbroken(start(**first))
        if damage is shutil.rmtree:
            healthy(app)
            continue
        (told,) = sentences(app)
        assert told.startswith(f"Fit {first['run']} is damaged")
        assert html(app).count('class="ca-piece"') == 3, "K of the link, fitted again"
        assert address(healthy(app.run()))["run"] == first["run"]
        assert RunStore(appca_home).damaged() == {}
    app.number_input(key="set-random_state").set_value(5).run()
    linked = address(healthy(app))
    RunStore(appca_home).delete(linked["run"])
    app = healthy(start(**linked))
    assert any(f"The fit {linked['run']} of this link" in box.value for box in app.info)
    assert address(app)["run"] != linked["run"]
    assert not any("of this link" in box.value for box in healthy(app.run()).info), "said once"


def test_a_run_that_cannot_be_read_for_a_while_is_kept_as_it_was(start, appca_home, monkeypatch):
    app = start()
    run = address(healthy(app))["run"]
    RunStore(appca_home).rename(run, "hours of work")

    def times() -> dict[Path, int]:
        return {path: path.stat().st_mtime_ns for path in (appca_home / "runs").rglob("*")}

    before = times()
    for reason in (
        OSError(errno.EMFILE, "Too many open files"),
        PermissionError(13, "No"),
        MemoryError(),
    ):

        def fail(*_: object, why: Exception = reason) -> None:
            raise why

        with monkeypatch.context() as patch:
            patch.setattr(store, "_load", fail)
            app.run()
        (told,) = sentences(unbroken(app))
        assert f"fit {run} cannot be read now" in told, reason
        assert address(app)["run"] == run
    assert times() == before, "neither deleted nor fitted again"
    healthy(app.run())
    assert RunStore(appca_home).get(run).name == "hours of work"


def test_data_that_are_damaged_or_gone_are_left_with_a_sentence(start, appca_home):
    data, wine = DatasetStore(appca_home), load("wine")
    cut(data.folder / data.put(wine) / "matrix.npy")
    one = unbroken(start(data=wine.digest))
    assert f"data set {wine.digest[:12]} is damaged" in sentences(one)[0]
    assert "Handwritten digits" in html(one)
    two = start("data/open")
    for app in (go(one, "data/open"), two):
        app.button(key="source-wine-open").click().run()
        assert "Wine" in html(healthy(app))
    data.delete(address(one)["data"])
    healthy(go(one, "explore"))
    assert "Wine" in html(healthy(two.run())), "as long as they are open"
    services._opened.clear()  # as after many other data sets
    two.run()
    assert "no stored data set" in sentences(unbroken(two))[0]
    assert "Handwritten digits" in html(two)
    healthy(go(two, "data/open"))
    two.button(key="source-wine-open").click().run()
    assert "Wine" in html(healthy(two))
    assert "Wine" in html(healthy(one.run())), "what the one has loaded again is there for both"


def test_a_home_that_is_no_folder_is_a_sentence_until_it_is_one(start, tmp_path, monkeypatch):
    place = tmp_path / "home"
    place.write_text("a file")
    monkeypatch.setenv("APPCA_HOME", str(place))
    app = unbroken(start())
    (told,) = sentences(app)
    assert told.endswith("APPCA_HOME.")
    place.unlink()
    assert "Handwritten digits" in html(healthy(app.run()))


# several sessions of one server


def test_nothing_of_one_session_shows_in_another_at_the_same_time(start):
    one, two = start(), start("data/open")
    select(one, [3, 5, 800])
    assert "sel" not in address(healthy(two.run()))
    select(two, [4])
    assert address(healthy(one.run()))["sel"] != address(two)["sel"]
    give(two, ("two-secret.csv", table()))
    give(go(one, "data/open"), ("mine.csv", table("item one")))
    assert "two-secret" in html(healthy(two.run()))
    assert "two-secret" not in html(healthy(go(one, "explore")))
    assert address(one)["data"] != address(two)["data"]


def test_work_deleted_in_one_tab_is_fitted_again_in_the_other(start, appca_home):
    one, two = start(), start("data/open")
    (run,) = RunStore(appca_home).list()
    stored = (appca_home / "runs" / run.id).rename(appca_home / "elsewhere")
    two.text_input(key=f"name-{run.id}").set_value("late").run()
    assert f"no fit “{run.id}” to rename" in sentences(unbroken(two))[0]
    stored.rename(run.path)
    healthy(two.run())
    RunStore(appca_home).delete(run.id)
    two.button(key=f"open-{run.id}").click().run()
    assert address(healthy(two))["k"] == "4", "its settings are opened, to be fitted again"
    RunStore(appca_home).delete(run.id)
    for page in ("explore", "export"):
        healthy(go(one, page))
    assert address(one)["run"] == run.id
    assert RunStore(appca_home).get(run.id).fitted.scores.shape == (1797, 4)
