"""Maps in a session file: settings, coordinates, and the fits that some of them start from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from appca.analysis.explore.umap import Embedding, EmbeddingConfig, EmbeddingStore
from appca.data.dataset import Dataset
from appca.storage.packed import Packed
from appca.storage.schema import Facts

KeptMap = tuple[EmbeddingConfig, Embedding]


class AboutMap(Struct):
    """What a session file says of a map."""

    config: Facts
    info: Facts


def of_runs(maps: Sequence[KeptMap], ids: Mapping[str, str]) -> list[KeptMap]:
    """Return maps that start from fits of other ids, such as those in another home."""
    return [(replace(of, run=ids.get(of.run or "", of.run)), embedding) for of, embedding in maps]


def about(maps: Sequence[KeptMap]) -> list[dict[str, Any]]:
    """Return what a session file says of maps."""
    return [{"config": config.to_dict(), "info": embedding.info} for config, embedding in maps]


def read(packed: Packed, number: int, said: AboutMap, dataset: Dataset) -> KeptMap:
    """Read a map of a data set; ValueError for one of other rows."""
    config, places = EmbeddingConfig.from_dict(said.config), packed.array(f"maps/{number}.npy")
    fits = places.dtype == np.float32 and places.shape == (dataset.n_rows, config.n_components)
    fits = fits and bool(np.isfinite(places).all()) and config.dataset == dataset.digest
    seconds = said.info.get("seconds")
    if not fits or not isinstance(seconds, int | float):
        msg = "a map of other rows"
        raise ValueError(msg)
    return config, Embedding(places, {"seconds": seconds, "n_rows": dataset.n_rows})


def keep(maps: Sequence[KeptMap], home: Path) -> None:
    """Store maps, unless they are there."""
    store = EmbeddingStore(home)
    for config, embedding in maps:
        if store.get(config.id) is None:
            store.save(config, embedding)
