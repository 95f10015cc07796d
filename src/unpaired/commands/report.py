"""``unpaired report``: draw the page of a finished run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpaired.commands.console import Console, Quiet


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that match wrote.")],
    quiet: Quiet = False,
) -> None:
    """Draw report.html of a finished match again, from what the run left; nothing is fitted.

    Example: unpaired report match-report
    """
    from unpaired.commands.delivery import check_extra

    console = Console(quiet)
    check_extra("jinja2", "report", "Writing report.html")

    from unpaired._files import check_writable
    from unpaired.report.html import write_report
    from unpaired.report.stored import read_stored

    result = read_stored(folder)
    check_writable(folder, ("report.html",), "DIR")
    console.tell(f"Report: {write_report(result, folder)}")
