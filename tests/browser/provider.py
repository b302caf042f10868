"""A provider of OpenID Connect for one client, as small as the flow with a code and PKCE allows."""

import base64
import hashlib
import json
import secrets
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

CLIENT, SECRET = "appca-hub", "of-the-client"
FORM = '<form><input name="name" id="name">{}<button id="enter">Enter</button></form>'


class Provider(BaseHTTPRequestHandler):
    """Asks for a name and believes it."""

    codes: dict[str, dict[str, str]]
    tokens: dict[str, str]
    callback: str

    def log_message(self, *_):
        """Say nothing."""

    def answer(self, content, kind="application/json", status=200):
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        here = f"http://127.0.0.1:{self.server.server_port}"
        parts = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/.well-known/openid-configuration":
            ends = {"authorization": "authorize", "token": "token", "userinfo": "userinfo"}
            self.answer({f"{name}_endpoint": f"{here}/{path}" for name, path in ends.items()})
        elif parts.path == "/authorize":
            self.authorize(asked)
        else:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            name = self.tokens.get(token)
            self.answer({"preferred_username": name, "sub": name}, status=200 if name else 401)

    def authorize(self, asked):
        fits = (asked.get("client_id"), asked.get("redirect_uri")) == (CLIENT, self.callback)
        if not fits or asked.get("code_challenge_method") != "S256":
            self.answer("no", "text/plain", 400)
        elif "name" not in asked:
            hidden = [f'<input type="hidden" name="{k}" value="{v}">' for k, v in asked.items()]
            self.answer(FORM.format("".join(hidden)), "text/html")
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = asked
            self.send_response(302)
            back = urlencode({"code": code, "state": asked["state"]})
            self.send_header("Location", f"{self.callback}?{back}")
            self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        told = {name: values[0] for name, values in parse_qs(body).items()}
        asked = self.codes.pop(told.get("code", ""), None)
        digest = hashlib.sha256(told.get("code_verifier", "").encode()).digest()
        proof = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        knows = told.get("client_secret") == SECRET
        knows |= self.headers.get("Authorization") == f"Basic {basic}"
        if asked is None or asked["code_challenge"] != proof or not knows:
            self.answer({"error": "invalid_grant"}, status=400)
            return
        token = secrets.token_urlsafe(16)
        self.tokens[token] = asked["name"]
        self.answer({"access_token": token, "token_type": "Bearer"})


@contextmanager
def provided(callback):
    """Run a provider; return the variables by which the hub uses it."""
    kind = type("Here", (Provider,), {"codes": {}, "tokens": {}, "callback": callback})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {
            "APPCA_HUB_LOGIN": "oidc",
            "OIDC_ISSUER": f"http://127.0.0.1:{server.server_port}",
            "OIDC_CLIENT_ID": CLIENT,
            "OIDC_CLIENT_SECRET": SECRET,
            "OIDC_CALLBACK": callback,
        }
    finally:
        server.shutdown()
        server.server_close()
