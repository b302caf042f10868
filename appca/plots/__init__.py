"""Figures: data in, Plotly figure out, in folders named as the pages that show them."""
