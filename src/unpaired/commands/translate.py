"""``unpaired translate``: vectors of one model in the columns of another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpaired.commands.console import Console, Json, Quiet, to_json
from unpaired.commands.match import Features, Header, IdColumn, Pairs, Seed, place
from unpaired.errors import DataError, InputError

if TYPE_CHECKING:
    import numpy as np

    from unpaired.files.sheet import Table
    from unpaired.spaces.translation import Translation

FOLDER, ONNX = "translation", "translation.onnx"


def translate(
    first: Annotated[
        str, typer.Argument(metavar="OLD|MODEL", help="Vectors to learn from; or a folder.")
    ],
    second: Annotated[
        str, typer.Argument(metavar="NEW|VECTORS", help="Vectors of the other; or to translate.")
    ],
    pairs: Pairs = None,
    side: Annotated[
        str, typer.Option("--side", help="Which side VECTORS are of, where MODEL knows both.")
    ] = "x",
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write the map as one ONNX file beside it.")
    ] = False,
    id_column: IdColumn = None,
    features: Features = None,
    header: Header = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder for what is learned; file for translated rows.",
            parser=place,
            metavar="<path>",
        ),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Learn a map from the vectors of one model to those of another, or apply it.

    The two sets of vectors may be of different documents. A folder as the first argument is a map
    that was learned, or a model of fit or match; then the rows of the second are translated.

    Example: unpaired translate old.npy new.npy --out map

    Example: unpaired translate map more-old.npy --out more-new.npy
    """
    console = Console(quiet, as_json)
    reading = {"header": header, "id_column": id_column, "features": features}
    if Path(first).is_dir():
        for name, given in (("--pairs", pairs), ("--onnx", onnx), ("--seed", seed)):
            if given:
                raise InputError(f"{name} is for learning a map: {first} holds one. Leave it out.")
        _apply(first, second, side, reading, out or Path("translated.npy"), console)
    else:
        if side != "x":
            raise InputError("--side is for applying a map. To learn the other, swap OLD and NEW.")
        _learn(first, second, pairs, onnx, reading, out or Path("translation"), seed, console)


def _learn(
    old: str,
    new: str,
    pairs: str | None,
    onnx: bool,
    reading: dict[str, Any],
    out: Path,
    seed: int,
    console: Console,
) -> None:
    """Learn a map, judge it on pairs held out, and write it."""
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

    check_writable(out, ("run.json", ONNX), "--out")
    check_unmixed(out, "translate")
    check_replaceable(out / FOLDER, ("arrays.safetensors", "config.json"), "--out")
    if onnx:
        check_extra("onnx", "onnx", "Writing translation.onnx")

    from unpaired.files.pairs import read_pairs
    from unpaired.files.reading import read_table, split_part

    given = [split_part(file)[0] for file in (old, new, pairs) if file is not None]
    check_apart([out / "run.json", out / ONNX], given, "--out")

    with console.progress("Reading"):
        tables = [read_table(path, **reading) for path in (old, new)]
    for note in (*tables[0].notes, *tables[1].notes):
        console.note(note)
    known = None if pairs is None else read_pairs(pairs, tables[0], tables[1], tell=console.note)
    inputs = describe_inputs({"x": old, "y": new, "pairs": pairs})
    with console.progress("Learning the map"):
        from unpaired.translating import learn_map

        learned = learn_map(tables[0], tables[1], known, seed=seed)
    width, height = learned.translation.matrix.shape
    options = {"pairs": pairs, "onnx": onnx, **reading}
    record = run_record(
        "translate",
        [old, new],
        options,
        seed,
        inputs=inputs,
        verdict=verdict_record(learned.verdict),
        columns=[width, height],
        held_out=learned.held_out,
    )

    def write(folder: Path) -> None:
        learned.save(folder / FOLDER)
        record["outputs"] = {f"{FOLDER}/arrays.safetensors": ""}
        if onnx:
            from unpaired.spaces.onnx_export import write_onnx

            record["outputs"][ONNX] = ""
            write_onnx(learned.translation, folder / ONNX)
        for name in record["outputs"]:
            record["outputs"][name] = file_digest(folder / name)
        (folder / "run.json").write_text(to_json(record), encoding="utf-8")

    with console.progress("Writing"):
        deliver(out, write)
    console.tell(f"verdict: {learned.verdict}")
    console.tell(
        f"A linear map from {width} columns to {height}, learned from {len(tables[0].values):,} "
        f"and {len(tables[1].values):,} rows"
        + (", scaled to length one." if learned.translation.unit else ".")
    )
    console.tell(learned.told())
    console.tell(f"Map: {out / FOLDER}. Next: unpaired translate {out} FILE --out FILE")
    console.finish(record)


def _apply(
    model: str, rows: str, side: str, reading: dict[str, Any], out: Path, console: Console
) -> None:
    """Translate rows, a block at a time, into a .npy or .csv file."""
    from unpaired._names import check_choice
    from unpaired.commands.model import check_file

    check_choice(side, "side", ("x", "y"))
    check_file(out, rows)

    from unpaired.files.pairs import row_names
    from unpaired.files.reading import read_table
    from unpaired.files.writing import write_vectors

    with console.progress("Reading"):
        table: Table = read_table(rows, **reading)
    for note in table.notes:
        console.note(note)
    with console.progress("Translating"):
        found = _map_of(model, side, table)
        blocks = _blocks(found, table.values)
        names = row_names(table) if out.suffix.lower() == ".csv" else None
        write_vectors(out, blocks, (len(table.values), found.matrix.shape[1]), names)
    console.tell(f"{len(table.values):,} rows in {found.matrix.shape[1]} columns: {out}")
    console.finish({"rows": len(table.values), "columns": found.matrix.shape[1], "out": str(out)})


def _blocks(found: Translation, values: np.ndarray) -> Any:
    from unpaired._log import track
    from unpaired.spaces.translation import BLOCK_ROWS

    for begin in track(range(0, len(values), BLOCK_ROWS), "Translating"):
        yield found(values[begin : begin + BLOCK_ROWS])


def _map_of(model: str, side: str, table: Table) -> Translation:
    """The map in a folder: of translate, fit or match, or in one that holds such a folder."""
    from unpaired.commands.model import model_folder
    from unpaired.loading import load
    from unpaired.spaces.translation import Translation
    from unpaired.translating import check_rows

    place = model_folder(Path(model), (FOLDER, "model"))
    loaded = load(place)
    if isinstance(loaded, Translation):
        if side != "x":
            raise InputError(
                f"--side y needs a model that knows both sides: {place} holds one map. "
                "Learn the other by swapping OLD and NEW."
            )
        found = loaded
    elif hasattr(loaded, f"translate_{side}"):
        one = replace(table, values=table.values[:1])
        getattr(loaded, f"translate_{side}")(one)  # checks the columns and their names
        found = loaded.translations["xy".index(side)]
    else:
        raise DataError(
            f"MODEL must hold a map: {place} holds a {type(loaded).__name__}. Make one with "
            "unpaired translate OLD NEW, unpaired fit or unpaired match."
        )
    if table.values.shape[1] != found.matrix.shape[0]:
        raise InputError(
            f"VECTORS must have the {found.matrix.shape[0]} columns that the map was learned from: "
            f"they have {table.values.shape[1]}. Take vectors of the same model."
        )
    if found is loaded:
        check_rows(place, table, "VECTORS")
    return found
