"""Models as scikit-learn estimators, one file each; their inference is in the other modules."""
