"""``unpaired fit | transform | retrieve``: learn a model from two files, and use it on new rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpaired.commands.console import Console, Json, Quiet, to_json
from unpaired.commands.match import (
    Features,
    FeaturesX,
    FeaturesY,
    Header,
    IdColumn,
    IdColumnX,
    IdColumnY,
    Out,
    Pairs,
    Relation,
    Seed,
    read_sides,
    sides,
)
from unpaired.errors import InputError

if TYPE_CHECKING:
    import numpy as np

QUERIES_AT_ONCE = 1024

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that fit or match wrote.")]
Side = Annotated[str, typer.Option("--side", help="Which side the rows are of: x or y.")]
File = Annotated[Path, typer.Option("--out", help="File to write: .npy or .csv.")]


def fit(
    x: Annotated[str, typer.Argument(metavar="X", help="Rows of one side.")],
    y: Annotated[str, typer.Argument(metavar="Y", help="Rows of the other.")],
    pairs: Pairs = None,
    relation: Relation = "one-to-one",
    id_column: IdColumn = None,
    id_column_x: IdColumnX = None,
    id_column_y: IdColumnY = None,
    features: Features = None,
    features_x: FeaturesX = None,
    features_y: FeaturesY = None,
    header: Header = None,
    out: Out = Path("fitted"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn a model of two files for rows not seen yet: model/, match.csv and run.json.

    Example: unpaired fit images.npy captions.npy --pairs known.csv --out fitted
    """
    from unpaired._files import check_apart, check_replaceable, check_writable
    from unpaired.commands.delivery import (
        check_unmixed,
        deliver,
        describe_inputs,
        file_digest,
        run_record,
        verdict_record,
    )
    from unpaired.files.pairs import read_pairs, write_match
    from unpaired.files.reading import split_part

    console = Console(quiet, as_json)
    check_writable(out, ("match.csv", "run.json"), "--out")
    check_unmixed(out, "fit")
    given = [split_part(file)[0] for file in (x, y, pairs) if file is not None]
    check_apart([out / "match.csv", out / "run.json"], given, "--out")
    check_replaceable(out / "model", ("arrays.safetensors", "config.json"), "--out")
    options: dict[str, Any] = {
        "pairs": pairs,
        "relation": relation,
        **sides(id_column=(id_column, id_column_x, id_column_y)),
        **sides(features=(features, features_x, features_y)),
        "header": header,
    }
    table_x, table_y = read_sides(x, y, options, console)
    known = None if pairs is None else read_pairs(pairs, table_x, table_y, tell=console.note)
    inputs = describe_inputs({"x": x, "y": y, "pairs": pairs})
    with console.progress("Learning"):
        from unpaired._log import step
        from unpaired.models.dmae import DMAE

        model = DMAE(relation=relation, random_state=seed)
        model.fit(table_x, table_y, known, on_step=lambda entry: step(f"Learning, {_entry(entry)}"))
    record = run_record(
        "fit",
        [x, y],
        options,
        seed,
        inputs=inputs,
        trusted=model.match_.trusted,
        verdict=verdict_record(model.verdict_),
        notes=[*table_x.notes, *table_y.notes, *model.notes_],
    )

    def write(folder: Path) -> None:
        model.save(folder / "model")
        write_match(model.match_, folder / "match.csv", table_x, table_y)
        record["outputs"] = {
            name: file_digest(folder / name) for name in ("match.csv", "model/arrays.safetensors")
        }
        (folder / "run.json").write_text(to_json(record), encoding="utf-8")

    with console.progress("Writing"):
        deliver(out, write)
    console.tell(model.match_.summary())
    console.tell(
        f"Model: {out / 'model'}. Next: unpaired transform {out / 'model'} FILE --out FILE"
    )
    console.finish(record)


