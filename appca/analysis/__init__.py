"""Analyses of a run, in modules named as the pages that show them."""
