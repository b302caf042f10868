"""What surrounds every page: navigation, sidebar, style, old addresses."""