def transform(
    model: Model,
    rows: Annotated[str, typer.Argument(metavar="FILE", help="Rows to embed.")],
    side: Side = "x",
    id_column: IdColumn = None,
    features: Features = None,
    header: Header = None,
    out: File = Path("embedded.npy"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Embed rows of one side in the space that both share.

    Example: unpaired transform fitted/model new.csv --side y --out new.npy
    """
    from unpaired._names import check_choice

    console = Console(quiet, as_json)
    check_choice(side, "side", ("x", "y"))
    check_file(out, rows)

    from unpaired.files.pairs import row_names
    from unpaired.files.reading import read_table
    from unpaired.files.writing import write_vectors

    with console.progress("Reading"):
        table = read_table(rows, header=header, id_column=id_column, features=features)
    for note in table.notes:
        console.note(note)
    with console.progress("Embedding"):
        fitted = _load(model)
        place = "embed" if hasattr(fitted, "embed_x") else "transform"  # an Alignment embeds
        embedded = getattr(fitted, f"{place}_{side}")(table)
    names = row_names(table) if out.suffix.lower() == ".csv" else None
    write_vectors(out, [embedded], embedded.shape, names, embedded.dtype)
    console.tell(f"{len(embedded):,} rows of {embedded.shape[1]} numbers: {out}")
    console.finish({"rows": len(embedded), "columns": embedded.shape[1], "out": str(out)})


def retrieve(
    model: Model,
    queries: Annotated[str, typer.Argument(metavar="QUERIES", help="Rows to search for.")],
    gallery: Annotated[str, typer.Argument(metavar="GALLERY", help="Rows to search in.")],
    k: Annotated[int, typer.Option("-k", min=1, help="Best rows to list for each query.")] = 5,
    side: Side = "x",
    id_column: IdColumn = None,
    header: Header = None,
    out: File = Path("retrieved.csv"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """List the best rows of the other side for each query: query, rank, found, score.

    Example: unpaired retrieve fitted/model photos.npy captions.csv -k 5 --out found.csv
    """
    from unpaired._names import check_choice

    console = Console(quiet, as_json)
    check_choice(side, "side", ("x", "y"))
    check_file(out, queries, gallery, kinds=(".csv",))

    from unpaired._files import atomic_writer
    from unpaired.files.pairs import plain_cell, row_names
    from unpaired.files.reading import read_table

    with console.progress("Reading"):
        asked, searched = (
            read_table(path, header=header, id_column=id_column) for path in (queries, gallery)
        )
    for note in (*asked.notes, *searched.notes):
        console.note(note)
    names_asked, names_searched = (
        [plain_cell(name) for name in row_names(table)] for table in (asked, searched)
    )
    with console.progress("Searching"):
        fitted = _load(model)
        best, scores = _search(fitted, asked, searched, k, side)
    with atomic_writer(out) as handle:
        writer = csv.writer(handle)
        writer.writerow(["query", "rank", "found", "score"])
        for name, columns, values in zip(names_asked, best, scores, strict=True):
            for rank, (column, value) in enumerate(zip(columns, values, strict=True), 1):
                writer.writerow([name, rank, names_searched[column], value])
    console.tell(f"{len(names_asked):,} queries in {len(names_searched):,} rows: {out}")
    record = {"queries": len(names_asked), "rows": len(names_searched), "k": k, "out": str(out)}
    console.finish(record)


def _search(
    fitted: Any, asked: Any, searched: Any, k: int, side: str
) -> tuple[list[list[int]], list[list[float]]]:
    """The best ``k`` rows for each query, best first, and their scores; a block at a time."""
    from dataclasses import replace

    import numpy as np

    from unpaired._log import track

    best: list[list[int]] = []
    values: list[list[float]] = []
    for begin in track(range(0, len(asked.values), QUERIES_AT_ONCE), "Searching"):
        block = replace(asked, values=asked.values[begin : begin + QUERIES_AT_ONCE])
        scores: np.ndarray = (
            fitted.score_matrix(block, searched)
            if side == "x"
            else fitted.score_matrix(searched, block).T
        )
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best += order.tolist()
        values += np.take_along_axis(scores, order, axis=1).tolist()
    return best, values


def model_folder(given: Path, inside: Sequence[str] = ("model",)) -> Path:
    """The folder of a model: the one given, or that in it where it holds the results of a run."""
    return next((given / name for name in inside if (given / name).is_dir()), given)


def _load(model: Path) -> Any:
    """A model of two views.

    Raises:
        InputError: when it is of another kind.
    """
    from unpaired.loading import load

    fitted = load(model_folder(model))
    if not hasattr(fitted, "score_matrix"):
        raise InputError(
            f"MODEL must be a model of two sides: {model} holds a {type(fitted).__name__}. "
            "Make one with unpaired fit or unpaired match."
        )
    return fitted


def check_file(out: Path, *inputs: str | Path, kinds: tuple[str, ...] = (".npy", ".csv")) -> None:
    """Accept a file that can be written, and is none of those that are read.

    Raises:
        InputError: when it is of another kind, an input, or its folder cannot be written.
    """
    from unpaired._files import check_apart, check_writable
    from unpaired.files.reading import split_part

    if out.suffix.lower() not in kinds:
        raise InputError(f"--out must end in {' or '.join(kinds)}: got {out}. Rename it.")
    check_writable(out.parent, (out.name,), "--out")
    check_apart([out], [split_part(file)[0] for file in inputs], "--out")


def _entry(entry: dict[str, float]) -> str:
    """A step of learning in a few words."""
    return ", ".join(
        f"{name} {value:.4g}" for name, value in entry.items() if isinstance(value, int | float)
    )
