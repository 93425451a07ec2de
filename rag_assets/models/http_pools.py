"""Connections for hundreds of calls at once. Needs httpx2, which the SDKs of providers bring along."""

import socket
from urllib.request import getproxies

import httpx2

_POOLS = 16
_IDLE_SECONDS = 30.0  # servers close idle connections after 60 or more
_KEEPALIVE_SECONDS = 60
_KEEPALIVE_PROBES = 5


LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=None, keepalive_expiry=_IDLE_SECONDS)


def connection_pools() -> "ConnectionPools | None":
    """Connections for a client of httpx2, to be given with `LIMITS`.

    Returns:
        None where the environment names a proxy: only connections of the client's own making take note of those.
    """
    return None if getproxies() else ConnectionPools()


class ConnectionPools(httpx2.AsyncBaseTransport):
    """Spreads calls over pools of connections, none of which has a limit on them.

    A pool looks at each of its connections whenever a call begins or ends, and asks the system about each idle one:
    with 256 calls under way that is a third of what a call costs. The SDKs' own pools also close idle connections but
    for 100.
    """

    def __init__(self) -> None:
        context = httpx2.create_ssl_context()
        self._pools = [
            httpx2.AsyncHTTPTransport(verify=context, limits=LIMITS, socket_options=_socket_options())
            for _ in range(_POOLS)
        ]
        self._calls = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Make a call over the next pool."""
        self._calls += 1
        return await self._pools[self._calls % _POOLS].handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools:
            await pool.aclose()


def _socket_options() -> list[tuple[int, int, int]]:
    """A connection on which nothing comes for minutes, while a model writes, is kept by routers and found when lost."""
    names = {"TCP_KEEPIDLE": _KEEPALIVE_SECONDS, "TCP_KEEPINTVL": _KEEPALIVE_SECONDS, "TCP_KEEPCNT": _KEEPALIVE_PROBES}
    values = {getattr(socket, name, None): value for name, value in names.items()}
    options = [(socket.IPPROTO_TCP, option, value) for option, value in values.items() if option is not None]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *options]
