"""Other names of classes, kept with a data set whose numbers and identity stay as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from appca.data.dataset import MISSING, Dataset, categories
from appca.words.errors import InputError
from appca.words.wording import counted, shortened

LONGEST = 60  # characters of a name
_SEPARATORS = "\t,;="


def renamed(dataset: Dataset, names: Mapping[str, Mapping[str, str]]) -> Dataset:
    """Return a data set whose classes have other names, with the digest of the stored one.

    `names` maps a label column to a mapping from class to new name; two classes may become one.
    The classes stay in their order, and so in their colours.
    """
    labels, order = dict(dataset.labels), {}
    for label in labels.keys() & names.keys():
        classes, codes = categories(labels[label])
        now = {MISSING: "", **names[label]}
        names_now = [now.get(name, name) for name in classes]
        labels[label], order[label] = np.array(names_now)[codes], list(dict.fromkeys(names_now))
    noted = dataset.provenance | {"class_order": order}
    other = replace(dataset, labels=labels, provenance=noted)
    other.__dict__["digest"] = dataset.digest  # fits, selections and links go on
    return other


def names_in(text: str, classes: Sequence[str]) -> dict[str, str]:
    """Read names of classes: a line each in the order of `classes`, or old and new name in a line.

    Raises InputError where there are fewer lines than classes, or a line names no class.
    """
    lines = [line.strip() for line in text.removeprefix("\ufeff").splitlines() if line.strip()]
    pairs = [_pair(line, classes) for line in lines]
    if pairs and all(pairs):
        return dict(pair for pair in pairs if pair)
    if len(lines) != len(classes):
        msg = (
            f"The file has {counted(len(lines), 'line')} and the label {len(classes):,} classes; "
            f"give one name a line, or lines such as “{shortened(classes[0], 20)},new name”."
        )
        raise InputError(msg)
    return {old: tidy(new) for old, new in zip(classes, lines, strict=True)}


def tidy(name: str) -> str:
    """Return a name as it is kept."""
    return shortened(" ".join(name.split()), LONGEST)


def _pair(line: str, classes: Sequence[str]) -> tuple[str, str] | None:
    for separator in _SEPARATORS:
        old, mark, new = line.partition(separator)
        if mark and old.strip() in classes and new.strip():
            return old.strip(), tidy(new)
    return None
