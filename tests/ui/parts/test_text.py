"""Words and small pieces of HTML: numbers read well, and data is only ever text."""

import re

import numpy as np
import pytest

from appca.analysis.components import in_data_space, patterns
from appca.analysis.fitted import FittedRun
from appca.data.dataset import Dataset
from appca.data.preprocessing import Preprocessing
from appca.plots.style import colour_by
from appca.ui import explore, frame, kit
from appca.words import about, duration, size
from tests.fitted_runs import fitted_run, info_of

NASTY = '<img src=x onerror="alert(1)">&"'


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "under 1 s"), (8.4, "8 s"), (89, "89 s"), (100, "2 min"), (9000, "2.5 h")],
)
def test_durations_are_rough(seconds, said):
    assert duration(seconds) == said


def test_a_log_likelihood_has_a_true_minus_and_a_comma():
    assert kit.nats_per_row(info_of(log_likelihood=-2469.14, n_rows=2)) == "−1,234.57 nats per row"


def test_estimates_say_about_except_below_a_second():
    assert (about(0.1), about(12)) == ("under 1 s", "about 12 s")


@pytest.mark.parametrize(("n", "said"), [(12, "12 B"), (3100, "3.1 kB"), (2.5e9, "2.5 GB")])
def test_sizes_have_units(n, said):
    assert size(n) == said


def test_attributes_and_words_cannot_break_out_of_their_element():
    element = kit.tag("span", kit.words(NASTY), "css", title=NASTY)
    assert element.count("<") == 2
    assert element.count('"') == 4


def test_markdown_loses_its_meaning_but_not_its_words():
    protected = kit.markdown("*a* [b](c) :red[d] $e$")
    assert protected.replace("\\", "") == "*a* [b](c) :red[d] $e$"
    assert all(protected[i - 1] == "\\" for i, c in enumerate(protected) if c in "*[]():$")


def test_like_buttons_are_told_apart_by_words_that_are_not_seen():
    assert kit.apart("Open", "run a*b") == "Open *run a\\*b*"
    style = " ".join(frame.STYLE.read_text("utf-8").split())
    assert re.search(r"button em,? [^{}]*\{ position: absolute", style)


def table(names: tuple[str, ...]) -> Dataset:
    rng = np.random.default_rng(0)
    return Dataset(
        name="t",
        X=rng.normal(size=(30, len(names))) * np.array([1000.0] + [1.0] * (len(names) - 1)),
        ids=np.arange(30).astype(str),
        labels={"class": np.array([NASTY, "b"] * 15)},
        feature_names=names,
    )


def run_of(dataset: Dataset, component: list[float], active: np.ndarray | None = None) -> FittedRun:
    before = Preprocessing(centre=True, scale="feature").fit(dataset.X)
    return fitted_run(
        np.ones((30, 1), dtype=bool) if active is None else active,
        components=np.array([component]),
        preprocessing=before,
    )


def test_features_of_a_component_are_shown_literally_and_ranked_in_the_units_of_the_fit():
    dataset = table(("in thousands", NASTY, "third"))
    fitted = run_of(dataset, [0.1, 0.9, 0.2])
    html = kit.loadings(patterns(fitted, None)[0], dataset.feature_names)
    assert "<img" not in html
    assert html.index(kit.words(NASTY)) < html.index("third") < html.index("in thousands")
    assert np.abs(in_data_space(fitted)[0]).argmax() == 0


def test_bars_of_a_selection_show_labels_literally_and_count_right():
    dataset = table(("a", "b"))
    mask = np.isin(np.arange(30), [0, 2, 4, 5])
    html = explore.class_bars(colour_by("class", dataset.labels["class"]), mask)
    assert "<img" not in html
    assert ">3 · 20%<" in html
    assert ">1 · 7%<" in html
