"""What scikit-learn's checks ask of estimators and some of ours refuse."""


def refused(estimator):
    """Checks that are expected to fail, with the reason: those that want weights, of chains."""
    if getattr(estimator, "inference", "em") != "gibbs":
        return {}
    names = ("s_pandas_series", "s_not_an_array", "s_list", "s_shape", "s_not_overwritten")
    names += ("_equivalence_on_dense_data",)
    return {f"check_sample_weight{name}": "chains take no weights" for name in names}
