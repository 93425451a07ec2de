"""Who may ask a web server: which addresses other machines reach, by which names it is called, and from whose pages.

Addresses that others reach are served with a token only. What a browser says of a request is read here, once for the
HTTP API and the Dagster UI; how each of them answers is its own.
"""

import re
from collections.abc import Collection
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

from rag_assets.contracts.errors import SettingsError

_AUTHORITY = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>[^\s:/?#\\@\[\]%,]+))(?::(?P<port>[0-9]{0,5}))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PORTS = {"http": 80, "https": 443}


class Authority(NamedTuple):
    """A host and a port, as a `Host` header or an address names them."""

    name: str  # name in lower case without trailing dot, or address without brackets, in its shortest form
    port: int | None  # the port; None where none is named


def parse_authority(text: str) -> Authority | None:
    """Read `HOST[:PORT]` with a name, an IPv4 address or an IPv6 address in brackets.

    Returns:
        None where it is anything else, as with a user name, an IPv6 address without brackets, or a port that is no
        number.
    """
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        return None
    port = int(match["port"]) if match["port"] else None
    if port is not None and port > 65_535:
        return None
    if match["ipv6"] is None:
        name = match["name"].lower().removesuffix(".")
        return Authority(name, port) if name else None
    try:
        return Authority(str(IPv6Address(match["ipv6"])), port)
    except ValueError:
        return None


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    name = host.strip().strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, token: str | None) -> None:
    """Refuse to serve others without a token.

    Raises:
        SettingsError: The address can be reached from elsewhere, and there is no token.
    """
    if token is None and not is_loopback(host):
        raise SettingsError(
            f"{host} is open to other machines: set RAG_API_TOKEN (16 characters or more), or serve on 127.0.0.1"
        )


def is_plain_path(path: str) -> bool:
    """Whether a decoded path holds no control character, by which rules on paths and routes may read it differently."""
    return _CONTROL.search(path) is None


def is_own_name(host: str, names: Collection[str], *, loopback: bool) -> bool:
    """Whether a server may be called by a name; another site's name may be made to lead to it (DNS rebinding).

    Args:
        host: The `Host` header of the request.
        names: Names of the server, beside those of this machine.
        loopback: Whether only this machine reaches the server. One that others reach is called by any name where it
            has none of its own.
    """
    authority = parse_authority(host)
    if authority is None:
        return False
    own_names = {name.name if (name := parse_authority(text)) else text.strip("[]").lower() for text in names}
    return authority.name in own_names or is_loopback(authority.name) or not (loopback or own_names)


def is_own_page(host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Whether a request comes from a page of this server, or from no page at all, as far as the browser says.

    Args:
        host: The header `Host`.
        origin: The header `Origin`, which browsers send with what is not a plain GET, and to open a WebSocket.
        fetch_site: The header `Sec-Fetch-Site`.
    """
    if origin is not None and not _is_same_origin(origin, host):
        return False
    return fetch_site not in {"cross-site", "same-site"}


def _is_same_origin(origin: str, host: str) -> bool:
    scheme, _, rest = origin.partition("://")
    sender, receiver = parse_authority(rest), parse_authority(host)
    usual = _PORTS.get(scheme.lower())
    if sender is None or receiver is None or usual is None:
        return False
    return (sender.name, sender.port or usual) == (receiver.name, receiver.port or usual)
