"""What ``unpaired classify`` and ``predict`` are given: photos, names, labels."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unpaired.commands.console import Console
from unpaired.commands.encode import tell_skipped
from unpaired.errors import DataError, InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAME_FILES = (".txt", ".tsv", "")


@dataclass(frozen=True)
class Collection:
    """Rows with names; the folder they came from where they are photos."""

    names: tuple[str, ...]
    vectors: NDArray[np.float32]
    folder: Path | None = None
    encoder: str | None = None
    skipped: tuple[tuple[str, str], ...] = ()

    def photos(self, rows: Sequence[int], side: int) -> list[NDArray[np.uint8]]:
        """The photos of some rows; none where the rows come from a file of vectors."""
        if self.folder is None:
            return []
        from unpaired.features.sources import read_photo

        return [read_photo((self.folder / self.names[row]).read_bytes(), side) for row in rows]


def read_classes(
    console: Console, file: Path, encoders: str | None, cache: Path | None
) -> tuple[tuple[str, ...], list[NDArray[Any]], list[str]]:
    """Names, a matrix of their vectors per encoder, and words that have no vector."""
    import numpy as np

    if file.suffix.lower() not in NAME_FILES:
        from unpaired.files.reading import read_table

        try:
            table = read_table(file)
        except DataError as error:
            raise DataError(
                "NAMES as a table must have a vector for each name: "
                f"{str(error).partition('. ')[0]}. For names alone give a text file, .txt, with a "
                "line for each."
            ) from error
        for note in table.notes:
            console.note(note)
        if table.ids is None:
            raise InputError(
                f"NAMES must say what its rows are called: {file} has no column of names. "
                "Add one, or give a text file of names."
            )
        return table.ids, [table.values], []

    from unpaired.features.encoders import DEFAULT, TEXTS, load_encoder
    from unpaired.features.encoding import encode_items
    from unpaired.features.sources import read_names, text_item, unknown_words
    from unpaired.features.weights import user_cache

    described = read_names(file)
    matrices, unknown = [], []
    texts = [(name, text) for name, several in described.items() for text in several]
    for wanted in (DEFAULT[TEXTS] if encoders is None else encoders).split(","):
        with console.progress("Encoding the names"):
            made = load_encoder(wanted.strip(), TEXTS)
            items = [text_item(name, text, made) for name, text in texts]
            encoded = encode_items(items, made, cache or user_cache())
        unknown += unknown_words((text for _, text in texts), made)
        missing = [name for name in described if name not in encoded.names]
        if missing:
            raise InputError(
                f"NAMES must have words that {made.name} knows: it knows none of "
                f'"{missing[0]}". Describe it after a tab, or choose another --text-encoder.'
            )
        owners = np.array(encoded.names)
        matrices.append(np.stack([encoded.vectors[owners == name].mean(0) for name in described]))
    return tuple(described), matrices, list(dict.fromkeys(unknown))


def read_photos(
    console: Console, source: Path, encoder: str | None, cache: Path | None
) -> Collection:
    """The vectors of a folder of photos, or of a file of vectors."""
    if not source.is_dir():
        from unpaired.files.pairs import row_names
        from unpaired.files.reading import read_table

        table = read_table(source)
        for note in table.notes:
            console.note(note)
        return Collection(row_names(table), table.values)

    from unpaired.features.encoders import DEFAULT, IMAGES, load_encoder
    from unpaired.features.encoding import encode_items
    from unpaired.features.sources import photos_in
    from unpaired.features.weights import user_cache

    with console.progress("Encoding the photos"):
        made = load_encoder(DEFAULT[IMAGES] if encoder is None else encoder, IMAGES)
        encoded = encode_items(photos_in(source, made.side), made, cache or user_cache())
    tell_skipped(console, encoded)
    return Collection(encoded.names, encoded.vectors, source, encoded.encoder, encoded.skipped)


def read_labels(
    file: Path,
    photos: Sequence[str],
    classes: Sequence[str],
    tell: Callable[[str], object] = lambda note: None,
) -> NDArray[np.int64]:
    """The class number of each photo, -1 where the file says nothing.

    Raises:
        InputError: when a photo or a name is not known.
    """
    import numpy as np

    from unpaired._names import check_choice
    from unpaired.features.sources import read_lines
    from unpaired.files.pairs import plain_cell

    row = {name: number for number, name in enumerate(photos)}
    row |= {plain_cell(name): number for name, number in row.items()}
    known = np.full(len(photos), -1, dtype=np.int64)
    for order, cells in enumerate(csv.reader(line for _, line in read_lines(file))):
        if order == 0 and cells[0] not in row and not set(cells[1:]) & set(classes):
            tell(f"{file}, line 1: {', '.join(cells)} taken as a header.")
            continue
        if len(cells) < 2 or cells[0] not in row:
            raise InputError(
                f"labels must have a line file,name for photos of PHOTOS: got {','.join(cells)!r}. "
                "Write names of files as in labels.csv."
            )
        told = list(classes).index(check_choice(cells[1], "name", classes))
        if known[row[cells[0]]] not in (-1, told):
            raise InputError(
                f"labels must say one name of a photo: {file} says "
                f'"{classes[known[row[cells[0]]]]}" and "{cells[1]}" of {cells[0]}. Drop one.'
            )
        known[row[cells[0]]] = told
    if (known < 0).all():
        raise InputError(
            f"labels must have a line file,name for at least one photo: {file} has none. Add one, "
            "or leave --labels out."
        )
    return known
