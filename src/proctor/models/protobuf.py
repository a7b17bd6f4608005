"""Read protobuf messages, the format of SentencePiece and ONNX files, without a library."""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read_fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and value of each field: whole numbers, or the bytes of texts, messages and floats.

    Raises IndexError or ValueError if the message is cut off or malformed.
    """
    position = 0
    while position < len(message):
        tag, position = read_varint(message, position)
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, position = read_varint(message, position)
            yield tag >> 3, value
            continue
        if wire_type == _BYTES:
            length, position = read_varint(message, position)
        elif wire_type in (_FIXED32, _FIXED64):
            length = 4 if wire_type == _FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire_type}")
        if position + length > len(message):
            raise ValueError("the message is cut off")
        yield tag >> 3, message[position : position + length]
        position += length


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
