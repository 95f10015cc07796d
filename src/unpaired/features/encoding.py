"""Collections through an encoder: in blocks, each kept on disk, so that a run can go on.

A block is kept under the SHA-256 of what its items hold, not of what they are called: a file that
was renamed is not encoded again, one that was changed is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import atomic_writer, read_npz
from unpaired._log import track
from unpaired.errors import DataError, InputError
from unpaired.features.encoders import Encoder, Item, as_vectors

BLOCK = 64
RECIPE = 1
"""Raise it when items are prepared in another way: vectors kept before are then made again."""


@dataclass(frozen=True, eq=False)
class Encoded:
    """Vectors of the items that could be encoded, and why the others could not.

    Attributes:
        names: What the rows are called.
        vectors: One row (n, width) each.
        rows: Which of the items they are.
        skipped: Name and reason of each item left out.
        n_reused: How many vectors had been kept from an earlier run.
        encoder: What encodes new items alike.
    """

    names: tuple[str, ...]
    vectors: NDArray[np.float32]
    rows: tuple[int, ...]
    skipped: tuple[tuple[str, str], ...]
    n_reused: int
    encoder: str


def encode_items(items: Sequence[Item], encoder: Encoder, cache: Path | None) -> Encoded:
    """The vectors of ``items``; those in the folder ``cache`` are reused, new ones kept there.

    Raises:
        InputError: when no item could be encoded.
    """
    if encoder.learn is not None:
        encoder = encoder.learn(items)
    kept = _Cache(cache, encoder.name)
    found: dict[int, NDArray[np.float32]] = {}
    skipped: list[tuple[str, str]] = []
    waiting: list[tuple[int, str, Any]] = []
    n_reused = 0

    def encode_waiting() -> None:
        if not waiting:
            return
        vectors = as_vectors(
            encoder.encode([ready for _, _, ready in waiting]), len(waiting), encoder.name
        )
        kept.put([key for _, key, _ in waiting], vectors)
        found.update({number: row for (number, _, _), row in zip(waiting, vectors, strict=True)})
        waiting.clear()

    for number, item in enumerate(track(items, f"Encoding by {encoder.name}")):
        try:
            content = item.read()
            key = hashlib.sha256(content).hexdigest()
            vector = kept.get(key)
            if vector is not None:
                found[number] = vector
                n_reused += 1
            else:
                waiting.append((number, key, item.decode(content)))
        except (DataError, OSError) as error:
            skipped.append((item.name, " ".join(str(error).split())))
        if len(waiting) == BLOCK:
            encode_waiting()
    encode_waiting()
    if not found:
        reason = f" The first: {skipped[0][0]}, {skipped[0][1]}." if skipped else ""
        raise InputError(f"SOURCE must hold something that can be encoded: nothing can.{reason}")
    rows = sorted(found)
    return Encoded(
        names=tuple(items[number].name for number in rows),
        vectors=np.stack([found[number] for number in rows]),
        rows=tuple(rows),
        skipped=tuple(skipped),
        n_reused=n_reused,
        encoder=encoder.name,
    )


class _Cache:
    """Vectors by the digest of what they were made of; a folder of blocks per encoder."""

    def __init__(self, folder: Path | None, encoder: str) -> None:
        plain = re.sub(r"[^\w.-]+", "-", encoder)
        name = f"{plain}-{hashlib.sha256(encoder.encode()).hexdigest()[:8]}-{RECIPE}"
        self.folder = None if folder is None else folder / name
        self.known: dict[str, NDArray[np.float32]] = {}
        if self.folder is None or not self.folder.is_dir():
            return
        for file in sorted(self.folder.glob("*.npz")):
            try:
                keys, vectors = (
                    read_npz(file, lambda names, key=key: key)  # type: ignore[misc]
                    for key in ("keys", "vectors")
                )
                if vectors.ndim == 2 and len(keys) == len(vectors):
                    self.known.update(zip(keys.tolist(), vectors, strict=True))
            except Exception:  # whatever is wrong with a block, its items are encoded again
                continue

    def get(self, key: str) -> NDArray[np.float32] | None:
        """The vector kept under a digest, or None."""
        return self.known.get(key)

    def put(self, keys: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep a block of vectors."""
        if self.folder is None:
            return
        digest = hashlib.sha256("".join(keys).encode()).hexdigest()[:32]
        with atomic_writer(self.folder / f"{digest}.npz", binary=True) as handle:
            np.savez(handle, keys=np.array(keys), vectors=vectors)
