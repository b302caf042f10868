"""Further processes of Python: asked in lines of JSON, ended with the process that asks."""
