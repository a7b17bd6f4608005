"""Outputs kept by content, so that what was paid for once can be scored again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from proctor import codec
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from proctor.records.trial import Reply


class OutputCache:
    """Finds and keeps the replies of one target.

    The key is made of the target's identity, the configuration's options, the input and the epoch:
    repeats stay distinct, and a changed target or option never meets an old output. Errors are
    never kept.
    """

    def __init__(
        self,
        target: TargetSpec,
        find: Callable[[str], bytes | None],
        keep: Callable[[str, str, bytes], None],
    ) -> None:
        self._target = [target.kind, target.name, target.identity]
        self._find = find
        self._keep = keep

    def key(self, sample: Sample[Any, Any], options: Mapping[str, Any], epoch: int) -> str:
        """Under what a trial's reply is kept."""
        return codec.digest(self._target, options, sample.input, epoch)

    def find(self, key: str) -> Reply | None:
        """The reply kept under a key, or None."""
        data = self._find(key)
        return None if data is None else msgspec.json.decode(data, type=Reply)

    def keep(self, key: str, created_at: str, reply: Reply) -> None:
        """Keep a reply, if it can be written as it is."""
        data = codec.encode(reply)
        if b'"$repr"' not in data:
            self._keep(key, created_at, data)
