"""Programs as targets, with real processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from proctor.errors import CallFailed, TargetError
from proctor.records.sample import Sample
from proctor.records.session import Usage
from proctor.records.trial import Reply
from proctor.targets import wire
from proctor.targets.command import CommandTarget

SAMPLE: Sample[str, str] = Sample("1", "hello")
ECHO = """printf '{"output": '; cat; printf '}'"""


def shell(script: str) -> CommandTarget:
    return CommandTarget(["sh", "-c", script])


def ask(target: CommandTarget, sample: Sample[str, str] = SAMPLE) -> Reply:
    return asyncio.run(target.call(sample, {}))


def failure(script: str) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        ask(shell(script))
    return caught.value


def test_the_program_gets_the_question_and_gives_the_output() -> None:
    """Id, input and options arrive as one JSON object, and the output comes back."""
    reply = asyncio.run(shell(ECHO).call(SAMPLE, {"model": "small"}))
    assert reply == Reply({"id": "1", "input": "hello", "options": {"model": "small"}})


def test_usage_comes_with_the_output() -> None:
    """A program may tell how many tokens it used."""
    target = shell("""cat >/dev/null; echo '{"output": 4, "usage": {"input_tokens": 7}}'""")
    assert ask(target) == Reply(4, Usage(7))


def test_a_program_may_ignore_its_input() -> None:
    """A long input that is not read neither blocks nor fails the call."""
    target = shell("""echo '{"output": "done"}'""")
    assert ask(target, Sample("1", "x" * 1_000_000)).output == "done"


def test_long_inputs_and_outputs_are_complete() -> None:
    """More than a pipe holds is passed in both directions."""
    assert ask(shell(ECHO), Sample("1", "é" * 300_000)).output["input"] == "é" * 300_000


def test_a_failing_program_reports_its_code_and_stderr() -> None:
    """An exit code other than 0 fails the call, with the end of standard error."""
    assert str(failure("cat >/dev/null; echo no model >&2; exit 3")) == snapshot("""\
sh exited with code 3; standard error ends with:
no model\
""")


def test_only_the_last_lines_of_stderr_are_shown() -> None:
    """Ten lines are enough."""
    message = str(failure("for i in $(seq 5000); do echo line $i >&2; done; exit 1"))
    assert message.splitlines()[1:] == [f"line {number}" for number in range(4991, 5001)]


def test_an_error_in_json_is_the_error() -> None:
    """The program's own message counts, whatever its exit code."""
    for code in (0, 1):
        found = failure(f"""echo '{{"error": "busy", "retryable": true}}'; exit {code}""")
        assert str(found) == "busy"
        assert found.retryable


def test_a_program_that_is_killed_names_the_signal() -> None:
    """By the name of the signal, or by its number."""
    assert str(failure("kill -TERM $$")) == "sh was ended by SIGTERM"
    assert str(failure("kill -40 $$")) == "sh was ended by signal 40"


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("cat >/dev/null", "sh sent an empty response; expected JSON with an 'output'"),
        ("echo '{}'", "sh sent a response without an 'output': {}"),
        ("echo 4", "sh sent invalid JSON"),
        ("echo oh dear; echo why >&2", "oh dear; standard error ends with:\nwhy"),
    ],
)
def test_an_invalid_answer_fails_the_call(script: str, message: str) -> None:
    """No output, no "output" and invalid JSON are errors that show what came."""
    assert message in str(failure(script))


def test_endless_output_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that writes without end is killed when it has written too much."""
    monkeypatch.setattr(wire, "MAX_BYTES", 100_000)
    assert str(failure("yes")) == "sh wrote more than 100,000 bytes and was stopped"


def hanging(fifo: Path) -> CommandTarget:
    """A program with a child, both holding a pipe open for as long as they live."""
    return shell(f"exec 9>'{fifo}'; sleep 600 & echo started >&9; sleep 600")


async def read_line(fifo: Path) -> int:
    """Open the pipe and wait until the program has written to it."""
    reader = await asyncio.to_thread(os.open, fifo, os.O_RDONLY)
    assert await asyncio.to_thread(os.read, reader, 100) == b"started\n"
    return reader


def everyone_is_gone(reader: int) -> bool:
    """The pipe ends only when nobody alive holds its other side."""
    try:
        return os.read(reader, 100) == b""
    finally:
        os.close(reader)


def test_a_timeout_kills_all_processes(tmp_path: Path) -> None:
    """A cancelled call kills the program and its children."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)

    async def cancel_when_started() -> int:
        call = asyncio.create_task(hanging(fifo).call(SAMPLE, {}))
        reader = await read_line(fifo)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return reader

    assert everyone_is_gone(asyncio.run(cancel_when_started()))


def test_a_cancelled_start_leaves_no_process() -> None:
    """A call that is cancelled while its process starts leaves nothing behind."""

    async def cancel_at_once() -> set[str]:
        before = set(children())
        for steps in range(6):
            call = asyncio.create_task(shell("sleep 600").call(SAMPLE, {}))
            for _ in range(steps):
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        return set(children()) - before

    assert asyncio.run(cancel_at_once()) == set()


def children() -> list[str]:
    """The ids of this process's children, where the system tells them."""
    tasks = Path("/proc/self/task")
    found = (task / "children" for task in tasks.iterdir()) if tasks.is_dir() else ()
    return [child for file in found if file.exists() for child in file.read_text().split()]


