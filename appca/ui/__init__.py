"""The user interface, a folder for each page; the only part that imports Streamlit."""
