"""The command line: arguments -> run -> report. No maths here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from unpaired import __version__
from unpaired.commands import bench, data
from unpaired.errors import DataError, InputError, UnpairedError

app = typer.Typer(
    name="unpaired",
    help="Match two collections that were never paired.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help answers three times as fast
)
app.add_typer(data.app)
app.add_typer(bench.app)

Out = Annotated[Path, typer.Option("--out", help="Folder for the results; made if missing.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Same seed, same result.")]


def _version(show: bool) -> None:
    if show:
        typer.echo(f"unpaired {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Match two collections that were never paired: none, few or all pairs known."""


@app.command()
def demo(out: Out = Path("demo-report"), seed: Seed = 0) -> None:
    """Name 2,000 photos with no labels, then with one label per class, and write a report."""
    from unpaired.demo import run_demo
    from unpaired.report.html import write_report

    result = run_demo(seed, tell=typer.echo)
    typer.echo()
    width = max(map(len, result.headline))
    for name, value in sorted(result.headline.items(), key=lambda item: -item[1]):
        typer.echo(f"  {name:<{width}}  {value:6.1%}  {'#' * round(50 * value)}")
    typer.echo()
    typer.echo(result.notes[0])
    typer.echo(f"Fits took {sum(result.seconds.values()):.0f} s.")
    typer.echo(f"Report: {write_report(result, out)}")


@app.command()
def match(
    x: Annotated[str, typer.Argument(help="Rows to find partners for: npy, npz, csv, parquet.")],
    y: Annotated[str, typer.Argument(help="Rows to choose from; other columns are fine.")],
    pairs: Annotated[
        Path | None, typer.Option(help="Known pairs: two columns, row of x and row of y.")
    ] = None,
    relation: Annotated[
        str, typer.Option(help="one-to-one, or many-to-one (rows of x to classes in y).")
    ] = "one-to-one",
    weights_x: Annotated[
        str | None, typer.Option(help="How often rows of x count: one number per row, 0 = not.")
    ] = None,
    weights_y: Annotated[str | None, typer.Option(help="The same for rows of y.")] = None,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Leave out rows that have no evident partner.")
    ] = False,
    jobs: Annotated[int, typer.Option(help="Starts refined at once; -1 = all cores.")] = 1,
    out: Out = Path("match-report"),
    seed: Seed = 0,
) -> None:
    """Match the rows of two tables by geometry alone: writes match.csv and report.html."""
    from unpaired.files.pairs import read_pairs, write_match
    from unpaired.files.reading import read_table

    table_x, table_y = read_table(x), read_table(y)
    known = None if pairs is None else read_pairs(pairs, table_x, table_y)
    weights = tuple(w if w is None else read_table(w).values for w in (weights_x, weights_y))

    from unpaired.experiment import run_match  # heavy, so only for files that can be read
    from unpaired.report.html import write_report
    from unpaired.types import atomic_writer

    settings = {"x": x, "y": y, "pairs": str(pairs or "none"), "relation": relation}
    given = {"weights_x": weights_x, "weights_y": weights_y, "leave_out": leave_out}
    settings |= {name: str(value) for name, value in given.items() if value}
    result = run_match(
        table_x.values,
        table_y.values,
        known,
        settings,
        seed,
        weights=weights,
        leave_out=leave_out,
        n_jobs=jobs,
    )
    if result.match is not None:
        write_match(result.match, out / "match.csv", table_x, table_y)
        typer.echo(result.match.summary())
    with atomic_writer(out / "result.json") as handle:
        record = {
            "settings": settings,
            "seed": seed,
            "headline": result.headline,
            "versions": result.versions,
            "seconds": result.seconds,
        }
        json.dump(record, handle, indent=1)
    typer.echo(f"Matches: {out / 'match.csv'}")
    typer.echo(f"Report: {write_report(result, out)}")


@app.command("ls")
def list_names(
    what: Annotated[str, typer.Argument(help="methods, solvers, measures or datasets.")],
) -> None:
    """List what there is by name: methods, solvers, measures or datasets."""
    from unpaired import registry
    from unpaired._checks import check_choice

    table = registry.TABLES[check_choice(what, "list", registry.TABLES)]
    width = max(map(len, table))
    for name in table:
        typer.echo(f"{name:<{width}}  {table.about[name]}")


def main() -> None:
    """Run the command line; mistakes print one sentence and exit 2, failed runs exit 1."""
    try:
        app()
    except (InputError, DataError) as error:
        typer.echo(f"unpaired: {error}", err=True)
        sys.exit(2)
    except (UnpairedError, OSError) as error:
        typer.echo(f"unpaired: {error}", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("unpaired: stopped; nothing was left half written.", err=True)
        sys.exit(130)
