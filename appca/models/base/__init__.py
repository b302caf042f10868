"""What the estimators share: rules for parameters, checks of X, queries of a fitted model."""
