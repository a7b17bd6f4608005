"""`proctor sessions`: recorded sessions shown and listed."""

from __future__ import annotations

import json

from tests.cli.project import Project
from tests.importers.examples import CLAUDE, OPENAI


def write(project: Project) -> None:
    project.write("chat.json", json.dumps(OPENAI))
    project.write("log.jsonl", "".join(json.dumps(line) + "\n" for line in CLAUDE) + "{\n3\n")


def test_show_prints_a_transcript(project: Project) -> None:
    """Messages, tool calls and usage are printed; damaged lines are reported on standard error."""
    write(project)
    result = project.proctor("sessions", "show", "log.jsonl")
    assert result.code == 0
    assert result.out.startswith("session: cc-1\nformat: claude-code\nsource: log.jsonl\n")
    assert "title: Counting files\nstarted: 2026-01-02T10:00:01.000Z\n" in result.out
    assert "tokens: 375 + 41, 300 of them from a cache\n" in result.out
    assert "unknown parts, stored unchanged: a number (1)\n" in result.out
    assert "user:\n    How many files are here?\n" in result.out
    assert "tool Bash(command=wc)\n    failed: The user doesn't want this.\n" in result.out
    assert "log.jsonl:11: not valid JSON" in result.err


def test_show_chooses_one_of_several(project: Project) -> None:
    """By its id; without one, or with a wrong one, the error names what there is."""
    write(project)
    result = project.proctor("sessions", "show", "chat.json")
    assert (result.code, "--id: 7-1, second" in result.err) == (2, True)
    result = project.proctor("sessions", "show", "chat.json", "--id", "7-1")
    assert 'scores: {"reward":1.0}' in result.out
    assert "tool weather(city=Rome)\n    sunny" in result.out
    result = project.proctor("sessions", "show", "chat.json", "--id", "secnd")
    assert (result.code, "did you mean 'second'" in result.err) == (2, True)
    actual = project.proctor("sessions", "show", "chat.json", "--id", "second", "--json").json
    assert (actual["id"], actual["session"]["events"][0]["content"]) == ("second", "Hello")
    result = project.proctor("sessions", "show", ".", "--pattern", "*.json*", "--id", "7-1")
    assert "log.jsonl:11: not valid JSON" in result.err


def test_ids_are_the_same_everywhere(project: Project) -> None:
    """What is listed is shown, and is what a run calls it, also where two are called alike."""
    (project.folder / "logs").mkdir()
    for name in ("a", "b"):
        text = "".join(json.dumps(line) + "\n" for line in CLAUDE).replace("Two files", name)
        project.write(f"logs/{name}.jsonl", text)
    listed = project.proctor("sessions", "list", "logs", "--json").json["sessions"]
    ids = [(row["id"], row["session_id"], row["source"]) for row in listed]
    assert ids == [("cc-1", "cc-1", "logs/a.jsonl"), ("cc-1-2", "cc-1", "logs/b.jsonl")]
    result = project.proctor("sessions", "show", "logs", "--id", "cc-1-2")
    assert result.out.startswith("session: cc-1-2\nrecorded as: cc-1\n")
    assert "    b." in result.out
    assert project.proctor("run", "--dataset", "logs", "-e", "all_tools_succeeded", "-q").code == 0
    result = project.proctor("show", "latest", "--sample", "cc-1-2")
    assert (result.code, "cc-1-2" in result.out) == (0, True)


def test_what_show_prints_as_json_is_a_session_again(project: Project) -> None:
    """The JSON can be read like any log and gives the same session."""
    write(project)
    full = project.proctor("sessions", "show", "log.jsonl", "--json").out
    project.write("again.json", full)
    listed = project.proctor("sessions", "list", "again.json", "--json").json["sessions"]
    assert (listed[0]["id"], listed[0]["tool_calls"], listed[0]["tokens"]) == ("cc-1", 2, 416)


def test_a_tool_that_a_sub_agent_called_is_marked(project: Project) -> None:
    """The transcript names the sub-agent; calls of the main agent have no name."""
    aside = [{**line, "isSidechain": True, "agentId": "x1"} for line in CLAUDE[4:6]]
    main = [{**CLAUDE[1]}, {**CLAUDE[6]}, {**CLAUDE[7]}]
    project.write("log.jsonl", "".join(json.dumps(line) + "\n" for line in [*main, *aside]))
    result = project.proctor("sessions", "show", "log.jsonl").out
    assert "\ntool Bash(command=ls) (sub-agent x1)\n" in result
    assert "\ntool Bash(command=wc)\n" in result


def test_list_names_every_session(project: Project) -> None:
    """Sessions of a file or a folder are listed with their contents, also as JSON."""
    write(project)
    result = project.proctor("sessions", "list", ".", "--pattern", "*[tg].json*")
    assert result.out == (
        "7-1  openai  4 messages, 1 tool call\n    chat.json:1\n    Weather in Rome?\n"
        "second  openai  1 message, 0 tool calls\n    chat.json:2\n    Hello\n"
        "cc-1  claude-code  5 messages, 2 tool calls, 416 tokens, 1 unknown part\n"
        "    log.jsonl\n    How many files are here?\n"
        "3 sessions in 2 files\n"
    )
    listed = project.proctor("sessions", "list", "log.jsonl", "--json").json
    assert listed["sessions"][0]["passed_over"] == {"a number": 1}
    assert (listed["damaged"], len(listed["problems"])) == (1, 1)
    project.write("bad.jsonl", "{\n" * 30 + json.dumps(OPENAI[1]))
    result = project.proctor("sessions", "list", "bad.jsonl")
    start = "bad.jsonl: 30 lines with problems, such as line 1: not valid JSON"
    assert result.err.startswith(start)
    assert len(result.err.splitlines()) == 1
    (project.folder / "worse").mkdir()
    for number in range(30):
        project.write(f"worse/{number:02}.json", "{\n{\n")
    project.write("worse/good.json", json.dumps(OPENAI[1]))
    result = project.proctor("sessions", "list", "worse")
    assert len(result.err.splitlines()) == 21
    assert "and 10 more files with problems" in result.err


def test_a_format_can_be_forced(project: Project) -> None:
    """A wrong format has no such session; a misspelt one gets a suggestion."""
    write(project)
    result = project.proctor("sessions", "show", "chat.json", "--format", "codex")
    assert (result.code, "the file contains no codex session" in result.err) == (2, True)
    result = project.proctor("sessions", "list", "chat.json", "--format", "openia")
    assert (result.code, "did you mean 'openai'" in result.err) == (2, True)
