"""Models as scikit-learn estimators, one file each; their inference stands in the folders below."""
