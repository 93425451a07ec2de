"""Which addresses other machines reach, and that these are served with a token only."""

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
