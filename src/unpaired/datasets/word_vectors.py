"""Word vectors and bilingual dictionaries, in the files in which they are given out.

fastText's and word2vec's text form (``word v1 v2 ...`` a line, with or without a head line "n d",
which also covers GloVe), word2vec's binary form, and MUSE's dictionaries (``word translation`` a
line). Files ending in .gz are unpacked while reading.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from unpaired.datasets.two_views import TwoViews
from unpaired.errors import DataError, InputError

MAX_WORD_BYTES = 2000


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words and one vector each; words that occur twice in the file keep their first vector."""

    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    """(n_words, d)"""

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        """The vector of a word; KeyError when it is not there."""
        return self.vectors[self.rows[word]]


def load_word_vectors(
    path: str | os.PathLike[str],
    *,
    max_words: int | None = None,
    words: Iterable[str] | None = None,
) -> WordVectors:
    """Word vectors from a text or binary file (ending in .bin).

    Args:
        path: The file; .gz is unpacked while reading.
        max_words: Keep only the first, in such files the most frequent, words.
        words: Keep only these.

    Raises:
        DataError: when the file is absent or not of that form.
    """
    file = Path(path)
    if not file.is_file():
        raise DataError(
            f"There is no file {file} of word vectors. fastText gives out text files (wiki.en.vec, "
            "cc.fr.300.vec), word2vec binary ones (GoogleNews-vectors-negative300.bin)."
        )
    wanted = None if words is None else set(words)
    limit = max_words if max_words is not None else 2**62
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as handle:
            stem = file.name.removesuffix(".gz")
            read = _read_binary if stem.endswith(".bin") else _read_text
            found = read(handle, wanted, limit)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"{file} must hold word vectors in text or (named .bin) word2vec's binary form: "
            f"{error}. fastText's own .bin models are another format: take the .vec file."
        ) from error
    if not found:
        raise DataError(f"{file} must hold vectors of the words asked for: it has none of them.")
    return WordVectors(tuple(found), np.stack(list(found.values())))


def _read_text(
    handle: IO[bytes] | Any, wanted: set[str] | None, limit: int
) -> dict[str, NDArray[np.float32]]:
    found: dict[str, NDArray[np.float32]] = {}
    size: int | None = None
    for number, line in enumerate(handle):
        parts = line.rstrip().split(b" ")
        if number == 0 and len(parts) == 2 and all(part.isdigit() for part in parts):
            size = int(parts[1])
            continue
        if len(parts) < 2:
            continue
        size = size or len(parts) - 1
        if len(parts) < size + 1:
            raise ValueError(f"line {number + 1} has {len(parts) - 1} numbers instead of {size}")
        # A word may hold blanks (GloVe 840B): the last `size` parts are its vector.
        word = b" ".join(parts[:-size]).decode("utf-8", errors="replace")
        if (wanted is None or word in wanted) and word not in found:
            found[word] = np.array(parts[-size:], dtype=np.float32)
        if len(found) >= limit:
            break
    return found


def _read_binary(
    handle: IO[bytes] | Any, wanted: set[str] | None, limit: int
) -> dict[str, NDArray[np.float32]]:
    head = handle.readline(200).split()
    if len(head) != 2 or not all(part.isdigit() for part in head):
        raise ValueError(
            'the first line must say how many words and numbers, such as "3000000 300"'
        )
    n_words, size = int(head[0]), int(head[1])
    found: dict[str, NDArray[np.float32]] = {}
    for number in range(n_words):
        letters = bytearray()
        while (letter := handle.read(1)) != b" ":
            if not letter or len(letters) > MAX_WORD_BYTES:
                raise ValueError(f"it ends within word {number + 1} of {n_words}")
            letters += letter
        raw = handle.read(4 * size)
        if len(raw) != 4 * size:
            raise ValueError(f"it ends within the vector of word {number + 1} of {n_words}")
        word = bytes(letters).lstrip(b"\n").decode("utf-8", errors="replace")
        if (wanted is None or word in wanted) and word not in found:
            found[word] = np.frombuffer(raw, dtype="<f4").copy()
        if len(found) >= limit:
            break
    return found


def read_dictionary(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Pairs (word, translation) of a MUSE-style dictionary; a word may occur several times.

    Raises:
        DataError: when the file is absent or a line does not hold two words.
    """
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{file} must be a dictionary of two words a line (MUSE: en-fr.txt): {error}."
        ) from error
    pairs = []
    for number, line in enumerate(lines):
        words = line.split("\t") if "\t" in line else line.split()
        if not words:
            continue
        if len(words) != 2:
            raise DataError(
                f"{file} must have two words a line: line {number + 1} has {len(words)}. "
                "Separate them by a blank or a tab."
            )
        pairs.append((words[0].strip(), words[1].strip()))
    return pairs


def load_word_alignment(
    vectors_x: WordVectors, vectors_y: WordVectors, dictionary: Iterable[tuple[str, str]]
) -> TwoViews:
    """Words of both languages that the dictionary pairs one to one, as rows of x and y.

    The first translation that is still free is taken; row i of x belongs to row i of y, so shuffle
    one side before matching.

    Raises:
        InputError: when fewer than two pairs have vectors on both sides.
    """
    partner: dict[str, str] = {}
    taken: set[str] = set()
    for word, translation in dictionary:
        known = word in vectors_x.rows and translation in vectors_y.rows
        if known and word not in partner and translation not in taken:
            partner[word] = translation
            taken.add(translation)
    if len(partner) < 2:
        raise InputError(
            f"dictionary must pair at least two words that have vectors: it pairs {len(partner)}. "
            "Check the languages' order, and lower case."
        )
    return TwoViews(
        x=np.stack([vectors_x[word] for word in partner]),
        y=np.stack([vectors_y[word] for word in partner.values()]),
        truth=np.arange(len(partner), dtype=np.int64),
        names_x=tuple(partner),
        names_y=tuple(partner.values()),
    )
