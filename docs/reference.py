"""What API pages say of methods that many classes share: parameters, results, errors, examples.

`conf.py` adds these sections to docstrings, in numpydoc's form, and runs every example where the
page is built, after the example of its class. `tests/docs/test_reference.py` holds that no public
method is without them.
"""

import code
import contextlib
import doctest
import inspect
import io
import re
import tempfile
import textwrap
import warnings
from functools import cache
from typing import Any

import appca
from appca import PearsonResiduals
from appca.rivals import KSubspaces, MixtureOfFactorAnalysers


def _by_name(text: str) -> dict[str, str]:
    """Return indented lines by the name above them."""
    parts = re.split(r"^(\w+):\n", text, flags=re.M)[1:]
    return {
        name: textwrap.dedent(lines).strip()
        for name, lines in zip(parts[::2], parts[1::2], strict=True)
    }


MODELS = [one for one in (getattr(appca, name) for name in appca.__all__) if inspect.isclass(one)]
CLASSES = [*MODELS, MixtureOfFactorAnalysers, KSubspaces]
EXAMPLES_TITLE = "Examples\n--------"
FUNCTIONS = [name for name in appca.__all__ if not inspect.isclass(getattr(appca, name))]
X = "array-like, shape (N, D)"
BLOCKS = "iterable of arrays (n_i, D), or function that returns an iterator of them"

PARAMETERS = {  # of every method that has one of this name
    "X": f"{X}\nRows in the units and with the features of the fit.",
    "y": "ignored\nFor scikit-learn's pipelines.",
    "sample_weight": "array-like, shape (N,), optional\nHow often each row counts.",
    "support": '{"auto", "all", "map"}\nAll supports of a row, or its most probable one alone.',
    "blocks": f"{BLOCKS}\nThe rows, some thousand at a time.",
    "n_samples": "int\nNumber of rows to draw.",
    "random_state": "int, Generator, RandomState or None\nSeed.",
    "return_supports": "bool\nAlso return the components that each row uses.",
    "level": "float\nPosterior probability of the band.",
    "share": "float\nLeast share of the rows that must use a component for it to count.",
    "arrays": "dict of str to ndarray\nWhat `fitted_arrays` returned.",
    "path": "str or Path\nThe file to write.",
}
SCORES = "array-like or sparse matrix, shape (N, K)\nScores, as `transform` returns them."
OTHER_PARAMETERS = {("inverse_transform", "X"): SCORES}
COUNTS = "array-like or sparse matrix, shape (N, D)\nCounts of at least 0."
NOT_FITTED = ("NotFittedError", "Before `fit`.")
SHAPE = ("ValueError", "When X has another number of features than the fit, or no finite numbers.")
NO_SAMPLES = ("NotFittedError", "Before `fit`, and after a fit by EM, which draws nothing.")

