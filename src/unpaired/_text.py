"""Bytes of text files, in an encoding that can be told, and their lines."""

from __future__ import annotations

import codecs
from pathlib import Path

from unpaired.errors import DataError

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def decode_text(data: bytes, file: Path) -> str:
    """The text in the bytes of a file: UTF-8, or UTF-16 and UTF-32 with their mark.

    Raises:
        DataError: when it is in another encoding, or no text.
    """
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8-sig")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{file} must be text in UTF-8: byte 0x{data[error.start]:02x} in line {line} is not. "
            + (
                "It looks like Latin-1 (Windows-1252); save it as UTF-8, or run: "
                f"iconv -f latin1 -t utf8 {file.name}"
                if _is_western(data)
                else "It is in another encoding; save it as UTF-8."
            )
        ) from error
    if "\0" in text:
        share = data.count(b"\0") / len(data)
        wide = "UTF-32" if share > 0.6 else "UTF-16"
        kind = f"{wide} without its mark" if share > 1 / 3 else "a binary file"
        raise DataError(f"{file} must be text: it looks like {kind}. Save it as UTF-8.")
    return text


def _is_western(data: bytes) -> bool:
    """Whether bytes read as Windows-1252 are mostly letters beyond ASCII, not signs."""
    try:
        strange = [mark for mark in data.decode("cp1252") if ord(mark) > 127]
    except UnicodeDecodeError:
        return False
    return 2 * sum(mark.isalpha() for mark in strange) >= len(strange)


def lines_of(text: str) -> list[str]:
    r"""The lines of a text, as other programs count them: a mark inside a line ends none.

    >>> lines_of("a\u2028b\r\nc\n")
    ['a\u2028b', 'c']
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines
