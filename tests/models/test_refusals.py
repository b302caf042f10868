"""Tests of the errors of models: one sentence with the input, the rule and a remedy."""

import numpy as np
import pytest

from appca import (
    PPCA,
    AdaptiveFactorAnalysis,
    AdaptivePPCA,
    FiniteSparseFA,
    InfiniteSparseFA,
    NonparametricPPCA,
)
from appca.models.data_checks import refuse_constant
from appca.models.rows import about, centre_of
from tests.models.fits import LEARNED, rows_of
from tests.sentences import faults_of

FEATURE, SCALES, SIZES = {"noise": "feature"}, {"row_scale": "learned"}, {"n_active": "learned"}
GIBBS, HARD = {"inference": "gibbs"}, {"inference": "hard"}
SWAP = GIBBS | {"z_update": "swap"}
# words of the sentence: settings of AdaptivePPCA, for 160 rows of 7 features
APPCA = {
    "n_components must be at most 7, because X has 160 rows and 7 feature(s); got 11: choose "
    "fewer components.": {"n_components": 11},
    "n_components must be a whole number of at least 1; got 2.5.": {"n_components": 2.5},
    "n_active must be at most n_components=4; got 5: lower n_active or raise n_components.": {
        "n_active": 5
    },
    "n_active must be 'learned' or a whole number of at least 1; got 0.": {"n_active": 0},
    "n_active must be 'learned' or a whole number of at least 1; got 'all'": {"n_active": "all"},
    "init must have shape (4, 7), n_components by features; got (3, 3): pass one row per "
    "component.": {"init": np.eye(3)},
    "init must be 'auto', 'quartimax', 'annealed', 'ica', 'pca' or 'random' or an array of "
    "n_components by features; got 'best'.": {"init": "best"},
    "n_init must be 1 when init is an array; got 2: name a start to add random ones.": {
        "init": np.eye(4, 7),
        "n_init": 2,
    },
    "inference must be 'em', 'gibbs' or 'hard'; got 'vb'.": {"inference": "vb"},
    "w_update must be 'auto', 'polar', 'pymanopt' or 'sample'; got 'qr'.": {"w_update": "qr"},
    "w_update must not be 'sample' with inference='em', which maximizes: set w_update='auto' "
    "or inference='gibbs'.": {"w_update": "sample"},
    "latent_variance must be 'shared' or 'component' or a number above 0; got 0.0.": {
        "latent_variance": 0.0
    },
    "latent_variance must be 'shared' or 'component' with noise='feature'": FEATURE
    | {"latent_variance": 1.0},
    "tol must be a number of at least 0; got -1.0.": {"tol": -1.0},
    "random_state must be None, a whole number of at least 0, a Generator or a RandomState; "
    "got -1.": {"random_state": -1},
    "callback must be None or a function of one argument; got 3.": {"callback": 3},
    "whiten must be True or False; got 'yes'.": {"whiten": "yes"},
    "verbose must be True or False or a whole number": {"verbose": -1},
    "noise must be 'shared' or 'feature'; got 'each'": {"noise": "each"},
    "row_scale must be 'none' or 'learned'; got True": {"row_scale": True},
    "inference must be 'em' with noise='feature'": FEATURE | GIBBS,
    "inference must be 'em' with noise='feature' and row_scale='learned'": FEATURE | SCALES | GIBBS,
    "inference must be 'em' or 'gibbs' with row_scale": SCALES | HARD,
    "inference must be 'em' or 'gibbs' with n_active='learned'": SIZES | HARD,
    "z_update must be 'block' with row_scale=": SCALES | SWAP,
    "z_update must be 'block' with n_active=": SIZES | SWAP,
}
# of AdaptiveFactorAnalysis(2, 1), for the first 10 rows in 4 features
AFA = {
    "n_components must be at most 9, one less than the rows of X": {"n_components": 10},
    "n_active must be at most n_components=2; got 3: lower n_active": {"n_active": 3},
    "n_init must be 1 when init is an array; got 2": {"init": np.eye(2, 4), "n_init": 2},
    "init must have shape (2, 4), n_components by features; got (3, 4)": {"init": np.eye(3, 4)},
    "init must be 'auto', 'ica', 'pca', 'dictionary' or 'random' or an array of n_components by "
    "features; got 'svd'": {"init": "svd"},
    "allocation must be 'auto', 'exact' or 'best'; got 'soft'": {"allocation": "soft"},
    "loading_variance must be None or a number above 0; got 0": {"loading_variance": 0},
    "n_paths must be a whole number of at least 2; got 1": {"n_paths": 1},
}
# of every sampled model
FREE = {
    "max_components must be a whole number of at least 1; got 0.": {"max_components": 0},
    "alpha must be 'infer' or a number above 0; got -1.0.": {"alpha": -1.0},
    "thin must be a whole number of at least 1; got 0.": {"thin": 0},
    "mean must be 'learned', 'sample' or 'zero'; got 'median'.": {"mean": "median"},
    **{
        f"{name} must be a number above 0; got 0.": {name: 0}
        for name in ("noise_shape", "noise_scale", "alpha_rate")
    },
}
CASES = [
    *((AdaptivePPCA(4, 2), words, given) for words, given in APPCA.items()),
    *((AdaptiveFactorAnalysis(2, 1), words, given) for words, given in AFA.items()),
    *(
        (kind(3), words, given)
        for kind in (NonparametricPPCA, FiniteSparseFA, InfiniteSparseFA)
        for words, given in FREE.items()
    ),
    (InfiniteSparseFA(3), "loading_scale must be a number above 0; got 0.", {"loading_scale": 0}),
    (PPCA(2), "callback must be None or a function of one argument", {"callback": 3}),
]