RETURNS = {
    "transform": "ndarray, shape (N, K)\nScores; 0 where a row does not use a component.",
    "inverse_transform": "ndarray, shape (N, D)\nRows, in the units of the fit.",
    "allocate": "ndarray of bool, shape (N, K)\nTrue where a row uses a component.",
    "inclusion_probabilities": "ndarray, shape (N, K)\nProbabilities between 0 and 1.",
    "allocation_probability": "ndarray, shape (N,)\nProbabilities between 0 and 1.",
    "score_samples": "ndarray, shape (N,)\nNats.",
    "estimate_score_samples": "RowEstimate\n`log_likelihood` and `error` (N,) in nats, `method`.",
    "describe": "Description\n`scores`, `active`, `inclusion`, `log_likelihood` and more.",
    "impute": "ndarray, shape (N, D)\nA copy without gaps.",
    "transform_blocks": "iterator of ndarray, shape (n_i, K)\nScores of one block after the other.",
    "score_blocks": "float\nNats per row.",
    "score": "float\nNats per row; higher is better.",
    "sample": "ndarray, shape (n_samples, D)\nWith `return_supports` also (n_samples, K) bool.",
    "published": "estimator\nOf the same class.",
    "to_arviz": "arviz.InferenceData\nDraws by chain.",
    "component_bands": "ndarray, shape (2, K, D)\nLower and upper ends.",
    "score_bands": "ndarray, shape (2, N, K)\nLower and upper ends.",
    "predict": "ndarray of int, shape (N,)\nPanel numbers from 0.",
    "get_covariance": "ndarray, shape (D, D)\nIn squared units of the data.",
    "bic": "float\nLower is better.",
    "aic": "float\nLower is better.",
    "fitted_arrays": "dict of str to ndarray\nFor `restore`.",
    "restore": "self\nThe fitted estimator.",
    "reorder": "self\nThe estimator.",
    "save": "None",
    "partial_fit": "self\nThe fitted estimator.",
    "fit": "self\nThe fitted estimator.",
    "fit_blocks": "self\nThe fitted estimator.",
    "row_scales": "ndarray, shape (N,)\n1 for an ordinary row, more for an unusual one.",
    "size_probabilities": "ndarray, shape (N, K + 1)\nProbabilities of 0 to K components.",
    "n_components_band": "tuple of int\nSmallest and largest number.",
    "blocks": "function\nCalled without arguments, it returns an iterator of arrays (n_i, D).",
    "reconstruct": "ndarray, shape (N, D)\nRows as their piece describes them.",
}
OTHER_RETURNS = {
    (PearsonResiduals, "transform"): "ndarray or sparse rows, (N, D)\nResiduals.",
    (MixtureOfFactorAnalysers, "predict"): "ndarray of int, shape (N,)\nNumbers of pieces, from 0.",
    (MixtureOfFactorAnalysers, "transform"): "ndarray, shape (N, K L) or (N, L)\nScores.",
    (KSubspaces, "predict"): "ndarray of int, shape (N,)\nNumbers of subspaces, from 0.",
    (KSubspaces, "transform"): "ndarray, shape (N, K L)\nCoordinates.",
    (KSubspaces, "score"): "float\nSquared units of the data; higher is better.",
}
FITTING = [
    (
        "ValueError",
        "When X has fewer than two rows, no variance, or values that the model does not take.",
    ),
    ("InputError", "When a parameter has a value that it may not have."),
]
RAISES = {
    "fit": FITTING,
    "partial_fit": FITTING,
    "fit_blocks": FITTING,
    "save": [NOT_FITTED, ("OSError", "When the file cannot be written.")],
    "fitted_arrays": [NOT_FITTED],
    "get_covariance": [NOT_FITTED],
    "predict": [NOT_FITTED, SHAPE],
    "component_bands": [NO_SAMPLES],
    "score_bands": [NO_SAMPLES, SHAPE],
    "to_arviz": [NO_SAMPLES],
    "published": [NOT_FITTED],
    "n_components_band": [NO_SAMPLES],
    "sample": [NOT_FITTED],
    "inverse_transform": [NOT_FITTED, ("ValueError", "When X has not K columns.")],
    "score_blocks": [NOT_FITTED, ("ValueError", "When there are no rows.")],
}
USUAL = [NOT_FITTED, SHAPE]  # of every other method that takes rows

EXAMPLES = _by_name(  # each continues from the example of its class
    """
transform:
    model.transform(X).shape
inverse_transform:
    model.inverse_transform(model.transform(X)).shape
allocate:
    model.allocate(X)[:2]
inclusion_probabilities:
    model.inclusion_probabilities(X)[:2].round(2)
allocation_probability:
    model.allocation_probability(X)[:3].round(2)
score_samples:
    model.score_samples(X)[:3].round(1)
estimate_score_samples:
    model.estimate_score_samples(X).error.max()
describe:
    rows = model.describe(X)
    rows.scores.shape, rows.log_likelihood.shape
impute:
    gaps = X.copy()
    gaps[0, 0] = np.nan
    model.impute(gaps)[0].round(2)
transform_blocks:
    [scores.shape for scores in model.transform_blocks([X[:50], X[50:]])]
score_blocks:
    round(model.score_blocks([X[:50], X[50:]]), 2)
score:
    round(model.score(X), 2)
sample:
    model.sample(3, random_state=0).shape
published:
    sampled.published().transform(X).shape
to_arviz:
    draws = sampled.to_arviz()
    list(draws.groups())
component_bands:
    low, high = sampled.component_bands()
    bool((low <= high).all())
score_bands:
    sampled.score_bands(X[:3]).shape
predict:
    model.predict(X)[:5]
get_covariance:
    model.get_covariance().shape
bic:
    round(model.bic(X))
aic:
    round(model.aic(X))
fitted_arrays:
    list(model.fitted_arrays())[:3]
restore:
    from sklearn.base import clone
    again = clone(model).restore(model.fitted_arrays())
    bool((again.transform(X) == model.transform(X)).all())
reorder:
    from copy import deepcopy
    last_first = list(reversed(range(len(model.components_))))
    turned = deepcopy(model).reorder(last_first)
    bool((turned.transform(X) == model.transform(X)[:, last_first]).all())
save:
    import tempfile
    file = tempfile.mkdtemp() + "/model.npz"
    model.save(file)
    appca.load_model(file)
partial_fit:
    from sklearn.base import clone
    stream = clone(model)
    for batch in (X[:100], X[100:]):
        stream = stream.partial_fit(batch)
    stream.components_.shape
fit:
    from sklearn.base import clone
    clone(model).fit(X)
fit_blocks:
    from sklearn.base import clone
    blocks = [X[:100], X[100:]]
    clone(model).fit_blocks(blocks).components_.shape
row_scales:
    scaled = AdaptivePPCA(4, 2, row_scale="learned", random_state=0).fit(X)
    scaled.row_scales(X)[:3].round(2)
size_probabilities:
    sized = AdaptivePPCA(4, "learned", random_state=0).fit(X)
    sized.size_probabilities(X)[0].round(2)
n_components_band:
    model.n_components_band()
blocks:
    [block.shape for block in model.blocks(X)()]
reconstruct:
    model.reconstruct(X).shape
"""
)
SAMPLED = {  # a sampled fit, where the one of the class is by EM
    "AdaptivePPCA": 'clone(model).set_params(inference="gibbs", n_draws=20).fit(X)',
    "AdaptiveFactorAnalysis": 'clone(model).set_params(inference="gibbs", n_draws=20).fit(X)',
}

