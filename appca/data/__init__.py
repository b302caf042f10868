"""Data sets: their types, sources and preprocessing."""
