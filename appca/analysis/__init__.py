"""Analyses of a run; each module is named after the page that shows it."""
