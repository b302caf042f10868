"""Runs: settings, fitting, what a fit gave, and how it is kept."""
