"""The commands of ``python -m appca``, a module each; `appca.cli` puts them together."""
