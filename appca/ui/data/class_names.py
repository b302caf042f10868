"""Names of classes: typed over one by one, or read from a file."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import streamlit as st

from appca.data.class_names import names_in, tidy
from appca.data.dataset import Dataset, categories
from appca.ui.parts.acts import acting, name
from appca.ui.parts.text import tag
from appca.ui.session import history, services
from appca.ui.session.callbacks import guarded
from appca.words.wording import shortened

MOST_LABELS, MOST_CLASSES = 4, 60


def editor(dataset: Dataset) -> None:
    """Draw the classes of each label, to be renamed; names are kept with the data."""
    stored = services.datasets().get(dataset.digest)
    for j, (label, values) in enumerate(list(stored.labels.items())[:MOST_LABELS]):
        classes, codes = categories(values)
        if len(classes) <= MOST_CLASSES:
            _classes(stored, label, classes, np.bincount(codes), j)


def _classes(
    stored: Dataset, label: str, classes: list[str], counts: np.ndarray, place: int
) -> None:
    names = _names(stored, label)
    chips = "".join(
        tag("span", name(now, "rename", i, now, f"Rename {now}") + f" {count:,}", "ca-class")
        for i, (now, count) in enumerate(
            zip((names.get(each, each) for each in classes), counts.tolist(), strict=True)
        )
    )

    def rename(number: str, text: str) -> None:
        if number.isdecimal() and int(number) < len(classes):
            old = classes[int(number)]
            _keep(stored, label, names | {old: tidy(text) or old})

    def read() -> None:
        file = st.session_state[key]
        if file is not None:
            text = file.getvalue().decode("utf-8", errors="replace")
            _keep(stored, label, names | names_in(text, classes))

    key = f"class_names-{stored.digest[:8]}-{place}-{len(names)}"
    with st.expander(f"Classes of {shortened(label)}", key=f"class_names_{place}"):
        acting(tag("div", chips, "ca-steps"), f"classes_{place}", {"rename": rename})
        st.file_uploader(
            "Names from a file",
            type=["txt", "csv", "tsv"],
            key=key,
            on_change=guarded(read),
            help="A line for each class in this order, or lines with its old and its new name.",
        )


def _names(stored: Dataset, label: str) -> dict[str, str]:
    return dict(stored.provenance.get("class_names", {}).get(label, {}))


def _keep(stored: Dataset, label: str, names: Mapping[str, str]) -> None:
    before = dict(stored.provenance.get("class_names", {}))
    kept = {old: new for old, new in names.items() if new != old}
    steps = [
        partial(services.note, stored.digest, class_names=each)
        for each in (before, before | {label: kept})
    ]
    steps[1]()
    history.note(*steps)
