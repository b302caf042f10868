"""The canvas on a page of Streamlit: routes, messages and scenes of what is shown."""
