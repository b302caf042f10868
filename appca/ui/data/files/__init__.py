"""Files of a person: dropped or uploaded, read as guessed, and read otherwise where asked."""
