"""Benchmarks: the measurements quoted in the documentation, each with its command."""
