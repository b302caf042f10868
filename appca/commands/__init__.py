"""The commands of ``python -m appca``, one module each."""
