"""Names of classes: typed over one by one, or read from a file."""

import numpy as np
import streamlit as st

from appca.data.class_names import names_in, tidy
from appca.data.dataset import Dataset, categories
from appca.ui.parts.acts import acting, name
from appca.ui.parts.text import tag
from appca.ui.session import services
from appca.ui.session.callbacks import guarded
from appca.ui.session.names import class_names, keep_class_names
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
    names = class_names(stored, label)
    chips = "".join(
        tag("span", name(now, "rename", i, now, f"Rename {now}") + f" {count:,}", "ca-class")
        for i, (now, count) in enumerate(
            zip((names.get(each, each) for each in classes), counts.tolist(), strict=True)
        )
    )

    def rename(number: str, text: str) -> None:
        if number.isdecimal() and int(number) < len(classes):
            old = classes[int(number)]
            keep_class_names(stored, label, names | {old: tidy(text) or old})

    def read() -> None:
        file = st.session_state[key]
        if file is not None:
            text = file.getvalue().decode("utf-8", errors="replace")
            keep_class_names(stored, label, names | names_in(text, classes))

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
