"""``unpaired match``: two files in, who belongs to whom out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpaired.commands.console import Console, Json, Quiet, as_typed, to_json
from unpaired.errors import InputError

if TYPE_CHECKING:
    from unpaired.files.sheet import Table

OUTPUTS = ("match.csv", "report.html", "report.json", "run.json")
CELLS = {"x": "x.h5ad", "y": "y.h5ad"}
"""What is written beside them for a side that came as .h5ad."""
MODEL = ("arrays.safetensors", "config.json")


def place(text: str | Path) -> Path:
    """Where results go; an empty text, as of a variable that is not set, is no place."""
    if not str(text).strip():
        raise typer.BadParameter("it must name a place for the results, and is empty.")
    return Path(text)


Out = Annotated[
    Path,
    typer.Option(
        "--out", help="Folder for the results; made if missing.", parser=place, metavar="<path>"
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same result.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether line 1 of text files names the columns."),
]
IdColumn = Annotated[
    str | None, typer.Option(help="Column that names the rows of both, by name or number; or none.")
]
IdColumnX = Annotated[str | None, typer.Option(help="The same for X alone.")]
IdColumnY = Annotated[str | None, typer.Option(help="The same for Y alone.")]
Features = Annotated[
    str | None, typer.Option(help="Columns of both to use, such as a,b or 1-4,7 (from 0).")
]
FeaturesX = Annotated[str | None, typer.Option(help="The same for X alone.")]
FeaturesY = Annotated[str | None, typer.Option(help="The same for Y alone.")]
Relation = Annotated[
    str, typer.Option(help="one-to-one, or many-to-one (rows of X to classes in Y).")
]
Pairs = Annotated[
    str | None, typer.Option(help="Known pairs: two columns, id or number of a row of X and of Y.")
]


def match(
    x: Annotated[str, typer.Argument(metavar="X", help="Rows to find partners for.")],
    y: Annotated[str, typer.Argument(metavar="Y", help="Rows to choose from.")],
    pairs: Pairs = None,
    relation: Relation = "one-to-one",
    forbidden: Annotated[
        str | None, typer.Option(help="Pairs that must not be made, in a file like --pairs.")
    ] = None,
    side_info: Annotated[
        str | None, typer.Option(help="Matrix, rows of X by rows of Y; larger = likelier pair.")
    ] = None,
    shared: Annotated[
        str | None, typer.Option(help="Columns that mean the same in X and Y, by name.")
    ] = None,
    weights_x: Annotated[
        str | None, typer.Option(help="How often rows of X count: one number per row, 0 = not.")
    ] = None,
    weights_y: Annotated[str | None, typer.Option(help="The same for rows of Y.")] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave out rows of confidence below one half.")
    ] = False,
    min_confidence: Annotated[
        float | None, typer.Option(help="Leave out rows of confidence below this, 0 to 1.")
    ] = None,
    id_column: IdColumn = None,
    id_column_x: IdColumnX = None,
    id_column_y: IdColumnY = None,
    features: Features = None,
    features_x: FeaturesX = None,
    features_y: FeaturesY = None,
    header: Header = None,
    jobs: Annotated[int, typer.Option(help="Starts compared at once; -1 = all cores.")] = 1,
    out: Out = Path("match-report"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Match the rows of two files by geometry alone: match.csv, report.html, run.json, model/.

    Files: npy, npz, csv, tsv, txt, parquet, feather, xlsx, jsonl, h5ad, and .gz of these.
    Sides that come as .h5ad are also written as x.h5ad and y.h5ad, with partners and confidence.

    Example: unpaired match cells.csv genes.csv --id-column barcode --out result
    """
    from unpaired._files import check_apart, check_replaceable, check_writable
    from unpaired.commands.delivery import (
        check_extra,
        check_unmixed,
        deliver,
        describe_inputs,
        file_digest,
        run_record,
        verdict_record,
    )

    console = Console(quiet, as_json)
    check_writable(out, (*OUTPUTS, *CELLS.values()), "--out")
    check_unmixed(out, "match")
    check_replaceable(out / "model", MODEL, "--out")
    if relation == "many-to-one" and (out / "model").exists():
        raise InputError(
            f"--out must not hold the model of another run: many-to-one writes none, and {out} "
            "has one. Name another folder."
        )
    check_extra("jinja2", "report", "Writing report.html")

    from unpaired.files.beside import read_side_info, read_weights
    from unpaired.files.cells import note_cells, write_cells
    from unpaired.files.pairs import read_pairs, row_names, write_match
    from unpaired.files.reading import kind_of, split_part

    cells = {
        side: file
        for side, (file, _) in {"x": split_part(x), "y": split_part(y)}.items()
        if kind_of(file) == ".h5ad" and relation == "one-to-one"
    }
    for side, name in CELLS.items():
        if side not in cells and (out / name).exists():
            raise InputError(
                f"--out must not hold the cells of another run: this one writes no {name}, and "
                f"{out} has one. Name another folder."
            )

    options: dict[str, Any] = {
        "pairs": pairs,
        "relation": relation,
        "forbidden": forbidden,
        "side_info": side_info,
        "shared": shared,
        "weights_x": weights_x,
        "weights_y": weights_y,
        "leave_out": leave_out,
        "min_confidence": min_confidence,
        **sides(id_column=(id_column, id_column_x, id_column_y)),
        **sides(features=(features, features_x, features_y)),
        "header": header,
        "jobs": jobs,
    }
    files = {"x": x, "y": y} | {
        name: options[name]
        for name in ("pairs", "forbidden", "side_info", "weights_x", "weights_y")
    }
    given = [None if file is None else split_part(file)[0] for file in files.values()]
    check_apart([out / name for name in (*OUTPUTS, *CELLS.values())], given, "--out")
    table_x, table_y = read_sides(x, y, options, console)
    arguments: dict[str, Any] = {
        "leave_out": leave_out,
        "min_confidence": min_confidence,
        "n_jobs": jobs,
    }
    known = None if pairs is None else read_pairs(pairs, table_x, table_y, tell=console.note)
    if forbidden is not None:
        arguments["forbidden"] = read_pairs(
            forbidden, table_x, table_y, "forbidden", tell=console.note
        )
    if side_info is not None:
        arguments["similarity"] = read_side_info(side_info, table_x, table_y, console.note)
    rows_x, rows_y = table_x, table_y
    if shared is not None:
        (shared_x, rows_x), (shared_y, rows_y) = (
            split_columns(table_x, shared, x),
            split_columns(table_y, shared, y),
        )
        arguments["shared"] = (shared_x, shared_y)
    arguments["weights"] = tuple(
        None if path is None else read_weights(path, table, side, console.note)
        for path, table, side in ((weights_x, table_x, "x"), (weights_y, table_y, "y"))
    )
    inputs = describe_inputs(files)

    with console.progress("Loading the engine"):
        from unpaired.commands.showing import described
        from unpaired.experiment import run_match  # heavy, so only for files that can be read
        from unpaired.report.html import write_report
        from unpaired.report.items import rows_of_y_shown, rows_shown
        from unpaired.report.stored import write_stored
    shown = {"x": x, "y": y} | {n: v for n, v in options.items() if v not in (None, False)}
    with console.progress("Matching"), as_typed():
        result, aligned = run_match(rows_x, rows_y, known, shown, seed, **arguments)
    found = result.match
    if found is None:
        raise InputError("match gave nothing to write.")
    result = replace(
        result,
        notes=(*table_x.notes, *table_y.notes, *result.notes),
        ids_x=table_x.ids or (),
        ids_y=table_y.ids or (),
        items_x=described(table_x, rows_shown(found)),
        items_y=described(table_y, rows_of_y_shown(found)),
    )
    record = run_record(
        "match",
        [x, y],
        options,
        seed,
        inputs=inputs,
        headline=result.headline,
        trusted=found.trusted,
        verdict=verdict_record(found.verdict),
        notes=list(result.notes),
        seconds=result.seconds,
    )

    def write(folder: Path) -> None:
        write_match(found, folder / "match.csv", table_x, table_y)
        record["outputs"] = {"match.csv": file_digest(folder / "match.csv")}
        write_report(result, folder)
        write_stored(result, folder)
        if aligned is not None:
            aligned.save(folder / "model")
            record["outputs"]["model/arrays.safetensors"] = file_digest(folder / "model" / MODEL[0])
        if aligned is not None and cells:
            spaces = aligned.embed_x(rows_x), aligned.embed_y(rows_y)
            names = row_names(table_x), row_names(table_y)
            noted = note_cells(found, spaces, names, shown, seed)
            for side, notes in zip(CELLS, noted, strict=True):
                if side in cells:
                    write_cells(cells[side], folder / CELLS[side], notes)
        (folder / "run.json").write_text(to_json(record), encoding="utf-8")

    with console.progress("Writing"):
        deliver(out, write)
    console.tell(found.summary())
    console.tell(f"Matches: {out / 'match.csv'}")
    console.tell(f"Report: {out / 'report.html'}")
    if aligned is not None:
        console.tell(f"Model: {out / 'model'}, for transform, retrieve and translate")
    for side in cells:
        console.tell(f"Cells: {out / CELLS[side]}")
    for sentence in result.advice:
        console.tell(f"next: {sentence}")
    console.finish(record)


