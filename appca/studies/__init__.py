"""Reproductions of the paper's experiments: definition, computation and storage."""
