"""Commands as targets: one process for each call, with JSON on standard input and output."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.errors import CallFailed, Problem, TargetError
from proctor.records import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.trial import Reply
from proctor.targets import wire

STDIN, STDOUT = 0, 1
STDERR_BYTES, STDERR_LINES = 8192, 10
COMMAND_FIX = 'write the program and its arguments as strings: ["python", "bot.py"]'


class CommandTarget:
    """A program in any language; every call starts a new process, without a shell.

    The program reads one JSON object `{"id", "input", "options"}` from standard input to its end and writes `{"output":
    …}`, optionally with `"usage"` and `"session"`, or `{"error": "…"}`. `env` extends the environment. When a call
    ends, for any reason, the program and all its child processes are killed, unless they opened a new session.

    >>> target = CommandTarget(["sh", "-c", 'cat >/dev/null; echo \\'{"output": "Paris"}\\''])
    >>> asyncio.run(target.call(Sample("1", "capital of France?"), {})).output
    'Paris'
    """

    blocking = False

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | Path | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        self._argv = _split_command(command)
        # Absolute, because an evaluator may change the working directory between two calls.
        self._cwd = Path(cwd or ".").absolute()
        self._env = {**os.environ, **(env or {})}
        problems = _find_problems(self._argv, self._cwd, env or {}, self._env.get("PATH"))
        if problems:
            fix = "correct the command, or install the program"
            raise TargetError("the command cannot be run", where=name or "", problems=problems, fix=fix)
        identity = codec.digest(self._argv, cwd, env or {}, _file_digests(self._argv, self._cwd))[:16]
        uncovered = ("files that the program uses and its arguments do not name",)
        self.spec = TargetSpec(name or _default_name(self._argv, self._cwd), "command", identity, uncovered)

    def __repr__(self) -> str:
        return f"CommandTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """Accept all options, because only the program knows which options are valid."""
        return []

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Reply:
        """Run the program on one sample."""
        content = wire.encode_call(sample, options)
        output = _ProcessOutput()
        transport = await self._start(output)
        try:
            stdin = transport.get_pipe_transport(STDIN)
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(content)
            stdin.close()
            await output.closed.wait()
        finally:
            await _stop(transport, output)
        return self._read_reply(transport.get_returncode(), output)

    async def close(self) -> None:
        """Do nothing: no process outlives its call."""

    async def _start(self, output: _ProcessOutput) -> asyncio.SubprocessTransport:
        """Start the program; after a cancellation, wait for the start and stop the process."""
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: output, *self._argv, cwd=self._cwd, env=self._env, start_new_session=True
            )
        )
        try:
            return (await asyncio.shield(starting))[0]
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await _stop(starting.result()[0], output)
            raise
        except OSError as error:
            raise CallFailed(f"{self.spec.name} could not be started: {error}") from None

    def _read_reply(self, code: int | None, output: _ProcessOutput) -> Reply:
        name, data = self.spec.name, bytes(output.stdout)
        if output.is_too_long:
            raise CallFailed(f"{name} wrote more than {wire.MAX_BYTES:,} bytes and was stopped")
        if code:
            failure = wire.find_failure(data)
            raise failure or CallFailed(f"{name} {_describe_exit(code)}{output.stderr_tail()}")
        try:
            return wire.parse_response(data, name)
        except CallFailed as error:
            raise CallFailed(error.what + output.stderr_tail(), retryable=error.retryable) from None


class _ProcessOutput(asyncio.SubprocessProtocol):
    """The output of one process, and the events of its end."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.is_too_long = False
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != STDOUT:
            self.stderr += data
            del self.stderr[:-STDERR_BYTES]
        elif len(self.stdout) + len(data) <= wire.MAX_BYTES:
            self.stdout += data
        else:
            self.is_too_long = True
            kill_group(self._transport)

    def process_exited(self) -> None:
        # Background processes would keep the output open.
        kill_group(self._transport)
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.closed.set()

    def stderr_tail(self) -> str:
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()[-STDERR_LINES:]
        return "; standard error ends with:\n" + "\n".join(lines) if lines else ""


async def _stop(transport: asyncio.SubprocessTransport, output: _ProcessOutput) -> None:
    """Kill all processes and wait for the exit before closing, because closing earlier would be a race."""
    if not output.exited.is_set():
        kill_group(transport)
        await output.exited.wait()
    transport.close()
    await output.closed.wait()


def kill_group(transport: asyncio.SubprocessTransport) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            transport.kill()
        else:
            os.killpg(transport.get_pid(), signal.SIGKILL)


def _split_command(command: Any) -> tuple[str, ...]:
    try:
        argv = shlex.split(command) if isinstance(command, str) else [*command]
    except (TypeError, ValueError) as error:
        raise TargetError(f"{command!r} is not a command: {error}", fix=COMMAND_FIX) from None
    if not argv or not all(isinstance(argument, str) for argument in argv):
        raise TargetError(f"{command!r} is not a command", fix=COMMAND_FIX)
    return tuple(argv)


def _find_problems(argv: Sequence[str], folder: Path, env: Mapping[str, Any], search_path: str | None) -> list[Problem]:
    problems = [
        Problem(f"env.{key}", "the value is not a string") for key, value in env.items() if not isinstance(value, str)
    ]
    if not folder.is_dir():
        return [*problems, Problem("cwd", f"folder not found: {str(folder)!r}")]
    has_path = Path(argv[0]).name != argv[0]
    if shutil.which(str(folder / argv[0]) if has_path else argv[0], path=search_path) is None:
        problems.append(Problem("command", f"no executable program is named {argv[0]!r}"))
    return problems


def _default_name(argv: Sequence[str], folder: Path) -> str:
    """Return the program and, for an interpreter, its script; other arguments may be secrets."""
    has_script = len(argv) > 1 and bool(argv[1]) and (folder / argv[1]).is_file()
    return " ".join(Path(argument).name for argument in argv[: 2 if has_script else 1])


def _describe_exit(code: int) -> str:
    if code > 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _file_digests(argv: Sequence[str], folder: Path) -> list[str]:
    """Digest the files among the arguments, because a changed script is a different target."""
    # This includes the program if it is part of the project; the path of an interpreter is absolute.
    names = argv if os.sep in argv[0] and not Path(argv[0]).is_absolute() else argv[1:]
    files = (folder / name for name in names)
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
