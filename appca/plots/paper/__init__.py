"""Figures of the paper, computed anew."""
