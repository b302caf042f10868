"""What arrives from a person: dropped and uploaded files, read as guessed, and saved sessions."""
