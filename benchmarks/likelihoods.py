"""Where adaptive PPCA ends on real data, in nats a row, and the processor time it takes.

`APPCA_DATA=... python -m benchmarks.likelihoods`: default settings, seed 0, float32, data prepared
as the app does (pixels divided by 255, the 8 x 8 digits by 16).
"""

import time

from appca import AdaptivePPCA
from appca.data.preprocessing import suggest
from appca.data.sources.builtin import load

CASES = [
    ("mnist", {"n": 10_000}, 4, 2),
    ("mnist", {"n": 5000}, 12, 6),
    ("coil20", {}, 4, 2),
    ("coil20", {}, 4, 3),
    ("coil20", {}, 8, 2),
    ("coil20", {}, 12, 6),
    ("digits", {}, 12, 6),
]


def main() -> None:
    """Print one line a case."""
    for key, options, k, active in CASES:
        dataset = load(key, **options)
        X = suggest(dataset).fit(dataset.X).transform(dataset.X)
        began = time.process_time()
        model = AdaptivePPCA(k, active, random_state=0).fit(X)
        seconds = time.process_time() - began
        print(f"{dataset.name}, K = {k}, L = {active}: {model.score(X):.2f} nats, {seconds:.1f} s")


if __name__ == "__main__":
    main()
