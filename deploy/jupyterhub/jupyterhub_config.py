"""JupyterHub for appca: a login, a process and a home for each person.

All choices are variables of the environment, so that an update of this file loses none:

APPCA_HUB_LOGIN     oidc (default), or dummy: one password for all, for tests on this machine alone
APPCA_HUB_SPAWNER   systemd (default), docker, or local: processes without limits
APPCA_HUB_GIVES     jupyterlab (default), or appca: the app alone
APPCA_HUB_MEMORY    most memory of a person's server, as 4G; APPCA_HUB_CPUS: most processors
APPCA_HUB_IDLE      seconds after which a server that nobody uses is stopped (default 3600)
APPCA_HUB_USERS     names of accounts that may log in, by commas; empty: whoever has a login
APPCA_SHARED        folders of data for all to read, by colons

For oidc: OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET, OIDC_CALLBACK and OIDC_CLAIM, which holds
the name of the account (default preferred_username).
"""

import json
import os
import sys
import urllib.request
from pathlib import Path

c = get_config()  # noqa: F821 - JupyterHub's
HERE, PROGRAMS = Path(__file__).parent, Path(sys.executable).parent
say = os.environ.get
users = set(filter(None, say("APPCA_HUB_USERS", "").split(",")))

c.JupyterHub.bind_url = say("APPCA_HUB_URL", "http://127.0.0.1:8000")
c.JupyterHub.hub_port = int(say("APPCA_HUB_PORT", "8081"))
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{say('APPCA_HUB_PROXY_PORT', '8001')}"
c.ConfigurableHTTPProxy.command = [say("APPCA_HUB_PROXY", "configurable-http-proxy")]
c.JupyterHub.cleanup_servers = True
c.JupyterHub.implicit_spawn_seconds = 1  # a link into the app starts the server of its reader
if say("APPCA_HUB_DOMAIN"):  # a host name for each person: pages of two people are of two sites
    c.JupyterHub.subdomain_host = say("APPCA_HUB_DOMAIN")

if say("APPCA_HUB_LOGIN", "oidc") == "dummy":
    c.JupyterHub.authenticator_class = "dummy"
    c.DummyAuthenticator.password = os.environ["APPCA_HUB_PASSWORD"]
else:
    place = f"{os.environ['OIDC_ISSUER'].rstrip('/')}/.well-known/openid-configuration"
    with urllib.request.urlopen(place, timeout=30) as answer:
        provider = json.load(answer)
    c.JupyterHub.authenticator_class = "generic-oauth"
    login = c.GenericOAuthenticator
    login.client_id, login.client_secret = (
        os.environ["OIDC_CLIENT_ID"],
        os.environ["OIDC_CLIENT_SECRET"],
    )
    login.authorize_url = provider["authorization_endpoint"]
    login.token_url = provider["token_endpoint"]
    login.userdata_url = provider["userinfo_endpoint"]
    login.oauth_callback_url = os.environ["OIDC_CALLBACK"]
    login.scope = ["openid", "profile"]
    login.username_claim = say("OIDC_CLAIM", "preferred_username")
    login.enable_pkce = login.auto_login = True
c.Authenticator.allowed_users, c.Authenticator.allow_all = users, not users
c.Authenticator.any_allow_config = True

spawner = say("APPCA_HUB_SPAWNER", "systemd")
if spawner == "docker":
    c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
    c.DockerSpawner.image = say("APPCA_HUB_IMAGE", "appca-jupyter")
    c.DockerSpawner.volumes = {"appca-{username}": "/home/jovyan"}
    c.DockerSpawner.remove = True
    c.JupyterHub.hub_ip = "0.0.0.0"
elif spawner == "systemd":
    c.JupyterHub.spawner_class = "systemdspawner.SystemdSpawner"
    c.SystemdSpawner.isolate_tmp = c.SystemdSpawner.isolate_devices = True
    c.SystemdSpawner.disable_user_sudo = True
else:
    c.JupyterHub.spawner_class = "jupyterhub.spawner.LocalProcessSpawner"
    c.LocalProcessSpawner.popen_kwargs = {"umask": 0o077}
if say("APPCA_HUB_MEMORY"):
    c.Spawner.mem_limit = say("APPCA_HUB_MEMORY")
if say("APPCA_HUB_CPUS"):
    c.Spawner.cpu_limit = float(say("APPCA_HUB_CPUS"))

c.Spawner.env_keep = ["PATH", "LANG", "LC_ALL"]
c.Spawner.environment = {name: os.environ[name] for name in ("APPCA_SHARED",) if name in os.environ}
c.Spawner.start_timeout = c.Spawner.http_timeout = 120
c.Spawner.default_url = "/appca/"
if say("APPCA_HUB_GIVES", "jupyterlab") == "appca":
    c.Spawner.cmd = [
        str(PROGRAMS / "jupyter-standaloneproxy"),
        f"--config={HERE / 'standalone.py'}",
    ]
    c.Spawner.default_url = ""
else:
    c.Spawner.cmd = [str(PROGRAMS / "jupyterhub-singleuser")]

c.JupyterHub.services = [
    {
        "name": "idle",
        "command": [
            sys.executable,
            "-m",
            "jupyterhub_idle_culler",
            f"--timeout={say('APPCA_HUB_IDLE', '3600')}",
        ],
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "idle",
        "services": ["idle"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }
]
