"""Files of tensors: a head in JSON that says where each one lies, then the raw numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.errors import ModelError

# Heads are small; a greater number there means that it is another kind of file.
LONGEST_HEAD = 100_000_000


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def read(path: Path, np: Any) -> Mapping[str, Any]:
    """The tensors of 32-bit numbers in a file, by name, without reading them from disk yet.

    `np` is numpy, which only whoever uses this has imported.
    """
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(bytes(raw[:8]), "little")
    if not 0 < length <= min(LONGEST_HEAD, len(raw) - 8):
        raise ModelError("it is not a file of tensors", where=str(path))
    try:
        head = msgspec.json.decode(bytes(raw[8 : 8 + length]), type=dict[str, msgspec.Raw])
        described = {
            name: msgspec.json.decode(one, type=_Tensor)
            for name, one in head.items()
            if name != "__metadata__"
        }
    except msgspec.DecodeError as error:
        raise ModelError(f"its head cannot be read: {error}", where=str(path)) from None
    body = raw[8 + length :]
    return {
        name: _numbers(body, tensor, f"{path}: {name}", np)
        for name, tensor in described.items()
        if tensor.dtype == "F32"
    }


def _numbers(body: Any, tensor: _Tensor, where: str, np: Any) -> Any:
    begin, end = tensor.data_offsets
    count = 1
    for side in tensor.shape:
        count *= side
    if not 0 <= begin <= end <= len(body) or end - begin != 4 * count:
        raise ModelError("the file is cut off, or its head is wrong", where=where)
    return body[begin:end].view(np.dtype("<f4")).reshape(tensor.shape)
