"""Storage on disk: atomic, locked, numbered by format."""
