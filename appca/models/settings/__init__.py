"""The settings of each model: defaults, values, words for people; imports no scikit-learn."""
