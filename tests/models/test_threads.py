"""Threads, compiled kernels on disk, and exponentials and logarithms against NumPy."""

import importlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose as close
from numpy.testing import assert_array_equal as equal
from threadpoolctl import threadpool_info

from appca import AdaptivePPCA
from appca.models import threads
from appca.models.threads import hold_blas, in_order, single_threaded_blas
from tests.models.synthetic import planted


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_results_and_errors_come_in_the_order_of_the_items(cores, monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: cores)
    assert list(in_order(lambda x: x**2, range(12))) == [x**2 for x in range(12)]
    assert list(in_order(str, [])) == []
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda x: 1 // x, [1, 0, 1]))
    assert threads._holders.count == 0


def in_another_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


@pytest.fixture
def two_threads():
    before = blas_threads()
    hold_blas(2)
    yield
    hold_blas(max(before))


@pytest.mark.usefixtures("two_threads")
def test_whichever_thread_holds_blas_it_is_held():
    def held():
        with single_threaded_blas():
            return blas_threads()

    for _ in range(2):
        assert held() == {1}
        assert in_another_thread(held) == {1}
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_threads")
def test_blas_gets_its_threads_back_whichever_thread_is_the_last_to_hold_it():
    first, last = single_threaded_blas(), single_threaded_blas()
    with ThreadPoolExecutor(1) as other:
        first.__enter__()
        other.submit(last.__enter__).result()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        other.submit(last.__exit__, None, None, None).result()
    assert blas_threads() == {2}
    in_another_thread(lambda: hold_blas(1))
    assert blas_threads() == {1}


def test_blas_gets_its_threads_back_after_an_error_and_those_asked_for_in_the_middle():
    before = blas_threads()
    with pytest.raises(KeyError), single_threaded_blas():
        raise KeyError
    assert blas_threads() == before
    with single_threaded_blas():
        hold_blas(2)
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    hold_blas(max(before))
    assert blas_threads() == before


def test_neither_fits_beside_it_nor_the_number_of_cores_move_a_bit(seed, monkeypatch):
    X = planted(9000, 20, 4, 2, seed=seed).X
    models = [AdaptivePPCA(4, 2, random_state=0, max_iter=5) for _ in range(5)]
    for cores, model in enumerate(models[:2], start=1):
        monkeypatch.setattr(threads, "cores", lambda cores=cores: cores)
        model.fit(X)
    workers = [threading.Thread(target=model.fit, args=(X,)) for model in models[2:]]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for model in models[1:]:
        equal(model.components_, models[0].components_)
        equal(model.score_samples(X), models[0].score_samples(X))


FORKED = """
import os, signal, sys
from appca.models import threads
from appca.models.threads import in_order, single_threaded_blas

threads.cores = lambda: 2
assert list(in_order(abs, [-1, -2, -3])) == [1, 2, 3]  # the parent has threads now
with single_threaded_blas():
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that waits for threads it does not have dies of this
        assert threads._holders.count == 0
        assert list(in_order(abs, [-4, -5, -6])) == [4, 5, 6]
        os._exit(0)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_child_has_threads_of_its_own():
    ran = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


SOURCE = """
from typing import NamedTuple

from appca.models.numeric_kernels import kernel


class {name}(NamedTuple):
    x: float


@kernel
def doubled(given):
    return {factor} * given.x
"""


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)

    def load(name, factor):
        source, path = SOURCE.format(name=name, factor=factor), tmp_path / "cached_kernels.py"
        if not path.exists() or path.read_text() != source:
            path.write_text(source)
        importlib.invalidate_caches()
        sys.modules.pop("cached_kernels", None)
        return importlib.import_module("cached_kernels")

    yield load
    sys.modules.pop("cached_kernels", None)


def test_a_cache_that_names_a_class_of_an_earlier_version_is_no_obstacle(loaded):
    before = loaded("Before", 2.0)
    assert before.doubled(before.Before(3.0)) == 6.0
    after = loaded("Afterwards", 4.0)
    assert after.doubled(after.Afterwards(3.0)) == 12.0


def test_exponentials_are_exact_to_a_few_roundings():
    from appca.models.numeric_kernels import LANES, LEAST, exponentials

    given = np.linspace(1.2 * LEAST, 0.0, 40 * LANES)
    found, power = given.copy(), np.empty(LANES)
    for start in range(0, len(found), LANES):
        exponentials(found[start : start + LANES], power, power.view(np.int64))
    inside = given > LEAST
    close(found[inside], np.exp(given[inside]), rtol=1e-15)
    assert found[-1] == 1.0
    assert not found[~inside].any()
    assert (~inside).sum() > LANES


def test_logarithms_are_exact_to_a_few_roundings(seed):
    from appca.models.numeric_kernels import LANES, logarithms

    rng = np.random.default_rng(seed)
    wide = np.exp(rng.uniform(-700.0, 700.0, 40 * LANES))
    near = 1.0 + np.r_[rng.uniform(-0.5, 1.5, 20 * LANES - 2), 0.0, 1e-15]
    for given in (wide, near, np.repeat([0.5, 1.0, 2.0, np.sqrt(2.0)], LANES)):
        found, power = given.copy(), np.empty(LANES)
        for start in range(0, len(given) - LANES + 1, LANES):
            part = found[start : start + LANES]
            logarithms(part, part.view(np.int64), power)
        close(found, np.log(given), rtol=1e-14, atol=3e-16)
