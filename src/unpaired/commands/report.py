"""``unpaired report``: draw the page of a finished run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpaired.commands.console import Console, Quiet
from unpaired.errors import InputError


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that match wrote.")],
    show_x: Annotated[
        Path | None,
        typer.Option(
            help="What rows of X look like: a folder of photos named as they are, or texts."
        ),
    ] = None,
    show_y: Annotated[Path | None, typer.Option(help="The same for rows of Y.")] = None,
    truth: Annotated[
        str | None, typer.Option(help="True pairs, as for --pairs: marks what is right and wrong.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw report.html of a finished match again, from what the run left; nothing is fitted.

    Text files have a line for each row in order, or lines id<TAB>text.

    Example: unpaired report match-report --show-x photos --show-y captions.txt
    """
    from unpaired.commands.delivery import check_extra

    console = Console(quiet)
    check_extra("jinja2", "report", "Writing report.html")

    from dataclasses import replace

    from unpaired._files import check_writable
    from unpaired.commands.showing import read_items, read_truth
    from unpaired.report.html import write_report
    from unpaired.report.items import rows_of_y_shown, rows_shown
    from unpaired.report.stored import read_stored

    result = read_stored(folder)
    check_writable(folder, ("report.html",), "DIR")
    found = result.match
    if found is None:
        raise InputError(f"DIR must be a folder that unpaired match wrote: {folder} has no match.")
    ids_x = result.ids_x or tuple(map(str, range(len(found))))
    ids_y = result.ids_y or tuple(map(str, range(found.n_y)))
    if show_x is not None:
        result = replace(result, items_x=read_items(show_x, ids_x, rows_shown(found), "show-x"))
    if show_y is not None:
        rows = rows_of_y_shown(found)
        result = replace(result, items_y=read_items(show_y, ids_y, rows, "show-y"))
    if truth is not None:
        result = replace(result, truth=read_truth(truth, ids_x, ids_y, console.note))
    console.tell(f"Report: {write_report(result, folder)}")
