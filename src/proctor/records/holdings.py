"""What a history holds, in a few numbers."""

from __future__ import annotations

import msgspec


class Holdings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a history is and how much is in it; `schema` is 0 while there is none yet.

    `outputs` are those of targets and judges that the cache keeps.
    """

    where: str
    runs: int = 0
    results: int = 0
    size_bytes: int = 0
    schema: int = 0
    outputs: int = 0
