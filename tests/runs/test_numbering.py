"""Numbers of components: 1 to K in every run, kept over K, previews, windows and old homes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from appca.data.preprocessing import Fitted
from appca.runs import numbering, store
from appca.runs.numbering import ComponentNumbers, Numbering, directions, numbered, numbered_after
from appca.runs.run import FitResult, RunConfig
from appca.runs.store import Labels, RunStore
from appca.words import InputError
from tests.fitted_runs import fitted_run, info_of

E = np.eye(8)


@pytest.fixture
def home(tmp_path):
    return tmp_path


def plain(k):
    return Numbering(tuple(range(k)), (1,) * k, ("",) * k)


def stored(home, components, seed=0, scale=1.0, **settings):
    """A run with the given components, as it would be stored after a fit with this seed.

    `scale` is what its preprocessing has divided the features by.
    """
    W = np.asarray(components, float)
    K = len(W)
    sizes = {"n_components": K, "n_active": 1, "random_state": seed}
    config = RunConfig("d" * 64, {}, "aPPCA", sizes, **settings)
    before = Fitted(1.0, np.zeros(8), scale * np.ones(8), None)
    given = {"components": W, "n_active": 1, "mean": np.zeros(8), "preprocessing": before}
    fitted = fitted_run(np.eye(K, dtype=bool)[np.arange(3 * K) % K], **given)
    return RunStore(home).save(config, FitResult(fitted, info_of(n_rows=3 * K)))


def seen(home, run, screen=None):
    """The run as it is on screen after another one."""
    before = None if screen is None else directions(screen)
    return numbered(run.fitted, ComponentNumbers(home).of_run(run, before))


def test_every_walk_over_k_counts_from_1_to_k_and_keeps_what_it_can(home):
    rng, screen, first, last = np.random.default_rng(0), None, {}, {}
    for step, K in enumerate([4, 7, 5, 8, 3, 6, 4, 2, 7, 5]):
        rows = rng.permutation(8)[:K]
        run = stored(home, E[rows] * rng.choice([-1, 1], (K, 1)), seed=step)
        found = seen(home, run, screen)
        assert sorted(ComponentNumbers(home).of_run(run).order) == list(range(K))
        now = {int(np.abs(w).argmax()): (j, w.sum()) for j, w in enumerate(found.components)}
        for axis, (place, sign) in now.items():
            assert sign == first.setdefault(axis, sign), "a direction keeps its sign for good"
            if last.get(axis, K) < K:
                assert place == last[axis]
        screen, last = found, {axis: place for axis, (place, _) in now.items()}


def test_components_are_compared_at_length_one_in_units_of_the_data(home):
    def mixed(a, b, degrees):
        return np.cos(np.deg2rad(degrees)) * a + np.sin(np.deg2rad(degrees)) * b

    screen = seen(home, stored(home, [E[0], mixed(E[1], E[2], 45)]))
    scale = np.array([1, 10, 1, 1, 1, 1, 1, 1.0])
    as_fitted = -mixed(E[1], E[2], 45) / scale  # 39 degrees from what it is in the data
    other = seen(home, stored(home, [2 * as_fitted, E[0]], seed=1, scale=scale), screen)
    assert np.array_equal(directions(other).round(6), directions(screen).round(6))
    far = stored(home, [E[5], 3 * mixed(E[0], E[3], 60)], seed=2)
    found = ComponentNumbers(home).of_run(far, directions(screen))
    assert found.order == (0, 1), "60 degrees apart is another component, however long"


def test_one_above_k_takes_a_free_number_with_its_name_and_sign(home):
    numbers = ComponentNumbers(home)
    six = stored(home, E[:6])
    numbers.rename(six, 5, "stroke")
    numbers.flip(six, 5)
    screen = seen(home, six)
    four = stored(home, [-E[5], E[7], E[1], E[0]], seed=1)
    found = seen(home, four, screen)
    assert found.names == ("", "", "stroke", "")
    assert np.array_equal(found.components, [E[0], E[1], -E[5], E[7]])
    again = seen(home, stored(home, np.roll(E[:6], 2, axis=0), seed=2), found)
    assert np.array_equal(again.components[:3], found.components[:3])
    assert again.names[2] == "stroke"


def test_a_fit_made_ahead_is_seen_with_the_numbers_it_gets_and_decides_nothing(home):
    numbers = ComponentNumbers(home)
    screen = directions(seen(home, stored(home, E[:3])))
    ahead = stored(home / "elsewhere", [E[5], -E[2], E[0], E[1]], seed=1)
    expected = numbers.expected(ahead.config, ahead.fitted, screen)
    assert expected == ((2, 3, 1, 0), (1, 1, -1, 1), ("",) * 4)
    assert not (home / "runs" / ahead.id).exists()
    run = stored(home, [E[5], -E[2], E[0], E[1]], seed=1)
    assert numbers.of_run(run, screen) == expected
    shown = seen(home, stored(home, E[:3]))
    after = numbered_after(stored(home / "x", [E[2], -E[0]], seed=2).fitted, shown)
    assert np.array_equal(after.components, [E[0], E[2]]), "with the sign on screen"


def test_what_was_decided_stays_with_the_run_whatever_becomes_of_the_registry(home):
    screen = seen(home, stored(home, [E[1], -E[0]], seed=1))
    run = stored(home, E[:2])
    found = ComponentNumbers(home).of_run(run, directions(screen))
    assert found == ((1, 0), (1, -1), ("", ""))
    assert ComponentNumbers(home).rename(run, 1, "tilt").names == ("", "tilt")  # on the screen
    assert store.labels(run).names == ("tilt", ""), "in the order of the estimator"
    assert RunStore(home).get(run.id).kept
    assert ComponentNumbers(home).rename(run, 1, "") == found
    for file in (home / "numbers").glob("*/*"):
        file.write_bytes(b"damaged")
    assert ComponentNumbers(home).of_run(run) == found
    assert ComponentNumbers(home).of_run(stored(home, E[:1], seed=3)).signs == (-1,)
    run = stored(home, E[6:], seed=4)
    found = ComponentNumbers(home).of_run(run)
    for numbers, more in (([1, 1], ""), ([1, 2], ', "places": [1, 3]')):
        text = f'{{"numbers": {numbers}, "signs": [1, 1], "names": ["", ""]{more}}}'
        for damaged in ("", "{", text):
            (run.path / numbering.FILE).write_text(damaged)
            assert ComponentNumbers(home).of_run(run) == found


def test_old_names_and_signs_stay_and_names_from_a_file_are_of_their_run(home):
    one, other = stored(home, E[:3]), stored(home, [E[2], E[1], E[5]], seed=1)
    store.put(one, Labels(("", "slant", ""), (1, 1, -1)))
    store.put(other, Labels(("width", "tilt", ""), (1, 1, -1)))
    numbers = ComponentNumbers(home)
    assert numbers.of_run(one) == ((0, 1, 2), (1, 1, -1), ("", "slant", ""))
    assert numbers.of_run(other) == ((0, 1, 2), (-1, 1, -1), ("width", "tilt", ""))
    assert numbers.of_run(one).names == ("", "slant", "width")
    assert numbers.rename(other, 1, "lean").names == ("width", "lean", "")
    assert numbers.of_run(one).names == ("", "lean", "width")
    foreign = stored(home, E[6:], imported="a" * 64)
    store.put(foreign, Labels(("buy now", ""), (1, 1)))
    own = stored(home, E[6:])
    assert numbers.of_run(foreign) == ((0, 1), (1, 1), ("buy now", ""))
    assert numbers.of_run(own) == plain(2)


def test_two_windows_at_once_agree(home):
    runs = [stored(home, np.roll(E, k, axis=0)[:5], seed=k) for k in range(4)]
    screens = [directions(run.fitted) for run in runs]
    with ThreadPoolExecutor(8) as pool:
        asked = (runs * 4, [screen for screen in screens for _ in runs])
        found = list(pool.map(ComponentNumbers(home).of_run, *asked))
    assert found == found[:4] * 4


def test_names_and_turns_are_those_of_the_direction_in_all_runs(home):
    numbers = ComponentNumbers(home)
    one, other = stored(home, E[:3]), stored(home, [E[2], -E[1]], seed=1)
    numbers.of_run(one), numbers.of_run(other)
    assert numbers.rename(one, 1, "  slant \n of a digit ").names == ("", "slant of a digit", "")
    assert numbers.flip(one, 1).signs == (1, -1, 1)
    assert numbers.of_run(other) == ((0, 1), (1, 1), ("", "slant of a digit"))
    turned = [numbered(run.fitted, numbers.of_run(run)) for run in (one, other)]
    assert np.array_equal(turned[0].components[1], turned[1].components[1])
    assert numbers.rename(other, 1, "").names == ("", "")
    assert numbers.flip(other, 1).signs == (1, -1)
    assert numbers.of_run(one) == plain(3)


def test_an_adopted_numbering_is_shown_as_it_came_unless_there_is_one(home):
    numbers, came = ComponentNumbers(home), Numbering((2, 0, 1), (-1, 1, -1), ("a", "", "b"))
    numbers.flip(stored(home, E[:3], seed=5), 0)  # the registry here has opinions of its own
    run = stored(home, E[:3], imported="a" * 64)
    numbers.adopt(run, came)
    assert numbers.of_run(run) == came
    numbers.adopt(run, plain(3))
    assert numbers.of_run(run) == came


def test_a_full_disk_shows_numbers_and_refuses_names(home, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    run = stored(home, E[:2])
    monkeypatch.setattr(numbering, "write_numbered", full)
    monkeypatch.setattr(numbering, "write_json", full)
    assert ComponentNumbers(home).of_run(run) == plain(2)
    with pytest.raises(InputError, match=r"names of fit .* could not be stored in .*No space left"):
        ComponentNumbers(home).rename(run, 0, "slant")
