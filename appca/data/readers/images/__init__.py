"""Images as rows, their classes read off their names."""
