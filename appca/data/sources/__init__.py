"""Data sets that can be opened by name: bundled, published, made by the project, or drawn."""
