"""Who may reach a server; nothing here serves."""
