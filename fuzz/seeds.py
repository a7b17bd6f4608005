"""What fuzzing begins with: small real logs, where they are, and those written for the tests."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.importers.examples import EXAMPLES, EXCHANGES, TAKEN_BACK
from tests.importers.traces import LANGFUSE, LANGFUSE_SESSION, OTLP, OTLP_LOGS

from fuzz.documents import Document, put_together, spots, taken_apart
from fuzz.mutation import Mutator
from proctor.sessions.importers.session_files import FORMATS, detect_format

DATA = Path(os.environ.get("PROCTOR_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LARGEST = 24_000
# Logs that tell their tokens plainly, message by message.
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
# There are hundreds of traces that differ little.
_TRACES = 12


def seeds(largest: int = LARGEST) -> dict[str, list[bytes]]:
    """Files by their formats, each a list that is never empty."""
    found: dict[str, list[bytes]] = {name: [] for name in FORMATS}
    for name, values in (*EXAMPLES.items(), *TAKEN_BACK.items(), *EXCHANGES.items()):
        found[name].append(put_together(Document(values, is_lines=True)))
    for values in (OTLP, OTLP_LOGS, LANGFUSE, LANGFUSE_SESSION):
        found["otlp" if values in (OTLP, OTLP_LOGS) else "langfuse"].append(
            put_together(Document(list(values), is_lines=True))
        )
    for name, talk in _COUNTED.items():
        found[name].append(put_together(Document([talk], is_lines=True)))
    for data in _real(largest):
        document = taken_apart(data)
        form = None if document is None else detect_format([*map(_plain, document.values)])
        if form is not None:
            found[form.NAME].append(data)
    return found


def _plain(value: Any) -> Any:
    return json.loads(put_together(Document([value], is_lines=False)))


def _real(largest: int) -> Iterator[bytes]:
    sessions = sorted((DATA / "07_sessions").rglob("*.json*"))
    traces = sorted((DATA / "08_traces" / "otlp_openai_v2").glob("*.json"))
    exports = sorted((DATA / "08_traces" / "langfuse").glob("*.json"))
    for path in (*sessions, *traces[:: max(1, len(traces) // _TRACES)], *exports):
        if ".expected." in path.name:
            continue
        if path.suffix == ".gz":
            yield _first_talk(json.loads(gzip.decompress(path.read_bytes())))
        elif path.stat().st_size <= largest:
            yield path.read_bytes()
        elif path.suffix == ".jsonl":
            yield _beginning(path, largest)


def _first_talk(sessions: list[dict[str, Any]]) -> bytes:
    """The beginning of the first of many sessions."""
    cut = {key: it[1:9] if isinstance(it, list) else it for key, it in sessions[0].items()}
    return json.dumps([cut]).encode()


def _beginning(path: Path, largest: int) -> bytes:
    """The first lines of a long log."""
    with path.open("rb") as lines:
        return lines.read(largest).rpartition(b"\n")[0]


def mutator(files: Iterable[bytes]) -> Mutator:
    """A mutator that knows the words and parts of some files."""
    words: dict[str, None] = {}
    pieces: dict[str, Any] = {}
    for document in filter(None, map(taken_apart, files)):
        for spot in spots(document.values):
            if isinstance(spot.key, str):
                words[spot.key] = None
            if isinstance(spot.value, str) and len(spot.value) <= 30:
                words[spot.value] = None
            text = repr(spot.value)
            if len(text) <= 600:
                pieces.setdefault(text, spot.value)
    return Mutator(sorted(words), [pieces[text] for text in sorted(pieces)])
