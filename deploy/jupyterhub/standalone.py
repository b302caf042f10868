"""A person's server that gives appca alone: `jupyter standaloneproxy --config` this file."""

from appca.commands.jupyter import server

c = get_config()  # noqa: F821 - Jupyter's
settings = server("{base_url}")
for name in ("environment", "request_headers_override", "timeout", "unix_socket", "absolute_url"):
    setattr(c.StandaloneProxyServer, name, settings[name])
c.StandaloneProxyServer.command = settings["command"]
