"""The explorer component."""

from appca.ui.explorer.component import ExplorerResult, explorer
from appca.ui.explorer.payload import HoverColumn, HoverData

__all__ = ["ExplorerResult", "HoverColumn", "HoverData", "explorer"]
