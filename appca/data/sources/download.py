"""Fetching a published file: from the first mirror that gives it whole, with the right checksum."""

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from appca.words.errors import InputError
from appca.words.refusal import refused

Progress = Callable[[int, int], None]  # bytes done, bytes in all (0 when the server does not say)


def fetch(
    urls: Sequence[str],
    path: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    advice: str = "try again later.",
) -> Path:
    """Fetch a file, by pooch, from the first of `urls` that gives it.

    The file appears at `path` only when it is complete and has the checksum `sha256`, if one is
    given. `progress` is told (bytes done, bytes in all); raising from it stops the download.

    Raises InputError when no mirror gave the file, with the last reason and then `advice`.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    downloader = pooch.HTTPDownloader(
        progressbar=_Meter(progress) if progress else False,
        chunk_size=1 << 16,
        headers={"Accept-Encoding": "identity"},  # the bytes of the file, not of a packed copy
        timeout=(10, 30),
    )
    checksum = None if sha256 is None else f"sha256:{sha256}"
    reason = ""
    for url in urls:
        host = urlsplit(url).hostname or url
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pooch.retrieve(url, checksum, path.name, path.parent, downloader=downloader)
        except requests.HTTPError as error:
            reason = f"{host} answered {getattr(error.response, 'status_code', 'nothing')}"
        except requests.RequestException as error:
            reason = f"the connection to {host} failed: {type(error).__name__}"
        except OSError as error:
            what = f"{path} could not be written"
            raise refused(what, error, advice.rstrip(".")) from error
        except ValueError:  # pooch's word for a wrong checksum
            reason = f"what {host} sent does not have the published checksum"
        else:
            return path
    msg = f"{path.name} could not be downloaded ({reason}); {advice}"
    raise InputError(msg)


def remedy(title: str, names: Sequence[str], folder: Path) -> str:
    """Say which files to put where when a download does not work."""
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    place = f"put {listed} into {folder}, or drop {'it' if len(names) == 1 else 'them'}"
    return f"to open {title} without a network, {place} onto the Data page."


class _Meter:
    """What pooch takes for a progress bar; it counts whole chunks, so at the end too many."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.total, self._done = progress, 0, 0

    def update(self, n_bytes: int) -> None:
        self._done += n_bytes
        self.progress(min(self._done, self.total or self._done), self.total)

    def reset(self) -> None:
        self._done = 0

    def close(self) -> None:
        self._done = 0
