"""A provider of OpenID Connect for one client, as small as the flow with a code allows."""

import json
import secrets
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT = "appca-hub"
ASKED = ("client_id", "redirect_uri", "code_challenge_method")
FORM = '<form><input name="name" id="name">{}<button id="enter">Enter</button></form>'


class Provider(BaseHTTPRequestHandler):
    """Asks for a name and believes it; codes and tokens are the names with a secret before them."""

    callback: str
    names: dict[str, str]

    def log_message(self, *_):
        """Say nothing."""

    def answer(self, content, status=200, **headers):
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if "<" in content else "application/json")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content.encode())

    def named(self, name):
        """Return what stands for a name."""
        self.names[code := secrets.token_urlsafe(16)] = name
        return code

    def do_GET(self):
        here = f"http://127.0.0.1:{self.server.server_port}"
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/.well-known/openid-configuration":
            ends = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            places = {f"{name}_endpoint": f"{here}/{path}" for name, path in ends.items()}
            self.answer(json.dumps(places))
        elif parts.path == "/userinfo":
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            name = self.names.get(token)
            told = json.dumps({"preferred_username": name, "sub": name})
            self.answer(told, 200 if name else 401)
        elif [asked.get(name) for name in ASKED] != [CLIENT, self.callback, "S256"]:
            self.answer("{}", 400)
        elif "name" not in asked:
            hidden = [f'<input type="hidden" name="{k}" value="{v}">' for k, v in asked.items()]
            self.answer(FORM.format("".join(hidden)))
        else:
            back = urlencode({"code": self.named(asked["name"]), "state": asked["state"]})
            self.answer("{}", 302, Location=f"{self.callback}?{back}")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        name = self.names.pop(parse_qs(body).get("code", [""])[0], None)
        told = {"access_token": self.named(name), "token_type": "Bearer"} if name else {}
        self.answer(json.dumps(told or {"error": "invalid_grant"}), 200 if name else 400)


@contextmanager
def provided(callback):
    """Run a provider; return the variables by which the hub uses it."""
    kind = type("Here", (Provider,), {"names": {}, "callback": callback})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "APPCA_HUB_LOGIN": "oidc",
            "OIDC_ISSUER": f"http://127.0.0.1:{server.server_port}",
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_CLIENT_SECRET": "of-the-client",
            "OIDC_CALLBACK": callback,
        }
    finally:
        server.shutdown()
        server.server_close()
