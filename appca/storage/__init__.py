"""Storage on disk: atomic and locked, with format numbers."""
