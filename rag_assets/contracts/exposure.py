"""Who may ask a web server: which addresses other machines reach, by which names it is called, and from whose pages.

Addresses that others reach are served with a token only. What a browser says of a request is read here, once for the
HTTP API and the Dagster UI; how each of them answers is its own.
"""

from collections.abc import Collection
from ipaddress import ip_address

from rag_assets.contracts.errors import SettingsError


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
            f"{host} can be reached from other machines: set RAG_API_TOKEN to a secret of 16 characters or more, or "
            "serve on 127.0.0.1"
        )


def is_own_name(host: str, names: Collection[str], *, loopback: bool) -> bool:
    """Whether a server may be called by a name: another site's name may be made to lead here (DNS rebinding).

    Args:
        host: The header `Host`.
        names: Names of the server, beside those of this machine.
        loopback: Whether the server can only be reached from this machine. One that others reach has any name where
            `names` is empty.
    """
    name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
    name = name.strip("[]").rstrip(".").lower()
    named = name in {each.lower() for each in names} or is_loopback(name)
    return named or not (loopback or names)


def is_own_page(host: str, origin: str | None, fetch_site: str | None) -> bool:
    """Whether a request comes from a page of this server, or from no page at all, as far as the browser says.

    Args:
        host: The header `Host`.
        origin: The header `Origin`, which browsers send with what is not a plain GET, and to open a WebSocket.
        fetch_site: The header `Sec-Fetch-Site`.
    """
    if origin is not None and origin.partition("://")[2].lower() != host.lower():
        return False
    return fetch_site not in {"cross-site", "same-site"}
