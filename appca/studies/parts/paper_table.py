"""Table 1 of the paper as printed: reconstruction errors, by its caption mean absolute ones."""

DESIGNS = ("sparse", "dense", "subspace", "balanced", "single")
COLUMNS = tuple((design, K) for design in DESIGNS for K in (10, 20))
PRINTED: dict[str, tuple[float, ...]] = {
    "FA": (0.012, 0.014, 0.012, 0.014, 0.012, 0.015, 0.088, 0.099, 0.012, 0.014),
    "fsFA": (0.014, 0.018, 0.015, 0.018, 0.016, 0.018, 0.090, 0.101, 0.014, 0.019),
    "isFA": (0.023, 0.042, 0.021, 0.042, 0.024, 0.046, 0.073, 0.970, 0.045, 0.075),
    "aFA Gibbs": (0.014, 0.019, 0.012, 0.019, 0.013, 0.021, 0.047, 0.056, 0.015, 0.019),
    "aFA EM": (0.011, 0.013, 0.011, 0.013, 0.012, 0.014, 0.034, 0.044, 0.012, 0.014),
}
# Ten times every other error of its column, and as an absolute or a squared error out of all
# proportion to what is measured here (`table1_claims`): .970 is probably a misprint of .097.
READ_AS = {("isFA", "balanced", 20): 0.097}


def printed(method: str | None, design: str, n_components: int) -> float | None:
    """Give the number that the paper prints; None where it has none."""
    if method is None or (design, n_components) not in COLUMNS:
        return None
    return PRINTED[method][COLUMNS.index((design, n_components))]


def read(method: str | None, design: str, n_components: int) -> float | None:
    """Give the number that the paper probably means."""
    if method is None:
        return None
    return READ_AS.get((method, design, n_components), printed(method, design, n_components))
