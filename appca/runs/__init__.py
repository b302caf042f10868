"""Runs: settings, fitting, results and storage."""