@pytest.mark.parametrize(("model", "words", "given"), CASES)
def test_settings_are_refused_in_one_sentence(model, words, given):
    X = rows_of()[:10, :4] if isinstance(model, AdaptiveFactorAnalysis) else rows_of()
    with pytest.raises(ValueError, match="must") as refusal:
        model.set_params(**given).fit(X)
    sentence = str(refusal.value)
    assert sentence == words if words.endswith(".") else sentence.startswith(words)
    assert faults_of(sentence, *given) == ""


def gaps(share=0.2):
    X = rows_of()
    X[np.random.default_rng(1).random(X.shape) < share] = np.nan
    return X


TWO = AdaptivePPCA(2, 1)
ROWS = {
    "at most 3, because X has 4 rows and 7 feature": (AdaptivePPCA(4, 1), rows_of()[:4]),
    "n_components must be at most 1, because X has 160 rows": (PPCA(2), rows_of()[:, :1]),
    "1 of 7 are missing in all": (TWO, np.where(np.arange(7) == 2, np.nan, rows_of())),
    "must vary": (TWO, np.where(np.isnan(gaps()), np.nan, 1.0)),
    "need inference='em'; got 'gibbs'": (AdaptivePPCA(2, 1, inference="gibbs"), gaps()),
    "need inference='em'; got 'hard'": (AdaptivePPCA(2, 1, inference="hard"), gaps()),
    "need noise='shared'": (AdaptivePPCA(2, 1, noise="feature"), gaps()),
    "allocation must be 'auto' or 'best' above 12870 sets": (
        AdaptiveFactorAnalysis(20, 10, allocation="exact"),
        np.random.default_rng(0).standard_normal((40, 30)),
    ),
    "n_components must be at most 4, because 4 of the 7 features of X vary in": (
        AdaptivePPCA(5, 2, noise="feature"),
        np.column_stack([rows_of(d=4), np.ones((160, 3))]),
    ),
    "drop extreme rows": (
        AdaptivePPCA(2, 1, noise="feature"),
        rows_of(d=4) * np.where(np.arange(160) == 0, 1e6, 1.0)[:, None],
    ),
    "its entries are too small: multiply it": (TWO, (1e-25 * rows_of()).astype(np.float32)),
    "its entries are too large: multiply it": (TWO, (1e25 * rows_of()).astype(np.float32)),
}


@pytest.mark.parametrize("words", ROWS)
def test_rows_are_refused_in_one_sentence(words):
    model, X = ROWS[words]
    with pytest.raises(ValueError, match=r"must|need|hold|missing") as refusal:
        model.fit(X)
    assert words in str(refusal.value)
    assert faults_of(str(refusal.value)) == ""


@pytest.mark.parametrize("n", [3, 10, 1000, 9000])
def test_constant_rows_are_refused_where_their_mean_is_rounded_and_near_ones_are_not(n):
    X = np.full((n, 5), 0.1)
    for model in (AdaptivePPCA(2, 1), FiniteSparseFA(2)):
        with pytest.raises(ValueError, match=f"X must vary, but all its {n} rows are equal"):
            model.fit(X)
    X[-1, 0] = np.nextafter(0.1, 1.0)
    refuse_constant(about(X, centre_of(X)))


def test_questions_are_refused_in_one_sentence():
    X = rows_of()
    model = AdaptivePPCA(4, 2, init="pca").fit(X)
    with pytest.raises(ValueError, match="X must have 4 columns, one per component; got 3"):
        model.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="support must be 'auto', 'all' or 'map'; got 'best'"):
        model.transform(X, support="best")
    with pytest.raises(ValueError, match="n_active is 'learned'"):
        AdaptivePPCA(4, init="pca", **LEARNED).fit(X).predict(X)
    wide = np.random.default_rng(0).standard_normal((90, 80))
    with pytest.raises(ValueError, match="use allocate"), pytest.warns(match="max_iter"):
        AdaptivePPCA(80, 40, init="pca", max_iter=1).fit(wide).predict(wide)
    for name in ("component_bands", "to_arviz"):
        with pytest.raises(ValueError, match="not fitted"):
            getattr(model, name)()
    extended = AdaptivePPCA(3, 1, noise="feature")
    assert not hasattr(extended, "partial_fit")
    with pytest.raises(AttributeError, match=r"partial_fit needs .* got 'feature', .*: change"):
        extended.partial_fit(X)
