"""`proctor mcp`: serve results to coding agents."""

from __future__ import annotations

import os
import sys
from typing import Any, BinaryIO

import click

from proctor.cli import options as cli


@click.command("mcp")
@cli.option(
    "--contents",
    "Send inputs, outputs, reasons and sessions when the agent asks for them, with every answer, or never. "
    "Default: on-request.",
    type=cli.Choice(["on-request", "always", "never"]),
    default="on-request",
)
@cli.history_option
def command(contents: Any, history: str | None) -> None:
    """Serve results to a coding agent over stdin and stdout, with the Model Context Protocol (MCP).

    The agent starts this command itself. It can list and show runs and samples, compare two runs, ask which samples
    regressed and why, and read the catalogue of evaluators. It cannot change anything.

    \b
    claude mcp add proctor -- proctor mcp
    proctor mcp --history runs.db --contents never
    """
    if sys.stdin.isatty():
        text = "waiting for a client on stdin; usually a coding agent starts this command. Press Ctrl-D to stop"
        cli.echo_stderr(text, is_problem=False)
    writer = _take_stdout()
    from proctor.mcp.server import McpServer
    from proctor.mcp.toolbox import Toolbox

    McpServer(Toolbox(history, contents), sys.stdin.buffer, writer).serve()


def _take_stdout() -> BinaryIO:
    """Return stdout for the protocol; from now on, whatever prints to stdout goes to stderr."""
    sys.stdout.flush()
    writer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return writer
