"""Adaptive factor analysis beside a dictionary with OMP, at K in the hundreds.

`APPCA_DATA=... python -m benchmarks.atoms` prints processor times of fits to 10,000 rows of MNIST
and the share of variance that is not explained in 2,000 others.
"""

import time

import numpy as np

from appca import AdaptiveFactorAnalysis
from benchmarks.methods import dictionary, dictionary_back
from benchmarks.shapes import mnist

ROWS, HELD_OUT = 10_000, 2_000
SIZES = ((64, 8), (200, 10))


def main() -> None:
    """Fit both at each size, and print a line a fit."""
    X = mnist(ROWS + HELD_OUT)[0].astype(np.float32)
    train, test = X[:ROWS], X[ROWS:]
    total = np.square(test - train.mean(axis=0)).sum()
    for K, L in SIZES:
        for name, model in (
            ("aFA", AdaptiveFactorAnalysis(K, L, random_state=0)),
            ("dictionary", dictionary(K, L, train.shape)),
        ):
            began = time.process_time()
            model.fit(train)
            took = time.process_time() - began
            ours = isinstance(model, AdaptiveFactorAnalysis)
            back = (
                model.inverse_transform(model.transform(test))
                if ours
                else dictionary_back(model, test)
            )
            left = np.square(test - back).sum() / total
            print(f"({K}, {L}) {name}: {left:.3f} not explained, {took:.1f} s", flush=True)


if __name__ == "__main__":
    main()
