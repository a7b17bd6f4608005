"""The official client of the Model Context Protocol drives `proctor mcp` as a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.conftest import INJECTION, SECRET

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the package mcp")

# Words and numbers take 2.75 to 4 characters per token; the limit holds for the worst case.
CHARACTERS_PER_TOKEN = 2.75


def drive(history: Path, *calls: tuple[str, dict[str, Any]], mode: str = "auto") -> list[Any]:
    """Return the tools that the client sees, and the result of each call."""
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    args = ["-m", "proctor", "mcp", "--history", str(history)]
    server = StdioServerParameters(command=sys.executable, args=args, env=dict(os.environ))

    async def main() -> list[Any]:
        async with Client(stdio_client(server), mode=mode) as client:
            results = [client.protocol_version, await client.list_tools()]
            return results + [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asyncio.wait_for(main(), 120))


def test_the_stateless_protocol_answers_which_cases_regressed_and_why_in_2000_tokens(history: Path) -> None:
    """200 samples, 45 lost: one call names causes and reasons, in fewer than 2,000 tokens even at 2.75 characters."""
    arguments = {"new": "bad", "reference": "good", "include_content": True}
    version, tools, result, metadata = drive(
        history, ("regressed_cases", arguments), ("regressed_cases", {"new": "bad", "reference": "good"})
    )
    assert version == "2026-07-28"
    assert len(tools.tools) == 8
    assert all(tool.annotations.read_only_hint for tool in tools.tools)
    text = result.content[0].text
    assert not result.is_error
    assert "45 of 200 samples lost, 0 won" in text
    assert "causes: exact_match 40, contains 40, error:TimeoutError 5" in text
    assert "strict_pass_rate 77.5% vs. 100.0%, -22.5 points (n = 200, 95% interval" in text
    assert "case-005: exact_match: expected '15'" in text
    assert (len(text) + len(str(arguments))) / CHARACTERS_PER_TOKEN <= 2_000
    assert INJECTION[:10] not in metadata.content[0].text
    assert SECRET not in text


def test_the_handshake_of_older_clients_works_too(history: Path) -> None:
    """A client that starts with `initialize` gets version 2025-11-25, and errors as results with a fix."""
    version, _, error, runs = drive(history, ("show_run", {"run": "nope"}), ("list_runs", {"limit": 1}), mode="legacy")
    assert version == "2025-11-25"
    assert error.is_error
    assert error.content[0].text == "error: unknown run 'nope'\nFix: choose one of: bad, good, latest"
    assert runs.content[0].text.endswith("more: offset=1")
