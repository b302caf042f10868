"""What the canvas of the page Explore draws: rows, layouts and image sheets as raw buffers."""