def sides(**named: tuple[str | None, str | None, str | None]) -> dict[str, str | None]:
    """An option for each side, from that for both, that for x and that for y.

    >>> sides(features=("a", None, "b"))
    {'features_x': 'a', 'features_y': 'b'}
    """
    return {
        f"{name}_{side}": both if own is None else own
        for name, (both, *each) in named.items()
        for side, own in zip("xy", each, strict=True)
    }


def read_sides(x: str, y: str, options: dict[str, Any], console: Console) -> tuple[Table, Table]:
    """Both tables, read as the options say; what was found out about them is told."""
    from unpaired.files.reading import read_table

    with console.progress("Reading"):
        table_x, table_y = (
            read_table(
                path,
                header=options["header"],
                id_column=options[f"id_column_{side}"],
                features=options[f"features_{side}"],
            )
            for path, side in ((x, "x"), (y, "y"))
        )
    for note in (*table_x.notes, *table_y.notes):
        console.note(note)
    return table_x, table_y


def split_columns(table: Table, wanted: str, file: str) -> tuple[Any, Table]:
    """The columns that ``wanted`` names, and a table of the others.

    Raises:
        InputError: when one is not there, or nothing is left.
    """
    names = list(table.names or map(str, range(table.values.shape[1])))
    chosen = [part.strip() for part in wanted.split(",")]
    for name in chosen:
        if names.count(name) > 1:
            raise InputError(
                f"shared must name columns by names that differ: {file} has {names.count(name)} "
                f'called "{name}". Rename them.'
            )
        if name not in names:
            raise InputError(
                f'shared must name columns that X and Y both have: {file} has no "{name}". '
                f"It has {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}."
            )
    inside = [name in chosen for name in names]
    if all(inside):
        raise InputError(
            f"shared must leave columns to match by: {file} has no others. Name fewer of them."
        )
    order = [names.index(name) for name in chosen]
    kept = [number for number, taken in enumerate(inside) if not taken]
    left = table.names and tuple(names[number] for number in kept)
    return table.values[:, order], replace(table, values=table.values[:, kept], names=left)
