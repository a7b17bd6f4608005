"""`proctor view`: look at runs in a browser."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import Any

import click

from proctor.cli import options as cli
from proctor.cli.filters import explain_no_match
from proctor.core.resources import suggest_file
from proctor.errors import ConfigError, UsageError, join_hints

DEFAULT_PORT = 8700
PORTS_TRIED = 20
TEXT_BROWSERS = ("w3m", "lynx", "links", "elinks", "www-browser")
NO_BROWSER = "warning: no browser found. Fix: open the address above in a browser"


@click.command("view")
@click.argument("run", required=False)
@cli.option(
    "--host NAME", "Listen on this address; an address other than loopback requires a token.", default="127.0.0.1"
)
@cli.option("--port N", f"Listen on this port. Default: the first free one from {DEFAULT_PORT}.", type=int)
@cli.option("--open", "Open the page in the default browser.", is_flag=True)
@cli.option("--history FILE", "Read this history. Default: .proctor/history.db.")
def command(run: str | None, **options: Any) -> None:
    """Look at runs, samples and comparisons in a browser. RUN opens the page of one run.

    \b
    proctor view
    proctor view latest --open

    By default, only this machine can connect. The server changes nothing except human labels. Press Ctrl-C to stop it.
    """
    from proctor.web.background import BackgroundPages
    from proctor.web.server import LOOPBACK, list_hosts, make_app
    from proctor.wiring.open_history import history_file, open_history

    file = history_file(options["history"])
    if options["history"] and file is not None and not file.exists():
        fix = join_hints(suggest_file(file, (".db",)), "`proctor runs` lists the runs of the default history")
        raise UsageError("history not found", where=str(file), fix=fix)
    history = open_history(options["history"])
    page = "" if run is None else f"#/runs/{history.find(run).run_id}"
    host = options["host"]
    with _listen(host, options["port"]) as listener:
        port = listener.getsockname()[1]
        token = None if host in LOOPBACK else secrets.token_urlsafe(24)
        background = BackgroundPages(options["history"])
        app = make_app(history, hosts=list_hosts(host, port), token=token, compute=background.answer)
        shown_host = f"[{host}]" if ":" in host else host
        query = "" if token is None else f"?token={token}"
        address = f"http://{shown_host}:{port}/{query}{page}"
        click.echo(f"viewing {history.describe().where}\n{address}\nPress Ctrl-C to stop.")
        if not history.runs(limit=1):
            click.echo(f"{explain_no_match(history, {})}. The viewer shows a run as soon as it starts.")
        if options["open"]:
            _open_browser(address)
        # Some versions of uvicorn raise the signal again after they have stopped.
        with contextlib.suppress(KeyboardInterrupt):
            make_server(app, background.close).run(sockets=[listener])


def _open_browser(address: str) -> None:
    """Open an address while the server runs; warn if no browser can, or only one that would occupy the terminal."""

    def open_address() -> None:
        if not browser.open(address):
            click.echo(NO_BROWSER, err=True)

    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        click.echo(NO_BROWSER, err=True)
        return
    if getattr(browser, "basename", "") in TEXT_BROWSERS:
        click.echo(NO_BROWSER, err=True)
    else:
        # Some browsers return only when they are closed.
        threading.Thread(target=open_address, daemon=True).start()


def make_server(app: Any, close: Callable[[], None] | None = None) -> Any:
    """Return a server that loads only what answering plain HTTP needs; it calls `close` before it waits for answers."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            if close is not None:
                close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    return Server(config)


def _listen(host: str, port: int | None) -> socket.socket:
    """Return a listening socket, so that the printed address works immediately."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidates = [port] if port is not None else [*range(DEFAULT_PORT, DEFAULT_PORT + PORTS_TRIED), 0]
    for candidate in candidates:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(128)
        except OverflowError:
            listener.close()
            raise ConfigError(f"--port must be from 0 to 65535, got {port}", fix="write --port 8700") from None
        except OSError as error:
            listener.close()
            if isinstance(error, socket.gaierror):
                raise UsageError(f"unknown host {host!r}", where="--host", fix="write --host 127.0.0.1") from None
            if candidate == candidates[-1]:
                raise UsageError(
                    f"cannot listen on {host}:{candidate}: {error.strerror or error}",
                    fix="leave out --port to use a free port, or stop the program that uses this one",
                ) from None
        else:
            return listener
    raise AssertionError("there is always a candidate")
