"""Tests of JavaScript in Node.js: the canvas, and the page's EM against the estimators."""

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

from appca import AdaptivePPCA
from appca.canvas.image_placement import spread_order
from appca.models import climb

HERE, NODE = Path(__file__).parent, shutil.which("node")
SCRIPTS = (HERE.parents[1] / "appca").rglob("*.js")


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_logic_under_node():
    known = os.environ | {"SPREAD": json.dumps(spread_order(1000).tolist())}  # as Python has it
    command = [NODE, "--test", "--test-reporter=tap", *sorted(HERE.glob("canvas_*.test.js"))]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=known
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.MULTILINE)[1]) >= 23


def test_no_script_is_too_long_to_read():
    assert {file.name for file in SCRIPTS if file.read_text().count("\n") > 900} == set()


def planted(n: int, d: int, K: int, L: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    W, z = np.linalg.qr(rng.standard_normal((d, K)))[0], np.argsort(rng.random((n, K))) < L
    return (z * rng.standard_normal((n, K))) @ W.T + 0.3 * rng.standard_normal((n, d)) + 5.0


@cache
def data_sets() -> list[tuple[np.ndarray, int, int, str]]:
    digits, iris = datasets.load_digits().data / 16, datasets.load_iris().data
    raw = datasets.load_wine().data, datasets.load_breast_cancer().data
    wine, cancer = ((X - X.mean(axis=0)) / X.std(axis=0) for X in raw)
    return [  # the default run takes the first and the sixth
        *((planted(60, 150, 5, 2), 5, 2, "shared"), (digits[:200], 8, 3, "shared")),
        *((digits[:150], 5, 4, "component"), (wine, 5, 2, "shared"), (iris, 3, 3, "component")),
        *((iris, 3, 2, "component"), (cancer[:200], 6, 2, "shared")),
        *((cancer[-150:], 7, 1, "component"), (planted(300, 20, 6, 2), 6, 2, "shared")),
        (planted(200, 30, 12, 5) * 1e3, 12, 5, "shared"),
    ]


@pytest.mark.default_cases(2)
@pytest.mark.parametrize("case", range(10))
@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_page_fits_as_the_estimators_do(tmp_path, case):
    X, K, L, latent = data_sets()[case]
    V = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:K]
    W = V.T @ climb.quartimax(np.random.default_rng(0), (X - X.mean(axis=0)) @ V.T)
    model = AdaptivePPCA(K, L, latent_variance=latent, random_state=0)
    best = model.fit(X).score_samples(X).sum()
    values = model.set_params(init=W.T).fit(X).score_samples(X)
    facts = {"n": len(X), "d": X.shape[1], "K": K, "L": L, "latent": latent}
    asked = facts | {"X": X.ravel().tolist(), "W": W.ravel().tolist()}
    (file := tmp_path / "fit.json").write_text(json.dumps(asked))
    made = subprocess.run(
        [NODE, HERE / "live_fits.js", file], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    fit = json.loads(made.stdout)
    np.testing.assert_allclose(fit["values"], values, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fit["components"], model.components_.ravel(), atol=1e-5)
    assert fit["best"] >= best - 0.02 * len(X)
