"""Reproductions of the experiments of the paper: how they are defined, run and stored."""
