"""The page Data: built-in sets, uploads, preprocessing, kept runs, new rows."""
