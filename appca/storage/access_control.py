"""Who may reach a server: the addresses it may listen at, its token, and the cookie for it."""

import hmac
import ipaddress
import re
from collections.abc import Iterable

TOKEN = "APPCA_TOKEN"  # names the variable with the secret of a server
PROXY = "APPCA_BEHIND_PROXY"  # set where a proxy asks for a login


def is_loopback(host: str) -> bool:
    """Whether a name or an address is of this machine alone."""
    name = host.strip().lower().rstrip(".").strip("[]")
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.startswith("unix:")


def refusal(address: str | None, hosts: Iterable[str], *, guarded: bool) -> str | None:
    """Return the reason not to listen at an address; None if it is allowed.

    `hosts` are the names the server answers to; `guarded` says whether a token or a proxy is there.
    """
    if guarded or is_loopback(address or "") or not all(map(is_loopback, hosts)):
        return None
    return (
        f"The address {address or 'of all networks'} lets others in, and appca has no accounts; "
        f"name the host in server.allowedHosts, set {TOKEN}, or put a proxy with a login before "
        "it and add --behind-proxy."
    )


def cookie(secret: str) -> str:
    """Return the cookie of a browser that had the token, which cannot be made from it."""
    return hmac.new(secret.encode(), b"cookie", "sha256").hexdigest()[:40]


def same(text: str, other: str) -> bool:
    """Whether two texts are equal, in a time that says nothing of either."""
    return hmac.compare_digest(text.encode(errors="replace"), other.encode(errors="replace"))


def listed(text: str) -> list[str]:
    """Return the items of a variable that names several."""
    return re.split(r"[\s,]+", text.strip()) if text.strip() else []
