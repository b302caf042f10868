"""Further processes of Python: asked in lines of JSON, ended with whoever asks."""
