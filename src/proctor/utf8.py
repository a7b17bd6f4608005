"""Explain why a text is not UTF-8, and how to convert it."""

from __future__ import annotations

# What a file that is not UTF-8 usually is: spreadsheets save it, and it contains Latin-1.
GUESSED_ENCODING = "Windows-1252"


def describe_byte(data: bytes, position: int) -> str:
    """Name a byte that is not UTF-8, with the character that it probably is.

    >>> describe_byte(b"caf\\xe9", 3)
    "byte 0xe9, 'é' in Windows-1252"
    """
    byte = data[position : position + 1]
    try:
        character = byte.decode("cp1252")
    except UnicodeDecodeError:
        character = ""
    hint = f", {character!r} in {GUESSED_ENCODING}" if character.isprintable() and character else ""
    return f"byte 0x{byte.hex()}{hint}"


def describe_error(error: UnicodeDecodeError) -> str:
    r"""Say on which line a text stops being UTF-8.

    >>> try:
    ...     b"name: a\ncity: caf\xe9".decode()
    ... except UnicodeDecodeError as error:
    ...     describe_error(error)
    "line 2 is not UTF-8 text: byte 0xe9, 'é' in Windows-1252"
    """
    data = bytes(error.object)
    line = data.count(b"\n", 0, error.start) + 1
    return f"line {line} is not UTF-8 text: {describe_byte(data, error.start)}"


def how_to_convert(encoding: str = GUESSED_ENCODING, file: str = "FILE") -> str:
    """Say what to type to convert a file to UTF-8.

    >>> how_to_convert("UTF-16", "qa.csv")
    'convert the file to UTF-8, for example: iconv -f UTF-16 -t UTF-8 qa.csv > utf8-qa.csv'
    """
    new = "NEW_FILE" if file == "FILE" else f"utf8-{file.rpartition('/')[2]}"
    return f"convert the file to UTF-8, for example: iconv -f {encoding} -t UTF-8 {file} > {new}"
