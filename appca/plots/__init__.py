"""Figures: data in, Plotly figure out; no model and no Streamlit."""
