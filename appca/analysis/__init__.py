"""What is computed from a fitted run: subspaces, projections, embeddings, exports."""
