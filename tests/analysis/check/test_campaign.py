"""Campaigns and journals: stored to the bit, gone on with after a stop, damage measured again."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from appca.analysis import compare
from appca.analysis.campaign import Campaign
from appca.analysis.choose import GridConfig, StabilityConfig
from appca.analysis.compare import MaskedConfig, ModelsConfig
from appca.data.dataset import Dataset
from appca.storage.journal import JournalStore
from appca.words import InputError
from tests.models.synthetic import planted

NAME = "0123456789ab"
SIZES = {"n_components": 3, "n_active": 2, "random_state": 0, "init": "pca", "max_iter": 20}
DATA = Dataset("planted", planted(60, 6, 4, 2, seed=1, noise=0.3).X, np.arange(60).astype(str))
CAMPAIGNS = {
    "grid": GridConfig(DATA.digest, {}, "aPPCA", SIZES, (2, 3), (1, 2), n_folds=2),
    "stability": StabilityConfig(DATA.digest, {}, "aPPCA", SIZES, repeats=3),
    "masked": MaskedConfig(DATA.digest, {"scale": "feature"}, "aPPCA", SIZES),
    "models": ModelsConfig(DATA.digest, {}, "aPPCA", {"random_state": 0}, 2, 1),
}


@dataclass(frozen=True, eq=False)
class Squares(Campaign):
    """The squares of the first numbers, as slowly as a fit."""

    folder: ClassVar[str] = "squares"
    dataset: str = DATA.digest
    max_rows: int = 6

    def steps(self):
        return [(n, f"{n} squared") for n in range(self.max_rows)]

    def measuring(self, dataset):
        return lambda step, report: (report(0.5), [step[0] ** 2 / 7])[1]


@pytest.fixture
def store(tmp_path) -> JournalStore:
    store = JournalStore(tmp_path, "things")
    store.begin(NAME, {"what": "a test"})
    return store


def test_numbers_texts_and_nothing_come_back_to_the_last_bit(store, seed):
    values = np.random.default_rng(seed).standard_normal(50) * 10.0 ** np.arange(-25, 25)
    written = [[n, float(value), None, "why: “ü”\nnext"] for n, value in enumerate(values)]
    for record in written:
        store.append(NAME, record)
    store.begin(NAME, {"what": "something else"})
    assert (store.records(NAME), store.config(NAME)) == (written, {"what": "a test"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        store.append(NAME, [float("nan")])


LINES = [[1, 2.5], [2, 3.5], [3, 0.123456789]]


@pytest.mark.parametrize(
    ("damage", "kept"),
    [
        *[(lambda content, cut=cut: content[:-cut], LINES[:2]) for cut in range(1, 20)],
        (lambda content: content.replace(b"2.5", b"2.6"), LINES[1:]),
        (lambda _content: b"\xff\xfe\x00rubbish\n\n12345678 [1]\nzzz\n", []),
    ],
)
def test_a_line_cut_short_or_changed_is_dropped_and_the_next_one_is_whole(store, damage, kept):
    for record in LINES:
        store.append(NAME, record)
    file = store.folder / NAME / "records.txt"
    file.write_bytes(damage(file.read_bytes()))
    assert store.records(NAME) == kept
    store.begin(NAME, {})
    store.append(NAME, [9])
    assert store.records(NAME) == [*kept, [9]]


@pytest.mark.parametrize("name", ["", "../../etc", "0123456789AB", "f" * 13, "x" * 12])
def test_a_name_from_an_address_reaches_no_other_folder(store, name):
    assert (store.records(name), store.config(name)) == ([], None)


def test_a_damaged_config_is_none_and_a_disk_that_refuses_gets_one_sentence(store, tmp_path):
    for text in ("", "{", "[1]", "\x00"):
        (store.folder / NAME / "config.json").write_text(text)
        assert store.config(NAME) is None
        store.begin(NAME, {"what": "again"})
        assert store.config(NAME) == {"what": "again"}
    (tmp_path / "full").write_text("a file where the folder should be")
    with pytest.raises(InputError, match=r"could not be stored in .*APPCA_HOME"):
        JournalStore(tmp_path, "full").begin(NAME, {})
    with pytest.raises(InputError, match="could not be stored"):
        JournalStore(tmp_path, "full").append(NAME, [1])


def test_each_step_is_reported_and_damaged_lines_are_measured_again(tmp_path):
    squares, told = Squares(), []
    squares.complete(DATA, tmp_path, lambda *at: told.append(at))
    assert told == [(place, share) for place in range(6) for share in (0.0, 0.5)]
    before = squares.records(tmp_path)
    assert before == {(n, f"{n} squared"): [n**2 / 7] for n in range(6)}
    file = squares.journal(tmp_path).folder / squares.id / "records.txt"
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"[", b"[[")  # the first line says that it was begun
    lines[4] = b"\x00\xff" + lines[4]
    file.write_bytes(b"".join(lines)[:-7])
    told.clear()
    squares.complete(DATA, tmp_path, lambda *at: told.append(at[0]))
    assert sorted(set(told)) == [1, 3, 5]
    assert squares.records(tmp_path) == before


def test_earlier_campaigns_are_listed_and_what_cannot_be_read_is_not(tmp_path):
    first, second = Squares(), Squares(max_rows=2)
    for squares in (first, second):
        squares.complete(DATA, tmp_path)
    journal = Squares.journal(tmp_path)
    journal.begin(NAME, {"nothing": 1})
    assert set(Squares.earlier(tmp_path)) == {first, second}
    assert next(Squares.earlier(tmp_path, first.id)) == first
    assert next(Squares.earlier(tmp_path, "../../etc")) in {first, second}
    assert list(GridConfig.earlier(tmp_path)) == []


@pytest.mark.parametrize("kind", CAMPAIGNS)
def test_an_interrupted_campaign_goes_on_where_it_was_and_ends_the_same(
    kind, tmp_path, monkeypatch
):
    monkeypatch.setattr(compare, "METHODS", ("paper", "ppca", "fa", "gaussian"))
    config, broken, told = CAMPAIGNS[kind], tmp_path / "broken", []
    config.complete(DATA, tmp_path)

    def stops_at_the_third(place, _share):
        if place == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        config.complete(DATA, broken, stops_at_the_third)
    assert list(config.records(broken)) == config.steps()[:2]
    config.complete(DATA, broken, lambda place, _share: told.append(place))
    assert sorted(set(told)) == list(range(2, len(config.steps())))
    for step, record in config.records(tmp_path).items():
        again = config.records(broken)[step]
        timed = {"grid": 2, "models": 2}.get(kind)  # the place of the seconds
        assert [v for i, v in enumerate(again) if i != timed] == [
            v for i, v in enumerate(record) if i != timed
        ]
    config.complete(DATA, broken, lambda *_: pytest.fail("everything was there"))


@pytest.mark.parametrize("kind", CAMPAIGNS)
def test_settings_come_back_and_name_the_result(kind):
    config = CAMPAIGNS[kind]
    assert type(config).from_dict(config.to_dict()) == config
    changes = [{"preprocessing": {"centre": True}}, {"parameters": SIZES | {"tol": 0.1}}]
    changes += {
        "grid": [{"n_folds": 5}, {"components": (2, 4)}, {"max_rows": 50}, {"model": "aFA"}],
        "stability": [{"way": "halves"}, {"repeats": 4}],
        "masked": [],
        "models": [{"n_active": 2}],
    }[kind]
    ids = {replace(config, **change).id for change in changes}
    assert len(ids | {config.id}) == len(changes) + 1
    assert len(config.fits(60)) == len(config.steps())


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("grid", {"model": "PPCA"}, "model with K and L"),
        ("grid", {"components": ()}, "1 to 600 cells"),
        ("grid", {"components": (1,), "actives": (2,)}, "1 to 600 cells"),
        ("grid", {"components": range(1, 60), "actives": range(1, 60)}, "choose other ranges"),
        ("grid", {"actives": (0,)}, "whole numbers from 1"),
        ("grid", {"n_folds": 1}, "whole numbers from 2"),
        ("grid", {"preprocessing": {"scale": "odd"}}, "scale must be"),
        ("stability", {"model": "PPCA"}, "Stability needs a model"),
        ("stability", {"way": "moons"}, "a way out of starts, halves"),
        ("stability", {"repeats": 1}, "between 2 and 100"),
    ],
)
def test_settings_without_meaning_are_refused_in_a_sentence(kind, change, said):
    with pytest.raises(InputError, match=said):
        replace(CAMPAIGNS[kind], **change)
