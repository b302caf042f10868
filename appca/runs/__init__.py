"""Fits on disk and in the background: run store, worker processes, jobs."""
