"""Figures and reports as files."""
