"""Faults of an embeddings endpoint give the right vectors or an error."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from proctor import Sample
from proctor.core import bridge
from proctor.errors import CallFailed
from proctor.evaluators.text.quality import semantic_similarity
from proctor.models.connect import embedder
from proctor.testing import Fault, ModelServer
from tests.tables import each_row

TEXTS = ["a", "bb", "ccc"]
VECTORS = [[1.0, 0.5], [2.0, 0.5], [3.0, 0.5]]


def connected(server: ModelServer, **options: Any) -> Any:
    options = {"retries": 2, "retry_delay": 0.01, "timeout": 5.0, **options}
    return embedder(f"{server.url}/v1#embed-x", **options)


def embedded(server: ModelServer, **options: Any) -> list[list[float]]:
    async def main() -> list[Sequence[float]]:
        async with asyncio.timeout(120):
            results: list[Sequence[float]] = await connected(server, **options).embed(TEXTS)
            return results

    return [list(vector) for vector in bridge.run(main())]


def lengths(text: str) -> list[float]:
    """The vector of a text is its length, and a half."""
    return [float(len(text)), 0.5]


PASSING = {
    "408": Fault.status(408),
    "429": Fault.status(429),
    "429, wait 0 s": Fault.status(429, retry_after=0),
    "500": Fault.status(500),
    "502, a page": Fault.body("<h1>no</h1>", "text/html", 502),
    "503": Fault.status(503),
    "closed": Fault.close(),
    "reset": Fault.reset_connection(),
    "cut": Fault.truncate(30),
    "fewer bytes than promised": Fault.wrong_length(3),
    "half of the JSON": Fault.body(b'{"data": ['),
    "a page": Fault.body("<h1>no</h1>", "text/html"),
    "empty": Fault.body(b""),
    "hang": Fault.hang(),
    "slow": Fault.slow(0.05),
    "drip": Fault.drip(64, 0.005),
}


@each_row("fault", PASSING.values(), ids=PASSING)
def test_transient_errors_do_not_change_the_vectors(fault: Fault) -> None:
    """With one transient error, the vectors are the same as without it."""
    with ModelServer(embed=lengths) as server:
        server.faults.append(fault)
        # A busy machine may need more than 0.5 s for an answer, too.
        assert embedded(server, timeout=0.5, retries=50) == VECTORS


LASTING = {
    **{str(code): Fault.status(code) for code in (400, 401, 403, 404, 413, 429, 500, 503)},
    "reset": Fault.reset_connection(),
    "hang": Fault.hang(),
    "endless drip": Fault.drip(1, 0.1),
    "no data": Fault.body(b'{"object": "list"}'),
    "too few": Fault.edit_json(lambda answer: answer["data"].pop()),
    "too many": Fault.edit_json(lambda answer: answer["data"].append(answer["data"][0])),
    "none": Fault.edit_json(lambda answer: answer["data"].clear()),
    "the same twice": Fault.edit_json(lambda answer: answer["data"][1].update(index=0)),
    "words": Fault.edit_json(lambda answer: answer["data"][0].update(embedding=["a", "b"])),
    "null": Fault.edit_json(lambda answer: answer["data"][0].update(embedding=None)),
    "empty": Fault.edit_json(lambda answer: answer["data"][0].update(embedding=[])),
    "no index": Fault.edit_json(lambda answer: answer["data"][0].pop("index")),
    "another length": Fault.edit_json(lambda answer: answer["data"][2]["embedding"].append(1.0)),
    "too large to be finite": Fault.edit_json(lambda answer: answer["data"][0].update(embedding=[1e300, 1.0])),
}


@each_row("fault", LASTING.values(), ids=LASTING)
def test_persistent_errors_are_reported(fault: Fault) -> None:
    """Too few, too many, no, non-numeric vectors and vectors of different lengths."""
    with ModelServer(embed=lengths, choose_fault=lambda _: fault) as server, pytest.raises(CallFailed) as caught:
        embedded(server, timeout=0.3, retries=1)
    assert "embed-x" in str(caught.value)


def test_vectors_are_sorted_by_index() -> None:
    """They are returned in the order of the texts."""
    with ModelServer(embed=lengths) as server:
        server.faults.append(Fault.edit_json(lambda answer: answer["data"].reverse()))
        assert embedded(server) == VECTORS


@pytest.mark.parametrize("code", [401, 500])
def test_a_similarity_without_vectors_is_an_error(code: int) -> None:
    """The evaluator on it gives an error score, not a similarity of 0."""
    with ModelServer(choose_fault=lambda _: Fault.status(code)) as server:
        attached = semantic_similarity(connected(server))

        async def main() -> Any:
            async with asyncio.timeout(120):
                return await attached("It is Paris.", Sample("s", "?", "The capital").expected)

        with pytest.raises(CallFailed, match=str(code)):
            bridge.run(main())
