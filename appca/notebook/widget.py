"""The earlier place of `appca.canvas.notebook.widget`."""

from appca.canvas.notebook.widget import Explorer, explore

__all__ = ["Explorer", "explore"]
