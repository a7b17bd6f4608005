"""What tells the content of samples: a fingerprint, and ids made from it."""

from __future__ import annotations

import hashlib
from typing import Any

from proctor import codec
from proctor.datasets.faults import Fault, Unfit
from proctor.records.sample import Sample

AUTO_ID_DIGITS = 12


class Fingerprint:
    """A sha256 over samples in their order: the same content gives the same, from any source.

    It is taken of the content as it was written, before it is read into declared types.

    >>> one, two = Fingerprint(), Fingerprint()
    >>> one.add(Sample("1", {"a": 1, "b": 2}))
    >>> two.add(Sample("1", {"b": 2, "a": 1}))
    >>> one.hexdigest() == two.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._state = hashlib.sha256()
        self._stable = True

    def add(self, sample: Sample[Any, Any]) -> None:
        """Take in the next sample."""
        text = written(_told(sample))
        if _is_unstable(text):
            self._stable = False
        self._state.update(text)
        self._state.update(b"\n")

    def hexdigest(self) -> str | None:
        """The fingerprint, or None if a sample holds an object that is known by address only."""
        return self._state.hexdigest() if self._stable else None


def generated_id(value: Any) -> str:
    """An id made from an input: it stays when samples move, and equal inputs give equal ids.

    >>> generated_id("What is 2 + 2?")
    'auto-fb3eb78712d6'
    """
    text = written(value)
    if _is_unstable(text):
        what = f"{type(value).__name__} has no content that an id could be made from"
        raise Unfit([Fault("input", what, "give the sample an id")])
    return "auto-" + hashlib.sha256(text).hexdigest()[:AUTO_ID_DIGITS]


def written(value: Any) -> bytes:
    """A value as canonical JSON, or a fault if JSON cannot hold it."""
    try:
        return codec.canonical(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Unfit([Fault("", f"it cannot be written as JSON: {error}")]) from None


def _told(sample: Sample[Any, Any]) -> dict[str, Any]:
    """What a sample says: no expected value and empty metadata are nothing, however written."""
    told = {"id": sample.id, "input": sample.input}
    if sample.expected is not None:
        told["expected"] = sample.expected
    if sample.metadata:
        told["metadata"] = sample.metadata
    return told


def _is_unstable(text: bytes) -> bool:
    """True if an object is written by its address in memory, which is another in each process."""
    return b'"$repr"' in text and b" at 0x" in text
