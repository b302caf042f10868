"""ComponentNumbers of components that stay over K, previews, windows and old runs."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from appca.data.preprocessing import suggest
from appca.data.sources.builtin import load
from appca.runs import labels, numbering
from appca.runs.configuration import RunConfig
from appca.runs.fit import fit_run
from appca.runs.numbering import ComponentNumbers, numbered
from appca.runs.preview import preview
from appca.runs.run import FitResult
from appca.runs.store import RunStore
from appca.storage.errors import InputError
from tests.fitted_runs import fitted_run, info_of

E = np.eye(8)
DATASET = "d" * 64


@pytest.fixture
def home(tmp_path):
    return tmp_path


def stored(home, components, seed=0, model="aPPCA", dataset=DATASET, **settings):
    """A run with the given components, as it would be stored after a fit with this seed."""
    W = np.asarray(components, float)
    K = len(W)
    sizes = {"n_components": K, "n_active": 1, "random_state": seed}
    config = RunConfig(dataset, {}, model, sizes, **settings)
    active = np.eye(K, dtype=bool)[np.arange(3 * K) % K]
    fitted = fitted_run(active, components=W, n_active=1, **_features())
    return RunStore(home).save(config, FitResult(fitted, info_of(n_rows=3 * K)))


def _features():
    from appca.data.preprocessing import Fitted

    return {"mean": np.zeros(8), "preprocessing": Fitted(1.0, np.zeros(8), np.ones(8), None)}


def mixed(a, b, degrees):
    angle = np.deg2rad(degrees)
    return np.cos(angle) * a + np.sin(angle) * b


def test_digits_keep_numbers_and_signs_from_6_to_7_to_6_and_from_preview_to_fit(home):
    dataset = load("digits")
    store, numbers, shown = RunStore(home), ComponentNumbers(home), []
    for K in (6, 7, 6):
        sizes = {"n_components": K, "n_active": 2, "n_init": 1}
        config = RunConfig(dataset.digest, suggest(dataset).to_dict(), "aPPCA", sizes)
        begun = preview(dataset, config).fitted
        at_first = numbers.of_preview(config, begun)
        run = store.save(config, fit_run(dataset, config))
        found = numbers.of_run(run)
        assert found.numbers == at_first.numbers
        before, after = numbered(begun, at_first), numbered(run.fitted, found)
        assert cosines(before, after).min() > 0.9  # signs, too
        shown.append((found, dict(zip(found.numbers, unit(after), strict=True))))
    (six, of_six), (_, of_seven), (again, _) = shown
    assert sorted(six.numbers) == [1, 2, 3, 4, 5, 6]
    assert again == six
    shared = of_six.keys() & of_seven.keys()
    assert len(shared) >= 3
    assert all(of_six[n] @ of_seven[n] > 0.9 for n in shared)


def test_a_fit_made_ahead_is_seen_with_the_numbers_it_gets_and_decides_nothing(home):
    dataset = load("digits")
    store, numbers = RunStore(home), ComponentNumbers(home)
    results = {}
    for K in (6, 7, 5):
        sizes = {"n_components": K, "n_active": 2, "n_init": 1}
        config = RunConfig(dataset.digest, suggest(dataset).to_dict(), "aPPCA", sizes)
        results[K] = config, fit_run(dataset, config)
    numbers.of_run(store.save(*results[6]))
    for K in (7, 5, 7):
        numbers.expected(results[K][0], results[K][1].fitted)
    seven = numbers.expected(results[7][0], results[7][1].fitted)
    new = sorted(set(seven.numbers) - set(range(1, 7)))
    assert new == list(range(7, 7 + len(new))), "what was only looked at has taken no number"
    assert numbers.of_run(store.save(*results[7])) == seven


def unit(fitted):
    W = fitted.components.astype(float)
    return W / np.linalg.norm(W, axis=1, keepdims=True)


def cosines(one, other):
    return (unit(one) * unit(other)).sum(axis=1)


def test_the_first_run_counts_and_others_follow_turned_and_in_another_order(home):
    first = ComponentNumbers(home).of_run(stored(home, E[:3]))
    assert first == ((1, 2, 3), (1, 1, 1), ("", "", ""))
    other = stored(home, [E[5], -E[2], mixed(E[0], E[6], 20), mixed(E[1], E[7], 60)], seed=1)
    assert ComponentNumbers(home).of_run(other) == ((4, 3, 1, 5), (1, -1, 1, 1), ("",) * 4)


def test_a_component_that_is_like_two_goes_to_the_nearer_and_each_number_once(home):
    ComponentNumbers(home).of_run(stored(home, [E[0], mixed(E[0], E[1], 50)]))
    both = stored(home, [mixed(E[0], E[1], 24), mixed(E[0], E[1], 30)], seed=1)
    assert ComponentNumbers(home).of_run(both).numbers == (1, 2)


def test_the_registry_does_not_drift(home):
    numbers = ComponentNumbers(home)
    runs = [stored(home, [mixed(E[0], E[1], 30 * step)], seed=step) for step in range(4)]
    found = [numbers.of_run(run).numbers for run in runs]
    assert found == [(1,), (1,), (2,), (2,)]
    assert numbers.of_run(runs[0]).numbers == (1,)


def test_data_sets_and_models_have_numbers_of_their_own(home):
    numbers = ComponentNumbers(home)
    numbers.of_run(stored(home, E[:3]))
    assert numbers.of_run(stored(home, E[5:6], dataset="e" * 64)).numbers == (1,)
    assert numbers.of_run(stored(home, E[5:6], seed=2)).numbers == (4,)


def test_what_was_decided_stays_with_the_run_whatever_becomes_of_the_registry(home):
    run = stored(home, E[:2])
    ComponentNumbers(home).of_run(stored(home, E[4:6], seed=1))
    found = ComponentNumbers(home).of_run(run)
    assert found.numbers == (3, 4)
    for file in (home / "numbers").glob("*/*"):
        file.write_bytes(b"damaged")
    assert ComponentNumbers(home).of_run(run) == found
    assert ComponentNumbers(home).of_run(stored(home, -E[1:2], seed=3)) == ((4,), (-1,), ("",))


@pytest.mark.parametrize("text", ["", "{", '{"numbers": [1, 1], "signs": [1, 1], "names": []}'])
def test_a_damaged_mapping_is_decided_anew(home, text):
    run = stored(home, E[:2])
    found = ComponentNumbers(home).of_run(run)
    (run.path / numbering.FILE).write_text(text)
    assert ComponentNumbers(home).of_run(run) == found


def test_two_windows_at_once_agree(home):
    runs = [stored(home, np.roll(E, k, axis=0)[:5], seed=k) for k in range(4)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: ComponentNumbers(home).of_run(runs[k % 4]), range(16)))
    assert all(found[k] == found[k % 4] for k in range(16))
    by_direction = {}
    for k in range(4):
        for number, direction in zip(found[k].numbers, np.roll(E, k, axis=0)[:5], strict=True):
            by_direction.setdefault(int(direction.argmax()), set()).add(number)
    assert all(len(numbers) == 1 for numbers in by_direction.values())
    assert len(set.union(*by_direction.values())) == len(by_direction)


def test_names_and_turns_are_those_of_the_number_in_all_runs(home):
    numbers = ComponentNumbers(home)
    one, other = stored(home, E[:3]), stored(home, [E[2], -E[1]], seed=1)
    numbers.of_run(one), numbers.of_run(other)
    assert numbers.rename(one, 1, "  slant \n of a digit ").names == ("", "slant of a digit", "")
    assert numbers.flip(one, 1).signs == (1, -1, 1)
    assert numbers.of_run(other) == ((3, 2), (1, 1), ("", "slant of a digit"))
    turned = [numbered(run.fitted, numbers.of_run(run)) for run in (one, other)]
    assert np.array_equal(turned[0].components[1], turned[1].components[1])
    assert numbers.rename(other, 1, "").names == ("", "")
    assert numbers.flip(other, 1).signs == (1, -1)
    assert numbers.of_run(one) == ((1, 2, 3), (1, 1, 1), ("", "", ""))


def test_old_names_and_signs_stay(home):
    one, other = stored(home, E[:3]), stored(home, [E[2], E[1], E[5]], seed=1)
    labels.rename(one, 1, "slant")
    labels.flip(one, 2)
    labels.rename(other, 1, "tilt")
    labels.rename(other, 0, "width")
    labels.flip(other, 2)
    numbers = ComponentNumbers(home)
    assert numbers.of_run(one) == ((1, 2, 3), (1, 1, -1), ("", "slant", ""))
    assert numbers.of_run(other) == ((3, 2, 4), (-1, 1, -1), ("width", "tilt", ""))
    assert numbers.of_run(one).names == ("", "slant", "width")
    assert numbers.rename(other, 1, "lean").names == ("width", "lean", "")
    assert numbers.of_run(one).names == ("", "lean", "width")


def test_names_that_came_in_a_file_stay_with_their_run(home):
    foreign = stored(home, E[:2], imported="a" * 64)
    labels.rename(foreign, 0, "buy now")
    own = stored(home, E[:2])
    numbers = ComponentNumbers(home)
    assert numbers.of_run(foreign) == ((1, 2), (1, 1), ("buy now", ""))
    assert numbers.of_run(own) == ((1, 2), (1, 1), ("", ""))


def test_a_preview_that_is_never_fitted_gives_its_numbers_back(home):
    numbers = ComponentNumbers(home)
    numbers.of_run(stored(home, E[:2]))
    for seed in range(numbering.PREVIEWS + 3):
        tried = stored(home / "elsewhere", [mixed(E[4], E[5], 50 * seed)], seed=seed)
        found = numbers.of_preview(tried.config, tried.fitted)
        assert 3 <= found.numbers[0] <= 3 + numbering.PREVIEWS
        assert numbers.of_preview(tried.config, tried.fitted) == found


def test_a_fit_that_ends_elsewhere_keeps_the_numbers_of_its_preview(home):
    numbers = ComponentNumbers(home)
    numbers.of_run(stored(home, E[:1]))
    tried = stored(home / "elsewhere", [E[0], E[2], E[3]], seed=7)
    assert numbers.of_preview(tried.config, tried.fitted).numbers == (1, 2, 3)
    wider = stored(home / "elsewhere", [E[3], E[2], E[0], E[6]], seed=8)
    assert numbers.of_preview(wider.config, wider.fitted).numbers == (3, 2, 1, 4)
    fit = stored(home, [mixed(E[6], E[4], 70), -mixed(E[3], E[4], 60), -E[2], E[0]], seed=8)
    assert fit.config == wider.config
    assert numbers.of_run(fit)[:2] == ((4, 3, 2, 1), (1, -1, -1, 1))
    other = stored(home, [E[7], E[5], E[6]], seed=9)  # what nobody fitted is no longer known
    assert numbers.of_run(other).numbers == (5, 6, 7)


def test_a_full_disk_shows_numbers_and_refuses_names(home, monkeypatch):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    run = stored(home, E[:2])
    monkeypatch.setattr(numbering, "write_numbered", full)
    monkeypatch.setattr(numbering, "write_json", full)
    assert ComponentNumbers(home).of_run(run).numbers == (1, 2)
    assert ComponentNumbers(home).of_preview(run.config, run.fitted).numbers == (1, 2)
    with pytest.raises(InputError, match=r"names of fit .* could not be stored in .*No space left"):
        ComponentNumbers(home).rename(run, 0, "slant")
