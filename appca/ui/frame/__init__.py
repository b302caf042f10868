"""What surrounds every page: navigation, sidebar, style, the first tour."""
