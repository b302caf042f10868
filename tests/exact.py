"""CSV read back to the bit, by pandas 2 as well."""

import io
from typing import Any

import pandas as pd

OLD = int(pd.__version__.partition(".")[0]) < 3
ROUND_TRIP: dict[str, Any] = {"float_precision": "round_trip"} if OLD else {}


def table_of(content: bytes) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(content), **ROUND_TRIP)
