"""Open the data for a command: built-in, files, a folder, or standard input."""

import argparse
import io
import os
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from appca.commands import parsing
from appca.commands.parsing import PIPE, wrong_if
from appca.data.columns import Matched, Wanted, matched, meeting, read_as
from appca.data.dataset import Dataset
from appca.data.files import LIMITS, ONE_IS_ENOUGH, File, Files, ReadLimits, total_bytes
from appca.data.sources import SOURCES, load
from appca.words import InputError, UnknownNameError, listed, refuse_if, shortened, unknown

Opened = TypeVar("Opened")
_ROLES = {"label": "label", "id": "id", "feature": "feature", "ignore": "ignored"}  # by option
_TABLES = ("csv", "sheet", "parquet", "arff", "json")
STORE = ".zarr"
_ZIP, _GZIP = b"PK\x03\x04", b"\x1f\x8b"


def opened(options: argparse.Namespace) -> Dataset:
    """Open DATA as the arguments specify."""
    return _read(options, {}, LIMITS)


def opened_as(options: argparse.Namespace, wanted: Wanted) -> Matched:
    """Open DATA, at least one row, with the columns of a fitted model."""
    if _source(options.data) is not None:
        return matched(opened(options), wanted)
    return read_as(lambda roles: _read(options, roles, ONE_IS_ENOUGH), wanted)


def with_gaps(
    options: argparse.Namespace, read: Callable[[argparse.Namespace], Opened], may: bool = True
) -> Opened:
    """Open DATA by `read`; keep missing cells if the model can, unless --missing is given."""
    try:
        return read(options)
    except InputError as error:
        if not may or options.missing is not None or not (error.report or {}).get("missing"):
            raise
    return read(argparse.Namespace(**(vars(options) | {"missing": "model"})))


def _read(options: argparse.Namespace, roles: dict[str, str], limits: ReadLimits) -> Dataset:
    with parsing.options_of_data(options), ExitStack() as ends:
        dataset = _dataset(options, roles, limits, ends)
    gone, why = np.zeros(dataset.n_rows, dtype=bool), []
    for flag in ("where", "drop"):
        for condition in getattr(options, flag):
            rows, is_drop = meeting(condition, dataset), flag == "drop"
            msg = f"No row meets --{flag} {shortened(condition)}; correct its value."
            refuse_if(not rows.any(), msg)
            gone |= rows if is_drop else ~rows
            why.append(f"{'' if is_drop else 'not '}{condition}")
    return dataset.without(gone, f"rows: {'; '.join(why)}") if why else dataset


def _dataset(
    options: argparse.Namespace, roles: dict[str, str], limits: ReadLimits, ends: ExitStack
) -> Dataset:
    from appca.data.readers import by_libraries, kind_of, read_many
    from appca.data.readers.process import read_apart

    chosen = dict(options.option)
    role_of = {name: role for flag, role in _ROLES.items() for name in getattr(options, flag)}
    if (source := _source(options.data)) is not None:
        return _built_in(source, options, chosen)
    files = _files(options, ends)
    kinds = {kind_of(*named_file) for named_file in files}
    if kinds == {"idx"}:
        beside = [name for name in options.label if Path(name).is_file()]
        files = [*files, *((Path(name).name, Path(name)) for name in beside)]
        role_of = {name: role for name, role in role_of.items() if name not in beside}
    wrong_if(
        role_of and not kinds <= {*_TABLES, None},
        f"{_flags(options)} names a column of a table, and “{shortened(options.data[0])}” is none; "
        "labels of images come from the names of folders and files, those of IDX from a file, "
        "`--label FILE`, others from arrays with one entry for each row.",
    )
    flags = {"roles": roles | dict(chosen.get("roles") or {}) | role_of}
    flags |= {"missing": options.missing, "na_values": options.na_values}
    chosen |= {name: value for name, value in flags.items() if value}
    try:
        return (read_apart if by_libraries(files) else read_many)(files, limits=limits, **chosen)
    except InputError as error:
        if (hint := _hint(error, options)) is None:
            raise
        msg = f"{str(error)[:-1]}; {hint}."
        raise InputError(msg, error.report) from error


