"""What the canvas of the page Explore is fed with: rows, layouts and image sheets as raw buffers."""
