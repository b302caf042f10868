"""The page Groups: similar rows, and what sets a selection apart."""
