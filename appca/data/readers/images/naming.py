"""What the names of image files say: which row, which class, which further labels."""

import re

import numpy as np

from appca.data.dataset import natural
from appca.words.errors import InputError

CLASS_SOURCES = ("auto", "folder", "name", "none")
# obj1__35, cat_07, tree-3 -> class and number; then cat07 -> class and number
_PATTERNS = (
    r"(?P<class>.*[^\s_.-])[\s_.-]+\(?(?P<number>\d+)\)?",
    r"(?P<class>.*?[^\d\s_.-])[\s_.-]*\(?(?P<number>\d+)\)?",
)
_FIELD = re.compile(r"\{([A-Za-z_]\w*)\}")
_ENDING = re.compile(r"\.(\w{1,5}|\*)$")  # of a file, which a template may name
_COUNTS = ("n", "number", "index", "view")
Path = tuple[str, ...]


def in_order(paths: list[Path]) -> list[int]:
    """Order of the files by folder and name, numbers counted as numbers."""
    return sorted(range(len(paths)), key=lambda i: [natural(part) for part in paths[i]])


def without_root(paths: list[Path]) -> list[Path]:
    """Take off the folders all files share."""
    shared = 0
    while (
        all(len(path) > shared + 1 for path in paths) and len({path[shared] for path in paths}) == 1
    ):
        shared += 1
    return [path[shared:] for path in paths]


def ids_of(paths: list[Path]) -> list[str]:
    """Make unique ids: the file's name without its ending if that suffices, else the path."""
    stems = [_stem(path[-1]) for path in paths]
    inner = ["/".join((*path[:-1], stem)) for path, stem in zip(paths, stems, strict=True)]
    for ids in (stems, inner):
        if len(set(ids)) == len(ids):
            return ids
    whole = ["/".join(path) for path in paths]
    seen: dict[str, int] = {}
    for i, text in enumerate(whole):  # a zip may hold one name twice
        seen[text] = seen.get(text, 0) + 1
        whole[i] = text if seen[text] == 1 else f"{text} ({seen[text]})"
    return whole


def labels_of(paths: list[Path], source: str, pattern: str | None) -> dict[str, np.ndarray]:
    """Return label columns from the folders or names of files.

    `paths` have the folders and the name of each file, without the folders all share. The source
    "auto" takes folders when there are two or more, else names when they fit a pattern.

    A `pattern` is for the whole name without its ending. ``{class}__{n}`` is a template: each name
    in braces stands for some text, or for digits if it is n, number, index or view, and becomes a
    column; * stands for anything; with a / the folders count, too. Anything else is a regular
    expression; each named group becomes a column, a single unnamed one the class.
    """
    if source not in CLASS_SOURCES:
        msg = f"classes must be one of {', '.join(CLASS_SOURCES)}; got {source!r}."
        raise InputError(msg)
    if source == "none":
        return {}
    if pattern is not None:
        return _from_pattern(paths, pattern)
    folders = _from_folders(paths)
    if source == "folder" and not folders:
        msg = "All images are in one folder, so folders name no classes; use their names or none."
        raise InputError(msg)
    if folders and source != "name":
        return folders
    return _from_names(paths, source == "name")


def _from_folders(paths: list[Path]) -> dict[str, np.ndarray]:
    inner = [path[-2] if len(path) > 1 else "" for path in paths]
    if len(set(inner)) < 2:
        return {}
    labels = {"class": np.array(inner)}
    outer = ["/".join(path[:-2]) for path in paths]
    if len(set(outer)) > 1:
        labels["folder"] = np.array(outer)
    return labels


def _from_names(paths: list[Path], required: bool) -> dict[str, np.ndarray]:
    stems = [_stem(path[-1]) for path in paths]
    for pattern in _PATTERNS:
        matches = [match for stem in stems if (match := re.fullmatch(pattern, stem))]
        if len(matches) == len(stems):
            classes = [match["class"] for match in matches]
            if 1 < len(set(classes)) < len(classes):
                return {
                    "class": np.array(classes),
                    "number": np.array([int(match["number"][:15]) for match in matches]),
                }
    if required:
        msg = (
            f"File names such as “{stems[0][:40]}” do not start with a class and a number; "
            "name a pattern, or put each class into a folder of its own."
        )
        raise InputError(msg)
    return {}


def _from_pattern(paths: list[Path], pattern: str) -> dict[str, np.ndarray]:
    compiled = _compiled(pattern)
    names = list(compiled.groupindex) or ["class"] * bool(compiled.groups)
    if not names:
        msg = f"The pattern {pattern!r} has no group or {{name}}; write {{class}}__{{n}} or (.+)_.*"
        raise InputError(msg)
    deep = "/" in pattern
    texts = ["/".join((*path[:-1], _stem(path[-1]))) if deep else _stem(path[-1]) for path in paths]
    matches = [match for text in texts if (match := compiled.fullmatch(text))]
    if len(matches) < len(texts):
        odd = next(text for text in texts if not compiled.fullmatch(text))
        msg = f"The pattern {pattern!r} does not fit the file name “{odd[:40]}”; widen it."
        raise InputError(msg)
    if not compiled.groupindex:
        return {"class": _column([match[1] for match in matches])}
    return {name: _column([match[name] for match in matches]) for name in names}


def _compiled(pattern: str) -> re.Pattern[str]:
    expression = _template(pattern) if _FIELD.search(pattern) else pattern
    try:
        return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"The pattern {pattern!r} is not a regular expression ({error}); correct it."
        raise InputError(msg) from error


def _template(pattern: str) -> str:
    """Turn {class}__{n} into a regular expression."""
    plain = _ENDING.sub("", pattern)
    pieces, last = [], 0
    for field in _FIELD.finditer(plain):
        body = r"\d+" if field[1] in _COUNTS else "[^/]+"
        pieces += [_literal(plain[last : field.start()]), f"(?P<{field[1]}>{body})"]
        last = field.end()
    return "".join([*pieces, _literal(plain[last:])])


def _literal(text: str) -> str:
    return "[^/]*".join(re.escape(part) for part in text.split("*"))


def _column(values: list[str | None]) -> np.ndarray:
    texts = [value or "" for value in values]
    whole = all(re.fullmatch(r"\d{1,15}", text) for text in texts)
    return np.array([int(text) for text in texts]) if whole else np.array(texts)


def _stem(name: str) -> str:
    return name.rsplit(".", 1)[0] or name
