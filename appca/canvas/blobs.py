"""Parts of scenes that browsers fetch by names that cannot be guessed.

A name is a keyed hash of the content, so a browser can reuse its copy for every run, session and
page. The least recently requested content is evicted; the next page offers it again.
"""

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from appca.canvas.scene import Scene

SHARD = 2_000_000  # bytes; browsers do not cache much larger files
MOST_BYTES, MOST_PROMISES = 512 << 20, 20_000
RAW, PNG, JSON = "application/octet-stream", "image/png", "application/json"


class Served(NamedTuple):
    """Content with its type."""

    content: bytes | memoryview
    kind: str


class Parcels:
    """Content available from this server, for all sessions."""

    def __init__(self, secret: bytes, most_bytes: int = MOST_BYTES) -> None:
        self._secret, self._most = secret, most_bytes
        self._kept: OrderedDict[str, Served] = OrderedDict()
        self._promises: OrderedDict[str, tuple[Callable[[], bytes], str]] = OrderedDict()
        self._bytes = 0
        self._lock, self._making = threading.Lock(), threading.Lock()

    def offer(self, content: bytes | memoryview, kind: str = RAW) -> str:
        """Store bytes and return their name."""
        name = self.name(content)
        self._keep(name, Served(content, kind))
        return name

    def promise(self, what: str, make: Callable[[], bytes], kind: str) -> str:
        """Return the name of content, identified by `what`, that is made when first requested."""
        name = self.name(what.encode())
        with self._lock:
            self._promises[name] = (make, kind)
            self._promises.move_to_end(name)
            while len(self._promises) > MOST_PROMISES:
                self._promises.popitem(last=False)
        return name

    def get(self, name: str) -> Served | None:
        """Return content, or None if unknown; create deferred content now."""
        parcel = self.at_hand(name)
        if parcel is None and name in self._promises:
            with self._making:  # one at a time, so that two requests do not create it twice
                parcel, promised = self.at_hand(name), self._promises.get(name)
                if parcel is None and promised is not None:
                    make, kind = promised
                    parcel = Served(make(), kind)
                    self._keep(name, parcel)
        return parcel

    def at_hand(self, name: str) -> Served | None:
        """Return content that has been created, or None."""
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
            return self._kept.get(name)

    def _keep(self, name: str, parcel: Served) -> None:
        with self._lock:
            if name not in self._kept:
                self._bytes += len(parcel.content)
                self._kept[name] = parcel
            self._kept.move_to_end(name)
            while self._bytes > self._most and len(self._kept) > 1:
                _, gone = self._kept.popitem(last=False)
                self._bytes -= len(gone.content)

    def name(self, content: bytes | memoryview, of: bytes = b"") -> str:
        """Return the name of content, computed with the home's secret."""
        return hashlib.blake2b(content, key=self._secret, digest_size=16, person=of).hexdigest()


def publish(scene: Scene, of_rows: str, parcels: Parcels) -> dict[str, Any]:
    """Offer all parts of a scene; return their names, which are all that the page receives.

    `of_rows` is the digest of the data set, which identifies the sheets; they are drawn on request.
    Keys are "meta" (JSON), "buffers" (name to shards in order), "sheets" and "components" (None
    if there are none).
    """
    drawn = []
    if (sheets := scene.sheets) is not None:
        for number in range(sheets.n_sheets):
            what = f"{of_rows} {sheets.header} {number}"
            drawn.append(parcels.promise(what, partial(sheets.png, number), PNG))
    about = json.dumps(scene.meta, separators=(",", ":"), allow_nan=False).encode()
    pictures = scene.component_sheet
    return {
        "meta": parcels.offer(about, JSON),
        "buffers": {name: _shards(buffer, parcels) for name, buffer in scene.buffers.items()},
        "sheets": drawn,
        "components": None if pictures is None else parcels.offer(pictures, PNG),
    }


def _shards(array: np.ndarray, parcels: Parcels) -> list[str]:
    raw = array.data.cast("B") if array.size else memoryview(b"")
    return [parcels.offer(raw[at : at + SHARD]) for at in range(0, len(raw), SHARD)]
