"""The earlier place of `appca.canvas.file`."""

from appca.canvas.file import save_html

__all__ = ["save_html"]
