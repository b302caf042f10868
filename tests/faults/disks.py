"""Simulated disks that are full, refuse a step, or end the process at a step.

Steps are all changes below a folder, as reported by Python's audit hooks: files opened for writing,
folders created, files and folders renamed.
"""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

_CHANGES = ("os.mkdir", "os.rename", "os.truncate")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_watched: list[tuple[Path, Callable[[], object]]] = []


def _hook(event: str, arguments: tuple) -> None:
    if _watched and (event in _CHANGES or (event == "open" and arguments[2] & _WRITES)):
        folder, act = _watched.pop()  # what it does itself is no step
        try:
            if str(arguments[0]).startswith(str(folder)):
                act()
        finally:
            _watched.append((folder, act))


sys.addaudithook(_hook)


@contextmanager
def before_each_step(folder: Path, act: Callable[[], object]) -> Iterator[None]:
    _watched.append((folder, act))
    try:
        yield
    finally:
        _watched.pop()


def killed(folder: Path, work: Callable[[], object]) -> list[Path]:
    """Do the work; return copies of the folder as a kill before each step would have left it."""
    copies: list[Path] = []

    def copy() -> None:
        copies.append(folder.with_name(f"{folder.name}-killed-{len(copies)}"))
        shutil.copytree(folder, copies[-1], symlinks=True)

    with before_each_step(folder, copy):
        work()
    return copies


def refused_at(step: int, folder: Path) -> AbstractContextManager[None]:
    """Refuse one step, from 1 on, as a full disk does."""
    seen: list[int] = []

    def refuse() -> None:
        seen.append(1)
        if len(seen) == step:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return before_each_step(folder, refuse)


@contextmanager
def small_files(n_bytes: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes."""
    before, bytecode = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # Python 3.13.0 keeps a file of bytecode that it cut short
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        sys.dont_write_bytecode = bytecode


@contextmanager
def mounted(place: Path, *how: str) -> Iterator[Path]:
    """Mount a disk, or skip the test."""
    place.mkdir(exist_ok=True)
    try:
        done = subprocess.run(["mount", *how, str(place)], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("needs the command mount")
    if done.returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def small_disk(place: Path, n_bytes: int) -> AbstractContextManager[Path]:
    return mounted(place, "-t", "tmpfs", "-o", f"size={n_bytes}", "appca-test")


def fill(disk: Path) -> None:
    """Take all the space there is, by the file `ballast`."""
    with (disk / "ballast").open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
