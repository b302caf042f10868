"""Explore: all subspaces in one picture, with components, the selection or a row beside it."""

from appca.ui import explore

explore.draw()
