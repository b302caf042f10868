"""The selection as a rule: in a sentence, to select by, keep and copy."""

import numpy as np
import streamlit as st

from appca.analysis.groups.rule import RowRule, dataset_table, described
from appca.data.dataset import Dataset
from appca.ui.parts.selection_tools import select_button
from appca.ui.parts.text import markdown
from appca.ui.session import selection
from appca.ui.session.caching import kept
from appca.ui.session.callbacks import guarded
from appca.ui.session.fitting import Shown
from appca.words.errors import InputError
from appca.words.numbers import percent


def as_rule(dataset: Dataset, shown: Shown, mask: np.ndarray) -> None:
    """Draw the rule for the selected rows (N,) bool."""

    def searched() -> tuple[RowRule, np.ndarray]:
        table = dataset_table(dataset, shown.fitted)
        first = mask.argmax()
        chosen = [
            name  # of a label of which the selection is a class
            for name, values in dataset.labels.items()
            if np.array_equal(values == values[first], mask)
        ]
        rule = described(table.drop(columns=chosen), mask)
        return rule, rule.mask(table)

    st.caption("As a rule")
    try:
        rule, rows = kept(f"rule-{shown.key}-{selection.token(dataset)}", searched)
    except InputError as error:
        st.caption(markdown(str(error)))
        return
    st.markdown(f"**{markdown(rule.conditions(shown.fitted.names))}**")
    if rule.negated:
        st.caption("“Not”: the rows that miss at least one of these conditions.")
    text = f"{percent(rule.quality.recall)} of the selected rows meet the rule, and "
    text += f"{percent(rule.quality.precision)} of the rows that meet it are selected"
    if rule.tree is not None:
        recall, precision = percent(rule.tree.recall), percent(rule.tree.precision)
        text += f" ({recall} and {precision} for the whole decision tree)"
    st.caption(markdown(f"{text}, on {rule.n_held_out:,} rows that the search has not seen."))
    with st.container(horizontal=True, gap="small"):
        select_button(
            f"Select its {rows.sum():,} rows", dataset, rows, "rule_select", disabled=not rows.any()
        )
        st.button(
            "Keep",
            key="rule_keep",
            help="Keep the rule and its rows among the named selections",
            on_click=guarded(selection.save_rule),
            args=[dataset, rows, rule, shown.fitted.names],
            disabled=not rows.any(),
        )
        with st.popover("Code", key="rule_code"):
            st.code(rule.to_pandas(), language="python", wrap_lines=True)
            st.caption("With a model, its rows X, and the columns as a DataFrame:")
            st.code(rule.to_python(), language="python", wrap_lines=True)


def kept_elsewhere(dataset: Dataset, shown: Shown) -> None:
    """Offer the rules that were kept with other data and whose columns are here, too."""
    rules = selection.rules_elsewhere(dataset)
    if not rules:
        return
    table = dataset_table(dataset, shown.fitted)
    usable = [rule for rule in rules if all(c.column in table for c in rule.clauses)]
    if usable:
        st.caption("Rules kept with other data. Components are those of this fit.")
    for place, rule in enumerate(usable):
        rows = rule.mask(table)
        text = rule.conditions(shown.fitted.names)
        label = f"{markdown(text)} :gray[{rows.sum():,}]"
        select_button(label, dataset, rows, f"rule_elsewhere-{place}")
