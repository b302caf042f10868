"""The page Groups: rows that are alike, what sets some apart, and rows that stand out."""