WINE = """import appca
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
wine = load_wine()
X = scale(wine.data)
model = appca.AdaptivePPCA(4, 2, random_state=0).fit(X)
"""
OF_FUNCTIONS = _by_name(  # each continues from `WINE`
    """
drift:
    tests = appca.drift(model, X[:90], X[90:])
    tests[["column", "part", "effect", "q"]].head(2).round(3)
enrichment:
    sets = {"phenols": ["total_phenols", "flavanoids", "proanthocyanins"]}
    names = wine.feature_names
    tests = appca.enrichment(model, X, sets, names, least=3)
    tests[["set", "component", "sign", "effect"]].head(2).round(2)
explore:
    widget = appca.explore(model, X, labels={"grower": wine.target})
    widget.selection = [3, 17, 105]
    widget.selection
load_model:
    import tempfile
    file = tempfile.mkdtemp() + "/wine.npz"
    model.save(file)
    appca.load_model(file).transform(X[:1]).round(2)
plot_components:
    figure = appca.plot_components(model, names=wine.feature_names)
    figure.savefig("components.svg")
plot_map:
    figure = appca.plot_map(model, X, wine.target)
    figure.savefig("map.png")
plot_subspaces:
    figure = appca.plot_subspaces(model, X, wine.target)
    figure.savefig("panels.pdf")
rule:
    selected = wine.target == 0
    rule = appca.rule(model, X, selected)
    print(rule.sentence())
save_html:
    appca.save_html("wine.html", model, X, labels=wine.target)
    sizes = {"n_components": (3, 4), "n_active": (1, 2)}
    appca.save_html("sliders.html", model, X, **sizes)
variance_by:
    shares = appca.variance_by(model, X, classes=wine.target)
    wide = shares.pivot_table(index="class", columns="component", values="share")
    wide.round(2)
"""
)
NOT_RUN = {"open_app": ['>>> appca.open_app("measurements.csv")  # in JupyterLab']}
NO_PICTURE = ("InputError", "When the parts do not fit together.")
FUNCTIONS_RAISE = {"plot_components": [NO_PICTURE], "plot_map": [NO_PICTURE]}


def members(kind: type) -> list[str]:
    """Return the public methods and properties of a class that an instance of it has."""
    fitted = namespace(kind)["model"]
    return [name for name in dir(kind) if _is_shown(kind, name) and _has(fitted, name)]


def pages() -> dict[str, list[str]]:
    """Return directives of the members of every class that has a page, by its full name."""
    shown = {f"{kind.__module__}.{kind.__name__}": members(kind) for kind in CLASSES}
    listed: dict[str, list[str]] = {}
    for kind in CLASSES:
        name = f"{kind.__module__}.{kind.__name__}"
        names = [f"appca.{kind.__name__}", name] if kind in MODELS else [name]
        directives = [
            f"auto{'property' if is_property(kind, one) else 'method'}:: {one}"
            for one in shown[name]
        ]
        listed |= dict.fromkeys(names, directives)
    return listed


