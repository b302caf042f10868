"""The user interface: the only part that imports Streamlit."""
