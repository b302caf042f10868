"""Access control of a server: allowed addresses, its token, and the cookie for the token."""

import hmac
import ipaddress
import re
from collections.abc import Iterable

TOKEN = "APPCA_TOKEN"  # environment variable with the server's secret
PROXY = "APPCA_BEHIND_PROXY"  # set if a proxy asks for a login


def is_loopback(host: str) -> bool:
    """Whether a host name or address is only reachable from this machine."""
    name = host.strip().lower().rstrip(".").strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.startswith("unix:")


def refusal(address: str | None, hosts: Iterable[str], *, guarded: bool) -> str | None:
    """Return the reason to refuse an address to listen at; None if it is allowed.

    `hosts` are the names that the server accepts; `guarded` means that there is a token or a proxy.
    """
    if guarded or is_loopback(address or "") or not all(map(is_loopback, hosts)):
        return None
    return (
        f"The address {address or 'of all networks'} is open to others, and appca has no accounts; "
        f"name the host in server.allowedHosts, set {TOKEN}, or use a proxy with a login "
        "and add --behind-proxy."
    )


def cookie(secret: str) -> str:
    """Return the cookie for a browser that has sent the token, which it does not reveal."""
    return hmac.new(secret.encode(), b"cookie", "sha256").hexdigest()[:40]


def same(text: str, other: str) -> bool:
    """Whether two texts are equal, compared in constant time."""
    return hmac.compare_digest(text.encode(errors="replace"), other.encode(errors="replace"))


def listed(text: str) -> list[str]:
    """Split an environment variable that is a list."""
    return re.split(r"[\s,]+", text.strip()) if text.strip() else []
