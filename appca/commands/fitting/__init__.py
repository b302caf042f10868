"""Fits on a cluster, and fits that go into a file of annotated data."""
