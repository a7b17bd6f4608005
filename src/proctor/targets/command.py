"""Programs as targets: one process a call, JSON on its standard input and output."""

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


class CommandTarget:
    """A program in any language; it is started anew for every call, and never through a shell.

    It reads one JSON object `{"id", "input", "options"}` to the end of its standard input and
    writes `{"output": …}`, with `"usage"` and `"session"` if it likes, or `{"error": "…"}`. `env`
    is added to the environment. When a call ends, for whatever reason, the program and everything
    it started are killed, so that nothing outlives a time-out (only a program that opens a
    session of its own escapes).

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
        self._argv = _words(command)
        # Absolute: an evaluator may change the current folder between two calls.
        self._cwd = Path(cwd or ".").absolute()
        self._env = {**os.environ, **(env or {})}
        problems = _problems(self._argv, cwd, env or {}, self._env.get("PATH"))
        if problems:
            raise TargetError("the command cannot be run", where=name or "", problems=problems)
        identity = codec.digest(self._argv, cwd, env or {}, _programs(self._argv, cwd))[:16]
        uncovered = ("what the program imports and reads besides the files that it is given",)
        self.spec = TargetSpec(name or _name(self._argv, cwd), "command", identity, uncovered)

    def __repr__(self) -> str:
        return f"CommandTarget({self.spec.name!r})"

    def check_options(self, options: Mapping[str, Any]) -> list[str]:  # noqa: ARG002
        """Options are handed to the program, which alone knows what it takes."""
        return []

    async def call(self, sample: Sample[Any, Any], options: Mapping[str, Any], _epoch: int = 0) -> Reply:
        """Run the program on one sample."""
        asked = wire.question(sample, options)
        conversation = _Conversation()
        transport = await self._start(conversation)
        try:
            stdin = transport.get_pipe_transport(STDIN)
            assert isinstance(stdin, asyncio.WriteTransport)
            stdin.write(asked)
            stdin.close()
            await conversation.ended.wait()
        finally:
            await _finish(transport, conversation)
        return self._reply(transport.get_returncode(), conversation)

    async def close(self) -> None:
        """Nothing is held between calls."""

    async def _start(self, conversation: _Conversation) -> asyncio.SubprocessTransport:
        """Start the program. A start that is cancelled half-way is seen through, then undone."""
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: conversation, *self._argv, cwd=self._cwd, env=self._env, start_new_session=True
            )
        )
        try:
            return (await asyncio.shield(starting))[0]
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await _finish(starting.result()[0], conversation)
            raise
        except OSError as error:
            raise CallFailed(f"{self.spec.name} could not be started: {error}") from None

    def _reply(self, code: int | None, conversation: _Conversation) -> Reply:
        name, said = self.spec.name, bytes(conversation.stdout)
        if conversation.too_long:
            raise CallFailed(f"{name} wrote more than {wire.MOST_BYTES:,} bytes and was stopped")
        if code:
            told = wire.failure_in(said)
            raise told or CallFailed(f"{name} {_ending(code)}{conversation.last_words()}")
        try:
            return wire.reply_from(said, name)
        except CallFailed as failure:
            what = failure.what + conversation.last_words()
            raise CallFailed(what, retryable=failure.retryable) from None


class _Conversation(asyncio.SubprocessProtocol):
    """One process: what it has said so far, and whether it has ended."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.too_long = False
        self.exited = asyncio.Event()
        self.ended = asyncio.Event()
        self._transport: asyncio.SubprocessTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != STDOUT:
            self.stderr += data
            del self.stderr[:-STDERR_BYTES]
        elif len(self.stdout) + len(data) <= wire.MOST_BYTES:
            self.stdout += data
        else:
            self.too_long = True
            kill_group(self._transport)

    def process_exited(self) -> None:
        # What the program left in the background would hold its output open.
        kill_group(self._transport)
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.ended.set()

    def last_words(self) -> str:
        """The end of what it wrote to standard error, for a message."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()[-STDERR_LINES:]
        return "; standard error ends with:\n" + "\n".join(lines) if lines else ""


async def _finish(transport: asyncio.SubprocessTransport, conversation: _Conversation) -> None:
    """Leave nothing running. The exit is waited for first: closing too early would race for it."""
    if not conversation.exited.is_set():
        kill_group(transport)
        await conversation.exited.wait()
    transport.close()
    await conversation.ended.wait()


def kill_group(transport: asyncio.SubprocessTransport) -> None:
    """Kill a process with all that it started; those that are gone already are no trouble."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            transport.kill()
        else:
            os.killpg(transport.get_pid(), signal.SIGKILL)


def _words(command: Any) -> tuple[str, ...]:
    """The command as a list of words; a string is split as a shell would, and no more than that."""
    try:
        words = shlex.split(command) if isinstance(command, str) else [*command]
    except (TypeError, ValueError) as error:
        raise TargetError(f"{command!r} is not a command: {error}") from None
    if not words or not all(isinstance(word, str) for word in words):
        raise TargetError(
            f"{command!r} is not a command",
            fix='write the program and its arguments as strings: ["python", "bot.py"]',
        )
    return tuple(words)


def _problems(
    argv: Sequence[str], cwd: str | Path | None, env: Mapping[str, Any], search: str | None
) -> list[Problem]:
    folder = Path(cwd) if cwd is not None else Path()
    problems = [
        Problem(f"env.{key}", "the value is not a string")
        for key, value in env.items()
        if not isinstance(value, str)
    ]
    if not folder.is_dir():
        problems.append(Problem("cwd", f"there is no folder {str(folder)!r}"))
    elif not _found(argv[0], folder, search):
        problems.append(Problem("command", f"there is no program {argv[0]!r} that can be run"))
    return problems


def _found(program: str, folder: Path, search: str | None) -> bool:
    by_path = Path(program).name != program
    return shutil.which(str(folder / program) if by_path else program, path=search) is not None


def _name(argv: Sequence[str], cwd: str | Path | None) -> str:
    """The program and, for an interpreter, its script; other arguments may be secrets."""
    script = argv[1] if len(argv) > 1 else ""
    shown = argv[:2] if script and (Path(cwd or ".") / script).is_file() else argv[:1]
    return " ".join(Path(word).name for word in shown)


def _ending(code: int) -> str:
    if code > 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"


def _programs(argv: Sequence[str], cwd: str | Path | None) -> list[str]:
    """Digests of the files among the words of a command: a changed script is another target."""
    # The program itself as well, if it lies in the project: an interpreter's path is absolute.
    words = argv if os.sep in argv[0] and not Path(argv[0]).is_absolute() else argv[1:]
    files = (Path(cwd or ".") / word for word in words)
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()]
