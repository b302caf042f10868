"""Pictures of components, and of how classes share them."""
