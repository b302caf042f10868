"""Pages and their parts; the only package that imports Streamlit."""

from pathlib import Path

STATIC = Path(__file__).with_name("static")
