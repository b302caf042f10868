"""The data a command works on: built-in, a file, several files or a folder."""

import argparse
import os
from pathlib import Path

from appca.data.columns import Matched, Wanted, matched, read_as
from appca.data.dataset import Dataset
from appca.data.readers.source import LIMITS, ONE_IS_ENOUGH, ReadLimits
from appca.data.sources.builtin import SOURCES, load
from appca.storage.errors import InputError

_ROLES = {"label": "label", "id": "id", "ignore": "ignored"}  # argument to role


def opened(options: argparse.Namespace) -> Dataset:
    """Open DATA as its arguments say."""
    return _read(options, {}, LIMITS)


def opened_as(options: argparse.Namespace, wanted: Wanted) -> Matched:
    """Open DATA, of which one row is enough, in the columns of those a model was fitted to."""
    if _source(options.data) is not None:
        return matched(opened(options), wanted)
    return read_as(lambda roles: _read(options, roles, ONE_IS_ENOUGH), wanted)


def opened_with_gaps(options: argparse.Namespace) -> Dataset:
    """Open DATA; missing cells stay missing unless something else was asked for."""
    try:
        return opened(options)
    except InputError as error:
        if options.missing is not None or not (error.report or {}).get("missing"):
            raise
    return opened(argparse.Namespace(**(vars(options) | {"missing": "model"})))


def _read(options: argparse.Namespace, roles: dict[str, str], limits: ReadLimits) -> Dataset:
    chosen = dict(options.option)
    given = {name: role for flag, role in _ROLES.items() for name in getattr(options, flag)}
    roles = roles | dict(chosen.get("roles") or {}) | given
    if roles:
        chosen["roles"] = roles
    if options.missing is not None:
        chosen["missing"] = options.missing
    source = _source(options.data)
    if source is not None:
        return load(source, **chosen)
    from appca.data.readers import read_many

    return read_many(_files(options.data), limits=limits, **chosen)


def _source(data: list[str]) -> str | None:
    return data[0] if len(data) == 1 and data[0] in SOURCES else None


def _files(data: list[str]) -> list[tuple[str, Path]]:
    """Return names and paths; the names keep the folders that tell the files apart."""
    paths: list[Path] = []
    for text in data:
        path = Path(text)
        if path.is_dir():
            paths += _inside(path)
        elif path.is_file():
            paths.append(path)
        else:
            msg = (
                f"“{text}” is neither a file or folder nor a built-in data set; "
                f"the latter are {', '.join(SOURCES)}."
            )
            raise InputError(msg)
    shared = [path.absolute().parent for path in paths]
    base = Path(data[0] if len(data) == 1 else os.path.commonpath(shared))
    return [(_name(path, base), path) for path in paths]


def _inside(folder: Path) -> list[Path]:
    """Files of a folder and its folders, without hidden ones."""
    found = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    if not found:
        msg = f"The folder “{folder}” holds no files; name one that holds images."
        raise InputError(msg)
    return found


def _name(path: Path, base: Path) -> str:
    if path == base or not path.absolute().is_relative_to(base.absolute()):
        return path.name
    return path.absolute().relative_to(base.absolute()).as_posix()
