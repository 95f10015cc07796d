"""``unpaired encode``: photos or texts in, vectors out."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpaired.commands.console import Console, Json, Quiet
from unpaired.errors import InputError

if TYPE_CHECKING:
    from unpaired.features.encoding import Encoded

SHOWN = 10

Cache = Annotated[
    Path | None,
    typer.Option(help="Folder of vectors made before; by default UNPAIRED_CACHE or ~/.cache."),
]


def encode(
    what: Annotated[str, typer.Argument(metavar="images|texts", help="What SOURCE holds.")],
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="Folder of photos, or file of one text a line.")
    ],
    encoder: Annotated[
        str | None, typer.Option(help="Who encodes; `unpaired ls encoders` tells who can.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="File: .npz or .csv.")] = Path("encoded.npz"),
    cache: Cache = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Turn photos or texts into vectors, block by block; a stopped run goes on where it was.

    The .npz holds the arrays features and id. Photos that cannot be read are skipped and listed.

    Example: unpaired encode images holiday --encoder efficientnet-lite0 --out holiday.npz
    """
    from unpaired._files import check_apart, check_writable
    from unpaired._names import check_choice
    from unpaired.features.encoders import DEFAULT, IMAGES, KNOWN, load_encoder
    from unpaired.features.encoding import encode_items
    from unpaired.features.sources import photos_in, read_lines, texts_in, unknown_words
    from unpaired.features.weights import user_cache

    console = Console(quiet, as_json)
    check_choice(what, "kind to encode", DEFAULT)
    if encoder == "?":
        for name, known in KNOWN.items():
            if known.kind == what:
                typer.echo(f"{name:<24} {known.about}")
        return
    if out.suffix.lower() not in (".npz", ".csv"):
        raise InputError(f"--out must end in .npz or .csv: got {out}. Rename it.")
    check_writable(out.parent, (out.name,), "--out")
    check_apart([out], [source], "--out")
    check_cache(cache)
    with console.progress("Loading the encoder"):
        made = load_encoder(DEFAULT[what] if encoder is None else encoder, what)
    if what == IMAGES:
        items = photos_in(source, made.side)
        unknown: list[str] = []
    else:
        items = texts_in(source, made)
        unknown = unknown_words((text for _, text in read_lines(source)), made)
    with console.progress("Encoding"):
        encoded = encode_items(items, made, cache or user_cache())
    write_vectors(encoded, out)
    tell_skipped(console, encoded)
    if unknown:
        console.note(f"{len(unknown):,} words have no vector: {shorten(unknown)}.")
    if encoded.encoder != made.name:
        console.note(f"learned from these; for others like them: --encoder {encoded.encoder}")
    n_rows, width = encoded.vectors.shape
    console.tell(f"{n_rows:,} rows of {width} numbers, {encoded.n_reused:,} made before: {out}")
    console.finish(
        {
            "rows": n_rows,
            "columns": width,
            "encoder": encoded.encoder,
            "reused": encoded.n_reused,
            "skipped": [list(item) for item in encoded.skipped],
            "unknown_words": unknown,
            "out": str(out),
        }
    )


def check_cache(cache: Path | None) -> None:
    """Accept a folder that can be written; None = the user's own."""
    from unpaired._files import check_writable
    from unpaired.features.weights import user_cache

    check_writable(user_cache() if cache is None else cache, (), "--cache")


def check_used(option: str, given: object, used: bool, why: str) -> None:
    """Accept an option that is not given, or can change something.

    Raises:
        InputError: when it is given for nothing.
    """
    if given is not None and not used:
        raise InputError(f"{option} must be left out where {why}: it could change nothing.")


def write_vectors(encoded: Encoded, out: Path) -> None:
    """Write the vectors and the names of their rows, whole or not at all."""
    from unpaired._files import atomic_writer
    from unpaired.files.pairs import plain_cell

    if out.suffix.lower() == ".npz":
        import numpy as np

        with atomic_writer(out, binary=True) as handle:
            np.savez(handle, features=encoded.vectors, id=np.array(encoded.names))
        return
    with atomic_writer(out) as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", *(f"f{k}" for k in range(encoded.vectors.shape[1]))])
        for name, row in zip(encoded.names, encoded.vectors.tolist(), strict=True):
            writer.writerow([plain_cell(name), *row])


def tell_skipped(console: Console, encoded: Encoded) -> None:
    """Say what was left out, and why."""
    if not encoded.skipped:
        return
    console.note(f"{len(encoded.skipped):,} skipped:")
    for name, reason in encoded.skipped[:SHOWN]:
        console.note(f"  {name}: {reason}")
    if len(encoded.skipped) > SHOWN:
        console.note(f"  and {len(encoded.skipped) - SHOWN:,} more; --json lists all")


def shorten(words: list[Any]) -> str:
    """Some words of a list, and how many more there are."""
    more = f" and {len(words) - SHOWN:,} more" if len(words) > SHOWN else ""
    return ", ".join(map(str, words[:SHOWN])) + more
