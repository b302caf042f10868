"""What pages are made of; the only part that imports Streamlit."""

from pathlib import Path

STATIC = Path(__file__).with_name("static")
