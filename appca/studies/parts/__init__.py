"""What several experiments use: methods, measures, printed values."""
