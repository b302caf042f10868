"""Clusterwise methods that adaptive PPCA is compared with, as scikit-learn estimators."""
