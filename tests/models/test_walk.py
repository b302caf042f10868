"""How many files of ours a reader of a fit and of a query opens, in the order of first calls."""

import sys
from pathlib import Path

import numpy as np

import appca
from appca import AdaptivePPCA


def walk(ask):
    """Run `ask`; give the files of its functions, each by its first call, without lambdas."""
    home, seen = str(Path(appca.__file__).parent), {}

    def hear(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(home) and code.co_name[0] != "<":
            seen.setdefault((code.co_filename, code.co_qualname))

    sys.setprofile(hear)
    try:
        ask()
    finally:
        sys.setprofile(None)
    files = [file for file, _ in seen]
    return [file for file, last in zip(files, [None, *files], strict=False) if file != last]


def test_a_fit_and_a_query_open_few_files():
    X = np.random.default_rng(0).standard_normal((600, 64))
    AdaptivePPCA(random_state=0, max_iter=1).fit(X)  # what is done once a process is no part of it
    model = AdaptivePPCA(random_state=0)
    stages = walk(lambda: model.fit(X))
    assert len(set(stages)) <= 14
    assert len(stages) - len(set(stages)) <= 30  # returns to a file
    assert len(set(walk(lambda: model.score_samples(X)))) <= 7
