"""Explore: every subspace in one picture, and beside it components, selection or one row."""

from appca.ui import explore

explore.draw()
