"""Figures of the paper, reproduced."""

from collections.abc import Mapping
from typing import Any

Row = Mapping[str, Any]  # of a study's table: texts and numbers by the name of the column