def is_property(kind: type, name: str) -> bool:
    """Whether a member is a property."""
    return isinstance(inspect.getattr_static(kind, name), property)


def _is_shown(kind: type, name: str) -> bool:
    if name.startswith("_") or name.endswith("_request"):
        return False
    member = inspect.getattr_static(kind, name)
    ours = getattr(getattr(kind, name), "__module__", "").startswith("appca")
    return isinstance(member, property) or (callable(getattr(kind, name)) and ours)


def _has(fitted: Any, name: str) -> bool:
    if is_property(type(fitted), name):
        return name != "chain_levels_" or hasattr(fitted, "n_draws")
    return hasattr(fitted, name)


@cache
def namespace(kind: type) -> dict[str, Any]:
    """Run the example of a class; it makes `X` and a fitted `model`."""
    space: dict[str, Any] = {"appca": appca}
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in doctest.DocTestParser().get_examples(inspect.getdoc(kind) or ""):
            exec(compile(one.source, kind.__name__, "single"), space)
    return space


def example(kind: type, name: str) -> list[str]:
    """Return a method's example as a session of Python, with what it prints now."""
    text = EXAMPLES.get(name, "")
    if "sampled" in text:
        sampled = SAMPLED.get(kind.__name__)
        begun = (
            f"from sklearn.base import clone\nsampled = {sampled}" if sampled else "sampled = model"
        )
        text = f"{begun}\n{text}"
    return session(text, namespace(kind))


def example_of_function(name: str) -> list[str]:
    """Return a function's example as a session of Python, in a folder that is thrown away."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return session(WINE + OF_FUNCTIONS[name], {})


def sections_of_function(name: str) -> list[str]:
    """Return the sections that a function's docstring lacks, in numpydoc's form."""
    there = inspect.getdoc(getattr(appca, name)) or ""
    raised = [line for one in FUNCTIONS_RAISE.get(name, ()) for line in _indented("\n".join(one))]
    examples = NOT_RUN.get(name) or ([] if EXAMPLES_TITLE in there else example_of_function(name))
    return _section("Raises", raised) + _section("Examples", examples)


def session(text: str, space: dict[str, Any]) -> list[str]:
    """Run lines of Python one statement after the other; return them with their output."""
    lines: list[str] = []
    console = code.InteractiveConsole(dict(space))
    console.write = _raised  # type: ignore[method-assign]
    waits = False  # for the end of an indented block
    for line in [*text.splitlines(), ""]:
        if waits and not line.startswith(" "):
            lines += ["...", *_said(console, "")[1]]
            waits = False
        if line:
            lines.append(("... " if waits else ">>> ") + line)
            waits, said = _said(console, line)
            lines += said
    return lines


def _said(console: code.InteractiveConsole, line: str) -> tuple[bool, list[str]]:
    """Run a line; return whether more belong to its statement, and what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an example need not converge
        waits = console.push(line)
    return waits, said.getvalue().splitlines()


def _raised(message: str) -> None:
    raise AssertionError(message)


def sections(kind: type, name: str) -> list[str]:
    """Return the sections that a method's docstring lacks, in numpydoc's form."""
    method = getattr(kind, name)
    there = inspect.getdoc(method) or ""
    takes = [one for one in inspect.signature(method).parameters if one not in ("self", "cls")]
    wanted = {
        "Parameters": [line for one in takes for line in _parameter(kind, name, one)],
        "Returns": _indented(OTHER_RETURNS.get((kind, name), RETURNS.get(name, ""))),
        "Raises": [
            line for raised in _raises(name, takes) for line in _indented("\n".join(raised))
        ],
        "Examples": example(kind, name),
    }
    added = []
    for title, lines in wanted.items():
        if f"{title}\n{'-' * len(title)}" not in there:
            added += _section(title, lines)
    return added


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, "-" * len(title), *lines] if lines else []


def _parameter(kind: type, name: str, parameter: str) -> list[str]:
    told = OTHER_PARAMETERS.get((name, parameter), PARAMETERS.get(parameter, ""))
    if kind is PearsonResiduals and parameter == "X":
        told = COUNTS
    return _indented(f"{parameter} : {told}") if told else []


def _raises(name: str, takes: list[str]) -> list[tuple[str, str]]:
    return RAISES.get(name, USUAL if "X" in takes or "blocks" in takes else [])


def _indented(text: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    return [first, *("    " + line for line in rest)] if text else []
