"""Which columns and components have shifted between the data and new rows, in one figure."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from appca.analysis.components.association import SIGNIFICANT
from appca.analysis.data.drift import drifted
from appca.analysis.fitted import FittedRun
from appca.analysis.groups.rule import called, component_of, dataset_table
from appca.data.dataset import Dataset
from appca.plots.data.drift import drift_chart
from appca.ui.parts.chart import chart
from appca.ui.parts.text import markdown
from appca.ui.session.caching import kept
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 2_000  # of each side, a fair sample
SEED = 0


def draw(dataset: Dataset, shown: Shown, new: Dataset, seen: FittedRun, key: str) -> None:
    """Draw the answer in a sentence and the figure; `seen` describes the new rows."""

    def compared() -> "pd.DataFrame":
        old, later = _table(dataset, shown.fitted), _table(new, seen)
        both = [name for name in old.columns if name in later]
        return drifted(old[both], later[both], random_state=SEED)

    try:
        tests = kept(f"drift-{key}", compared)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    names = shown.fitted.names
    st.markdown(sentence(tests, names))
    drawn = tests.assign(column=[called(name, names) for name in tests["column"]])
    chart(drift_chart(drawn), "drift_chart")
    st.caption(
        "Bar: level (Cliff's delta). Ring: spread around the median. Red: higher in the new rows. "
        "Blue: lower. Pale: q, corrected for all tests, is above 5%. If a component has shifted, "
        "do not read old and new rows as one population."
    )


def sentence(tests: "pd.DataFrame", names: tuple[str, ...]) -> str:
    """Say as Markdown how many columns and components have shifted, and which one most."""
    shifted = tests[tests["q"] < SIGNIFICANT]
    if not len(shifted):
        return "**No column and no component has shifted more than chance allows.**"
    some, every = _subjects(shifted), _subjects(tests)
    told = [f"{some[noun]:,} of {counted(n, noun)}" for noun, n in sorted(every.items())]
    most = shifted.sort_values("effect", key=np.abs).iloc[-1]
    name = markdown(shortened(called(most["column"], names)))
    way = f"{most['part']} of {name} is {most['direction']} in the new rows"
    return f"**{' and '.join(told)} have shifted.** Most: the {way}."


def _subjects(tests: "pd.DataFrame") -> Counter[str]:
    """Count the columns and the components of tests; a component may have several."""
    subjects = {
        ("component", name.split()[-1]) if component_of(name)[1] else ("column", name)
        for name in tests["column"]
    }
    return Counter(noun for noun, _ in subjects)


def _table(dataset: Dataset, rows: FittedRun) -> "pd.DataFrame":
    taken = np.random.default_rng(SEED).permutation(dataset.n_rows)[:MOST_ROWS]
    return dataset_table(dataset.take(taken), rows.take(taken))
