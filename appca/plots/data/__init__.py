"""Pictures of preprocessing."""
