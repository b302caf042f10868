"""The page Export: files of projections, components, figures, the model."""
