"""Figures: data to Plotly figures, in modules named after the pages that show them."""
