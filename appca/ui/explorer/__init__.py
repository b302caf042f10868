"""The explorer component."""
