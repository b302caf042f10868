"""The earlier place of `appca.canvas.notebook.figures`."""

from appca.canvas.notebook.figures import plot_components, plot_map, plot_subspaces

__all__ = ["plot_components", "plot_map", "plot_subspaces"]
