"""Where adaptive PPCA ends on real data, in nats per row, and the processor time it takes.

`APPCA_DATA=... python -m benchmarks.likelihoods`: default settings, seed 0, float32, data prepared
as the app does (pixels divided by 255, the 8 x 8 digits by 16). Writes results/likelihoods.json;
`--untimed` leaves the seconds out of it.
"""

import time

from appca import AdaptivePPCA
from appca.data.preprocessing import suggest
from appca.data.sources.builtin import load
from benchmarks import results

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
    """Print one line a case, and write all."""
    parser = results.arguments(__doc__)
    parser.add_argument("--untimed", action="store_true", help="the machine is busy otherwise")
    given = parser.parse_args()
    rows = []
    for key, options, k, active in CASES:
        dataset = load(key, **options)
        X = suggest(dataset).fit(dataset.X).transform(dataset.X)
        began = time.process_time()
        model = AdaptivePPCA(k, active, random_state=0).fit(X)
        seconds = time.process_time() - began
        nats = model.score(X)
        rows.append({"data": dataset.name, "N": len(X), "D": X.shape[1], "K": k, "L": active})
        rows[-1] |= {"nats": nats, "processor_s": seconds}
        print(f"{dataset.name}, K = {k}, L = {active}: {nats:.2f} nats, {seconds:.1f} s")
    results.write(given.out, "likelihoods", results.untimed(rows) if given.untimed else rows)


if __name__ == "__main__":
    main()