def _hint(error: InputError, options: argparse.Namespace) -> str | None:
    if isinstance(error, UnknownNameError) and error.kind == "column" and PIPE not in options.data:
        return f"`python -m appca data {shlex.quote(options.data[0])} --columns` lists them"
    report = error.report or {}
    if options.missing is None and report.get("missing"):
        return "that is --missing model, mean or drop"
    option = report.get("option")
    return f"for example --option {shlex.quote(option)}" if option else None


def _built_in(source: str, options: argparse.Namespace, chosen: dict[str, Any]) -> Dataset:
    dataset = load(source, **chosen)
    columns = [*dataset.labels, *(dataset.feature_names or ())]
    for name in (name for flag in _ROLES for name in getattr(options, flag)):
        if name not in columns:
            refusal = unknown("column", name, columns)
            raise refusal
    wrong_if(
        _flags(options) or options.missing is not None,
        f"{_flags(options) or '--missing'} is for files, and “{source}” is built in, with its "
        f"label {listed(list(dataset.labels)) or '(none)'} and no missing cells; leave it out, "
        f"or write a file first by `python -m appca data {source} --out {source}.csv`.",
    )
    return dataset


def _flags(options: argparse.Namespace) -> str:
    return next((f"--{flag}" for flag in _ROLES if getattr(options, flag)), "")


def _source(data: list[str]) -> str | None:
    return data[0] if len(data) == 1 and data[0] in SOURCES else None


def _files(options: argparse.Namespace, ends: ExitStack) -> Files:
    data = options.data
    if PIPE in data:
        return [_piped(options)]
    paths: list[Path] = []
    stores: list[tuple[str, File]] = []
    for text in data:
        path = Path(text)
        if path.is_dir() and path.suffix == STORE:
            stores.append((path.name, _packed(path, ends)))
        elif path.is_dir():
            paths += _inside(path)
        elif path.is_file():
            paths.append(path)
        else:
            raise _nothing(text)
    shared = [path.absolute().parent for path in paths]
    base = Path(data[0] if len(data) == 1 or not shared else os.path.commonpath(shared))
    return [*((_name(path, base), path) for path in paths), *stores]


def _packed(store: Path, ends: ExitStack) -> File:
    """Return a Zarr store (a folder) as the zip its reader needs; `ends` removes it."""
    from appca.data.readers.annotated import packed

    most = f"{LIMITS.n_bytes / 1e6:,.0f} MB"
    msg = f"“{store.name}” has more than {most}; keep fewer rows or columns."
    refuse_if(total_bytes(store) > LIMITS.n_bytes, msg)
    return ends.enter_context(packed(store))


def _nothing(text: str) -> InputError:
    place = Path(text).parent
    beside = [path.name for path in place.iterdir()] if place.is_dir() else []
    near = str(unknown("file", Path(text).name, [*SOURCES, *beside[:1000]]))
    hint = near.partition("; the nearest ")[2].partition(", and there are ")[0].rstrip(".")
    sources = f"built in are {', '.join(SOURCES)}"
    msg = f"“{text}” is not a file, a folder or a built-in data set; "
    return InputError(f"{msg}{f'the nearest {hint}, and ' if hint else ''}{sources}.")


def _piped(options: argparse.Namespace) -> tuple[str, io.BytesIO]:
    """Return a file name for standard input, with its file type, and its content."""
    msg = f"- reads one file from standard input; got {len(options.data)} names: keep one."
    wrong_if(len(options.data) > 1, msg)
    if getattr(options, "piped", None) is None:
        options.piped = parsing.from_pipe(LIMITS.n_bytes)
    return _title(options.piped), io.BytesIO(options.piped)


def _title(content: bytes) -> str:
    """Return a file name for standard input, based on its content; by default a text table."""
    from appca.data.readers import kind_of

    stem = "standard input"
    if content.startswith(_ZIP):
        return f"{stem}.npz" if b".npy" in content[:200] else f"{stem}.zip"
    if kind_of(stem, io.BytesIO(content)) is not None:
        return stem
    return f"{stem}.csv.gz" if content.startswith(_GZIP) else f"{stem}.csv"


def _inside(folder: Path) -> list[Path]:
    """Return the files of a folder and its subfolders, except hidden files."""
    files = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    refuse_if(not files, f"The folder “{folder}” has no files; name one with images.")
    return files


def _name(path: Path, base: Path) -> str:
    if path == base or not path.absolute().is_relative_to(base.absolute()):
        return path.name
    return path.absolute().relative_to(base.absolute()).as_posix()
