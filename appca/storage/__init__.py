"""One base for all that is kept on disk: written whole, locked, numbered by format."""
