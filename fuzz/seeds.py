"""The first inputs of the fuzzer: small real logs, if they are available, and logs from the tests."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.importers.examples import EXAMPLES, EXCHANGES, TAKEN_BACK
from tests.importers.traces import LANGFUSE, LANGFUSE_SESSION, OTLP, OTLP_LOGS

from fuzz.documents import Document, find_spots, parse_document, serialize_document
from fuzz.mutation import Mutator
from proctor.sessions.importers.session_files import FORMATS, detect_format

DATA = Path(os.environ.get("PROCTOR_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LARGEST = 24_000
# Logs that state the tokens of each message.
_COUNTED: dict[str, list[Any]] = {
    "openai": [
        {"role": "user", "content": "Capital of France?"},
        {"role": "assistant", "content": "Paris", "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    ],
    "langchain": [
        {"type": "human", "data": {"content": "Capital of France?"}},
        {"type": "ai", "data": {"content": "Paris", "usage_metadata": {"input_tokens": 9, "output_tokens": 2}}},
    ],
}
# Folders with files of agents and chats.
_AGENTS = (
    "atif", "chatgpt-export", "claude", "claude-ai-export", "copilot", "crewai", "openai-agents", "pydantic-ai",
    "smolagents",
)  # fmt: skip
# There are hundreds of similar traces.
_TRACES = 12


def load_seeds(largest: int = LARGEST) -> dict[str, list[bytes]]:
    """Return files by format, at least one for each."""
    by_name: dict[str, list[bytes]] = {name: [] for name in FORMATS}
    for name, values in (*EXAMPLES.items(), *TAKEN_BACK.items(), *EXCHANGES.items()):
        by_name[name].append(serialize_document(Document(values, is_lines=True)))
    for values in (OTLP, OTLP_LOGS, LANGFUSE, LANGFUSE_SESSION):
        by_name["otlp" if values in (OTLP, OTLP_LOGS) else "langfuse"].append(
            serialize_document(Document(list(values), is_lines=True))
        )
    for name, talk in _COUNTED.items():
        by_name[name].append(serialize_document(Document([talk], is_lines=True)))
    for data in _real(largest):
        document = parse_document(data)
        form = None if document is None else detect_format([*map(_plain, document.values)])
        if form is not None:
            by_name[form.NAME].append(data)
    return by_name


def _plain(value: Any) -> Any:
    return json.loads(serialize_document(Document([value], is_lines=False)))


def _real(largest: int) -> Iterator[bytes]:
    sessions = sorted((DATA / "07_sessions").rglob("*.json*"))
    traces = sorted((DATA / "08_traces" / "otlp_openai_v2").glob("*.json"))
    exports = sorted((DATA / "08_traces" / "langfuse").glob("*.json"))
    agents = sorted(path for name in _AGENTS for path in (DATA / "11_formats" / name).rglob("*.json*"))
    for path in (*sessions, *agents, *traces[:: max(1, len(traces) // _TRACES)], *exports):
        if ".expected." in path.name:
            continue
        if path.suffix == ".gz":
            yield _first_session(json.loads(gzip.decompress(path.read_bytes())))
        elif path.stat().st_size <= largest:
            yield path.read_bytes()
        elif path.suffix == ".jsonl":
            yield _first_lines(path, largest)


def _first_session(sessions: list[dict[str, Any]]) -> bytes:
    """Return the beginning of the first session."""
    cut = {key: it[1:9] if isinstance(it, list) else it for key, it in sessions[0].items()}
    return json.dumps([cut]).encode()


def _first_lines(path: Path, largest: int) -> bytes:
    """Return the first lines of a long log."""
    with path.open("rb") as lines:
        return lines.read(largest).rpartition(b"\n")[0]


def create_mutator(files: Iterable[bytes]) -> Mutator:
    """Create a mutator with the words and parts of some files."""
    words: dict[str, None] = {}
    pieces: dict[str, Any] = {}
    for document in filter(None, map(parse_document, files)):
        for spot in find_spots(document.values):
            if isinstance(spot.key, str):
                words[spot.key] = None
            if isinstance(spot.value, str) and len(spot.value) <= 30:
                words[spot.value] = None
            text = repr(spot.value)
            if len(text) <= 600:
                pieces.setdefault(text, spot.value)
    return Mutator(sorted(words), [pieces[text] for text in sorted(pieces)])
