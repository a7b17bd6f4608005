"""The web server of `proctor view`: the client's files and the pages as JSON, on loopback unless told otherwise."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proctor.ports import History
from proctor.records import codec

if TYPE_CHECKING:
    from proctor.web.pages import Compute, Pages

CLIENT = Path(__file__).parent / "client"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
TOKEN_COOKIE = "proctor_token"
# Only the served page knows the secret of this process, so that no other page can change anything.
CHANGE_HEADER = "x-proctor-token"
MAX_BODY_BYTES = 64_000
MAX_THREADS = 32


def make_app(
    history: History, *, hosts: frozenset[str], token: str | None = None, compute: Compute | None = None
) -> ASGIApp:
    """Make the web application; requests must name one of the hosts, and know the token if there is one.

    Pages of large runs that take seconds come from `compute`, if it is given.
    """
    return Guard(Viewer(history, is_shared=token is not None, compute=compute), hosts, token)


class Viewer:
    """Answers with files of the client, and below /api with the pages of a history, which load on demand.

    POST stores labels and nothing else. A shared viewer proposes no name for the annotator.
    """

    def __init__(self, history: History, *, is_shared: bool = False, compute: Compute | None = None) -> None:
        self._history, self._is_shared, self._compute = history, is_shared, compute
        self._secret = secrets.token_urlsafe(24)
        self._lock = threading.Lock()
        self._pages: Pages | None = None
        # Enough threads that pages that take seconds do not keep the others waiting.
        self._threads = ThreadPoolExecutor(MAX_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, request = scope["path"], Request(scope, receive)
        changes = path.startswith("/api/runs/") and path.endswith("/labels")
        allowed = ("POST",) if changes else ("GET", "HEAD")
        if scope["method"] not in allowed:
            text = f"This address accepts only {' and '.join(allowed)} requests.\n"
            response = Response(text, 405, {"allow": ", ".join(allowed)}, "text/plain")
        elif changes:
            response = await self._change(path.removeprefix("/api/"), request)
        elif path.startswith("/api/"):
            query = dict(request.query_params)
            response = await self._run(lambda pages: pages.answer_json(path.removeprefix("/api/"), query))
        else:
            response = serve_file(path.removeprefix("/"), self._secret)
            if path == "/":
                # The statistics behind the pages take as long to import as the server: start before they are needed.
                self._threads.submit(self._load_pages)
        await response(scope, receive, send)

    async def _change(self, path: str, request: Request) -> Response:
        token = request.headers.get(CHANGE_HEADER, "")
        if not secrets.compare_digest(token.encode(), self._secret.encode()):
            return _json({"error": "the page does not belong to this server", "fix": "reload the page"}, 403)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _json({"error": "the body must be application/json", "fix": "reload the page"}, 415)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                return _json({"error": f"the body has more than {MAX_BODY_BYTES:,} bytes", "fix": "shorten it"}, 413)
        return await self._run(lambda pages: pages.change_json(path, body))

    async def _run(self, answer: Callable[[Pages], tuple[int, bytes]]) -> Response:
        loop = asyncio.get_running_loop()
        status, body = await loop.run_in_executor(self._threads, lambda: answer(self._load_pages()))
        return Response(body, status, media_type="application/json")

    def _load_pages(self) -> Pages:
        with self._lock:
            from proctor.validity.labelling import user_name
            from proctor.web.pages import Pages

            annotator = "" if self._is_shared else user_name()
            self._pages = self._pages or Pages(self._history, annotator, self._compute)
            return self._pages


def _json(value: Any, status: int = 200) -> Response:
    return Response(codec.encode_any_text(value), status, media_type="application/json")


def serve_file(name: str, secret: str = "") -> Response:
    """Serve a file of the client, whose pages are behind the # of its address; the page contains the secret."""
    path = CLIENT / (name or "index.html")
    if path.parent != CLIENT or path.suffix not in MEDIA_TYPES or not path.is_file():
        return Response("There is no such page. Open the address without a path.\n", 404, media_type="text/plain")
    content = path.read_bytes()
    if path.suffix == ".html":
        content = content.replace(b"</head>", f'<meta name="proctor-token" content="{secret}">\n</head>'.encode())
    return Response(content, headers={"content-type": MEDIA_TYPES[path.suffix]})


class Guard:
    """Rejects requests for other hosts, from other origins, or without the token, and adds security headers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        sends = self._with_headers(send)
        problem = self._find_problem(request)
        if problem is not None:
            await Response(f"{problem}\n", 403, media_type="text/plain")(scope, receive, sends)
        elif self._token is not None and request.query_params.get("token") == self._token:
            # The token moves from the address to a cookie, so that it is not copied with a link.
            response = Response(status_code=303, headers={"location": request.url.path})
            response.set_cookie(TOKEN_COOKIE, self._token, httponly=True, samesite="strict")
            await response(scope, receive, sends)
        else:
            await self._app(scope, receive, sends)

    def _find_problem(self, request: Request) -> str | None:
        host = request.headers.get("host", "")
        if host.lower() not in self._hosts:
            return "This server does not serve this address. Open the address that `proctor view` printed."
        origin = request.headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() not in self._hosts:
            return "This server rejects requests from other sites."
        if self._token is None:
            return None
        given = request.query_params.get("token") or request.cookies.get(TOKEN_COOKIE) or ""
        if not secrets.compare_digest(given.encode(), self._token.encode()):
            return "The token is missing or wrong. Open the address that `proctor view` printed."
        return None

    def _with_headers(self, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        return send_with_headers


def list_hosts(host: str, port: int) -> frozenset[str]:
    """Return the values of the Host header that are answered."""
    names = LOOPBACK if host in LOOPBACK else (host,)
    bracketed = [f"[{name}]" if ":" in name else name for name in names]
    return frozenset(name if port == 80 else f"{name}:{port}" for name in bracketed)
