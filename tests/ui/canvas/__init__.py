"""Tests of the canvas on a page."""
