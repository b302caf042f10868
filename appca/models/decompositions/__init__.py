"""Principal directions and independent components of rows."""
