"""Adaptive PPCA with a noise of each feature, a scale of each row, or learned sizes."""
