"""``unpaired check``: will it work on these files?"""

from __future__ import annotations

from typing import Annotated

import typer

from unpaired.commands.console import Console, Json, Quiet
from unpaired.commands.match import (
    Features,
    FeaturesX,
    FeaturesY,
    Header,
    IdColumn,
    IdColumnX,
    IdColumnY,
    Pairs,
    Seed,
    read_sides,
    sides,
)


def check(
    x: Annotated[str, typer.Argument(metavar="X", help="Rows of one side.")],
    y: Annotated[str, typer.Argument(metavar="Y", help="Rows of the other.")],
    pairs: Pairs = None,
    id_column: IdColumn = None,
    id_column_x: IdColumnX = None,
    id_column_y: IdColumnY = None,
    features: Features = None,
    features_x: FeaturesX = None,
    features_y: FeaturesY = None,
    header: Header = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say whether a match of two files could be trusted, why, and what to do next.

    Large files are judged on a sample. Nothing is written.

    Example: unpaired check cells.csv genes.csv --id-column barcode
    """
    from unpaired.commands.delivery import verdict_record
    from unpaired.files.pairs import read_pairs

    console = Console(quiet, as_json)
    options = {
        **sides(id_column=(id_column, id_column_x, id_column_y)),
        **sides(features=(features, features_x, features_y)),
        "header": header,
    }
    table_x, table_y = read_sides(x, y, options, console)
    known = None if pairs is None else read_pairs(pairs, table_x, table_y, tell=console.note)
    with console.progress("Checking"):
        from unpaired.checking import check as judged

        found = judged(table_x.values, table_y.values, known, random_state=seed)
    console.tell(found)
    console.finish(
        {
            "verdict": verdict_record(found.verdict),
            "rows": list(found.rows),
            "judged": list(found.judged),
            "known_pairs": found.n_known,
            "advice": list(found.advice),
        }
    )