def test_background_processes_do_not_delay_the_call(tmp_path: Path) -> None:
    """The call ends with its program, and a child that still runs is killed."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    target = shell(f"""exec 9>'{fifo}'; sleep 600 & echo '{{"output": 1}}'; echo started >&9""")

    async def call_and_look() -> tuple[Reply, int]:
        call = asyncio.create_task(target.call(SAMPLE, {}))
        reader = await read_line(fifo)
        return await call, reader

    reply, reader = asyncio.run(call_and_look())
    assert reply == Reply(1)
    assert everyone_is_gone(reader)


@pytest.mark.skipif(shutil.which("setsid") is None, reason="needs the program setsid")
def test_a_detached_process_does_not_block_a_cancellation() -> None:
    """A child in its own session keeps the pipe open; the call can still be cancelled."""

    async def cancel_soon() -> None:
        await asyncio.wait_for(shell("setsid sleep 1 & sleep 0.1").call(SAMPLE, {}), 0.3)

    with pytest.raises(TimeoutError):
        asyncio.run(cancel_soon())


def test_many_calls_run_at_once() -> None:
    """Forty processes at a time answer each its own question."""
    target = shell(ECHO)

    async def all_of_them() -> list[Reply]:
        samples = [Sample[str, str](str(number), "hello") for number in range(40)]
        return await asyncio.gather(*(target.call(sample, {}) for sample in samples))

    replies = asyncio.run(all_of_them())
    assert [reply.output["id"] for reply in replies] == [str(number) for number in range(40)]


def test_the_event_loop_may_run_in_another_thread() -> None:
    """Notebooks run our loop in a thread."""
    replies: list[Reply] = []
    thread = threading.Thread(target=lambda: replies.append(ask(shell(ECHO))))
    thread.start()
    thread.join()
    assert replies[0].output["input"] == "hello"


def test_a_command_is_never_run_by_a_shell() -> None:
    """A string is split like a shell would, but special characters have no meaning."""
    target = CommandTarget("printf '{\"output\": \"%s\"}' '$HOME; ls'")
    assert ask(target).output == "$HOME; ls"


def test_cwd_and_env_apply_to_the_program(tmp_path: Path) -> None:
    """`env` extends the environment."""
    program = tmp_path / "bot.sh"
    program.write_text("""#!/bin/sh\necho "{\\"output\\": \\"$PWD $MODE ${PATH:+path}\\"}"\n""")
    program.chmod(0o755)
    target = CommandTarget(["./bot.sh"], cwd=tmp_path, env={"MODE": "test"})
    assert ask(target).output == f"{tmp_path} test path"


def test_all_problems_are_reported_on_creation(tmp_path: Path) -> None:
    """A missing program, a missing folder and a bad variable give one error."""
    with pytest.raises(TargetError) as missing:
        CommandTarget(["no-such-program"], name="bot")
    assert str(missing.value) == snapshot("""\
bot: the command cannot be run
  - command: no executable program is named 'no-such-program'
Fix: correct the command, or install the program\
""")
    env: dict[str, str] = {"N": 1}  # type: ignore[dict-item]
    with pytest.raises(TargetError) as caught:
        CommandTarget(["sh"], cwd=tmp_path / "nowhere", env=env)
    assert [problem.where for problem in caught.value.problems] == ["env.N", "cwd"]


@pytest.mark.parametrize("command", ["", [], ["sh", 1], 7, "sh 'open"])
def test_an_invalid_command_is_refused(command: object) -> None:
    """A command is a program and its arguments, all strings."""
    with pytest.raises(TargetError, match="is not a command"):
        CommandTarget(command)  # type: ignore[arg-type]


def test_a_program_that_vanishes_fails_the_call(tmp_path: Path) -> None:
    """A program removed after the target was made is a failed call, and not a crash."""
    program = tmp_path / "bot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    target = CommandTarget([str(program)])
    program.unlink()
    with pytest.raises(CallFailed, match="bot could not be started"):
        ask(target)


def test_a_start_that_fails_while_it_is_cancelled_is_a_cancellation(tmp_path: Path) -> None:
    """Cancelling wins over whatever else went wrong."""
    program = tmp_path / "bot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    target = CommandTarget([str(program)])
    program.unlink()

    async def cancel_at_once() -> None:
        call = asyncio.create_task(target.call(SAMPLE, {}))
        await asyncio.sleep(0)
        call.cancel()
        await call

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel_at_once())


def test_the_name_shows_program_and_script_but_no_arguments(tmp_path: Path) -> None:
    """Arguments may be secrets, so they are in neither the name nor the representation."""
    script = tmp_path / "bot.py"
    script.touch()
    python = CommandTarget([sys.executable, str(script), "--key", "sk-123"])
    assert python.spec.name == f"{Path(sys.executable).name} bot.py"
    assert CommandTarget(["sh", "-c", "sk-123"]).spec.name == "sh"
    assert "sk-123" not in repr(python) + repr(python.spec)


def test_the_identity_is_the_command_line() -> None:
    """Another argument makes another target."""
    one, two, again = (shell(script).spec for script in ("one", "two", "one"))
    assert one.kind == "command"
    assert one.identity == again.identity != two.identity


def test_all_options_are_accepted() -> None:
    """Only the program knows its options; closing does nothing."""
    target = shell(ECHO)
    assert target.check_options({"anything": 1}) == []
    assert not target.blocking
    asyncio.run(target.close())
