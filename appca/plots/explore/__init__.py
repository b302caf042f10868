"""Pictures of the page Explore: panels of points, sprites, thumbnails."""
