"""Cards: HTML with pictures of rows, and with buttons in it."""
