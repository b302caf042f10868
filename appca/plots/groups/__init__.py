"""Pictures of groups of rows."""
