"""Connections to a server in small groups, side by side.

A pool looks at every connection it has for each request, so one large pool costs more for each
request than several small ones. A lane is a client with few connections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from proctor.remote import is_loopback

if TYPE_CHECKING:
    import httpx2

# How many requests are under way in a lane before the next one is used.
WIDTH = 8


class Lane:
    """One client, and how many requests are under way in it."""

    __slots__ = ("client", "under_way")

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.under_way = 0


class Lanes:
    """The clients of one endpoint in one event loop; more are opened as they are needed.

    Redirects are not followed and cookies not kept. Proxies set in the environment are used, but
    never for a server on this machine.
    """

    def __init__(self, origin: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(origin)
        self._near = is_loopback(parts.hostname or "")
        # Certificates take long to load, and plain HTTP on this machine has no use for them.
        self._plain = self._near and parts.scheme == "http"
        self._headers = dict(headers)
        self._certificates: Any = None
        self._lanes: list[Lane] = []

    def lane(self) -> Lane:
        """The first lane with room; whoever takes it counts itself in and out."""
        for lane in self._lanes:
            if lane.under_way < WIDTH:
                return lane
        self._lanes.append(Lane(self._client()))
        return self._lanes[-1]

    async def close(self) -> None:
        """Close all connections."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.client.aclose()

    def _client(self) -> httpx2.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx2

        if self._certificates is None:
            self._certificates = (
                False if self._plain else httpx2.create_ssl_context(trust_env=not self._near)
            )
        # The limiter says how many calls are under way, and the endpoint how long they may take.
        return httpx2.AsyncClient(
            headers=self._headers,
            verify=self._certificates,
            timeout=None,
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=2 * WIDTH),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=not self._near,
        )
