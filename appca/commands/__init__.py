"""The commands of ``python -m appca``, one module per command."""
