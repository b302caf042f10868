"""Fetching a published file: mirrors, resumption after a cut line, checksum, one sentence else."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from appca.storage import atomic
from appca.words.errors import InputError
from appca.words.refusal import refused

if TYPE_CHECKING:
    import requests

Progress = Callable[[int, int], None]  # bytes done, bytes in all (0 when the server does not say)
_CHUNK = 1 << 16
_PAUSE = 0.5  # seconds before the second attempt; doubled for each further one
_ATTEMPTS = 4  # on each mirror, as long as the line breaks rather than the server refuses


def fetch(
    urls: Sequence[str],
    path: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    advice: str = "try again later.",
) -> Path:
    """Fetch a file, through pooch, from the first of `urls` that gives it.

    What arrived before a line broke stays in ``<name>.part`` and is continued, in this call or a
    later one. The file appears at `path` only when it is complete and has the checksum `sha256`, if
    one is given. `progress` is told (bytes done, bytes in all); raising from it stops the download.

    Raises InputError when no mirror gave the file, with the last reason and then `advice`.
    """
    import pooch

    pooch.get_logger().setLevel("ERROR")
    checksum = None if sha256 is None else f"sha256:{sha256}"
    reason = ""
    for url in urls:
        downloader = _Resuming(path.with_name(path.name + ".part"), progress)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except _Failed as error:
            reason = str(error)
        except OSError as error:
            what = f"{path} could not be written"
            raise refused(what, error, advice.rstrip(".")) from error
        except ValueError:  # pooch's word for a wrong checksum
            reason = f"what {_host(url)} sent does not have the published checksum"
        else:
            return path
    msg = f"{path.name} could not be downloaded ({reason}); {advice}"
    raise InputError(msg)


def remedy(title: str, names: Sequence[str], folder: Path) -> str:
    """Say which files to put where when a download does not work."""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    place = f"put {listed} into {folder}, or drop {'it' if len(names) == 1 else 'them'}"
    return f"to open {title} without a network, {place} onto the Data page."


class _Failed(Exception):
    """A mirror did not give the file; the text is the reason."""


class _Resuming:
    """A downloader for pooch that continues a partial file instead of starting again."""

    def __init__(self, part: Path, progress: Progress | None) -> None:
        self.part, self.progress = part, progress

    def __call__(self, url: str, output_file: str, _: object) -> None:
        import requests
        import urllib3

        broken = (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError)
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE * 2 ** (attempt - 1))
            try:
                self._continue(url)
            except broken as error:
                reason = f"the connection to {_host(url)} failed: {type(error).__name__}"
            except requests.RequestException as error:
                msg = f"{_host(url)} cannot be asked: {type(error).__name__}"
                raise _Failed(msg) from error
            else:
                atomic.take_place(self.part, Path(output_file))
                return
        raise _Failed(reason)

    def _continue(self, url: str) -> None:
        import requests

        have = self.part.stat().st_size if self.part.exists() else 0
        headers = {"Accept-Encoding": "identity"}  # the bytes of the file, not of a packed copy
        if have:
            headers["Range"] = f"bytes={have}-"
        with requests.get(url, headers=headers, stream=True, timeout=(10, 30)) as response:
            if response.status_code == requests.codes.requested_range_not_satisfiable:
                self.part.unlink()  # longer than the file on the server: not a part of it
                msg = "the downloaded part does not match the file"
                raise requests.ConnectionError(msg)
            if not response.ok:
                msg = f"{_host(url)} answered {response.status_code}"
                raise _Failed(msg)
            continued = response.status_code == requests.codes.partial_content
            self._append(response, have if continued else 0)

    def _append(self, response: "requests.Response", have: int) -> None:
        length = int(response.headers.get("Content-Length", 0))
        total = have + length if length else 0
        with self.part.open("r+b" if have else "wb") as file:
            file.seek(have)
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                file.write(chunk)
                if self.progress is not None:
                    self.progress(file.tell(), total)


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
