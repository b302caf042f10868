"""Rules for selections beside decision trees with as many conditions, on rows held out.

``python -m benchmarks.rules`` prints F1 of both on ten selections, for three seeds of the
model and eight splits each, and the time of a search.
"""

import time

import numpy as np
import pandas as pd

from appca import AdaptivePPCA
from appca.analysis.groups.rule import rule_table
from appca.analysis.groups.rule_search import described

SETS = {  # data set, K and L, selection
    "wine: grower 1": ("wine", 4, 2, 0),
    "wine: grower 2": ("wine", 4, 2, 1),
    "wine: grower 3": ("wine", 4, 2, 2),
    "breast cancer: malignant": ("breast_cancer", 4, 2, "malignant"),
    "breast cancer: cluster 1 of 4": ("breast_cancer", 4, 2, None),
    "digits: zeros": ("digits", 8, 3, 0),
    "digits: fours": ("digits", 8, 3, 4),
    "digits: sixes": ("digits", 8, 3, 6),
    "digits: cluster 1 of 4": ("digits", 8, 3, None),
    "wine: cluster 1 of 4": ("wine", 4, 2, None),
}
SEEDS, SPLITS = 3, 8  # of the model; rows held out, other ones for each seed


def selection(
    name: str, K: int, L: int, wanted: object, seed: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return what a rule may be about, without labels, and the rows to describe."""
    from sklearn.cluster import KMeans

    from appca.data.sources.builtin import load

    dataset = load(name)
    X = dataset.X.astype(float)
    X = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9) if dataset.image_shape is None else X / 16
    rows = AdaptivePPCA(K, L, random_state=seed).fit(X).describe(X)
    features = {}
    if dataset.image_shape is None:
        features = dict(zip(dataset.column_names, dataset.X.T, strict=True))
    if wanted is None:
        mask = KMeans(4, n_init=4, random_state=0).fit_predict(X) == 0
    else:
        label = next(iter(dataset.labels.values()))
        values = np.unique(label)
        mask = label == (values[wanted] if isinstance(wanted, int) else wanted)
    return rule_table(rows.scores, rows.active, features), mask


def main() -> None:
    """Print both tables."""
    for name, of in SETS.items():
        rules = []
        for seed in range(SEEDS):
            table, mask = selection(*of, seed)
            splits = range(seed * SPLITS, (seed + 1) * SPLITS)
            rules += [described(table, mask, random_state=split, rival=True) for split in splits]
        f1 = np.array([[rule.quality.f1, rule.tree.f1] for rule in rules if rule.tree])
        ours, trees = f1.mean(axis=0)
        gains = np.subtract(*f1.T)
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        by_seed = " ".join(f"{gain:+.3f}" for gain in gains.reshape(SEEDS, -1).mean(axis=1))
        bounds = np.mean([rule.n_bounds for rule in rules])
        print(
            f"{name:30} {mask.sum():4} rows: rule {ours:.3f}, tree {trees:.3f}, "
            f"{ours - trees:+.3f} ± {error:.3f} ({by_seed}), {bounds:.1f} bounds; "
            f"{rules[0].sentence()}"
        )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 500))
    inside = (X[:, 7] > 0.3) & (X[:, 100] < 0.8) & (X[:, 333] > 0)
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(500)])
    start = time.perf_counter()
    box = described(table, inside)
    print(f"50,000 x 500: {time.perf_counter() - start:.2f} s, F1 {box.quality.f1:.3f}")


if __name__ == "__main__":
    main()
