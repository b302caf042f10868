"""Pieces that several pages use: charts, tables, downloads, progress."""
