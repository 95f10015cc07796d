"""``unpaired bench``: run a benchmark, print its tables, draw its curves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="bench",
    help="Benchmarks: run methods x label shares x seeds, print tables, draw curves.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Config = Annotated[Path, typer.Option("--config", help="TOML file, such as experiments/*.toml.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder for results; by default runs/NAME-OF-CONFIG.")
]
Data = Annotated[
    Path | None, typer.Option("--data", help="Data folder; by default $UNPAIRED_DATA.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Cells to run at a time.")]
Methods = Annotated[
    str | None,
    typer.Option(
        "--methods",
        help="Only these, by label or name, comma-separated; a label may contain commas: the "
        "longest that fits counts.",
    ),
]
Seeds = Annotated[
    str | None, typer.Option("--seeds", help="Instead of the configuration's, such as 0,1,2.")
]
Redo = Annotated[
    bool,
    typer.Option("--redo-stale", help="Run again just the cells that other code than today's ran."),
]
Confirm = Annotated[
    bool,
    typer.Option(
        "--confirm-stale",
        help="Run one stale cell of each method again; where it is the same, so are all.",
    ),
]
Results = Annotated[Path, typer.Argument(help="Folder with results, or one above several.")]


@app.command()
def retrieval(
    config: Config,
    out: Out = None,
    data: Data = None,
    jobs: Jobs = 1,
    methods: Methods = None,
    seeds: Seeds = None,
    redo_stale: Redo = False,
    confirm_stale: Confirm = False,
) -> None:
    """Images and captions with some pairs known: recall at 1, 5 and 10, both ways.

    Example: unpaired bench retrieval --config experiments/flickr8k.toml --data DATA
    """
    _run("retrieval", config, out, data, jobs, methods, seeds, redo_stale, confirm_stale)


@app.command()
def ucl(
    config: Config,
    out: Out = None,
    data: Data = None,
    jobs: Jobs = 1,
    methods: Methods = None,
    seeds: Seeds = None,
    redo_stale: Redo = False,
    confirm_stale: Confirm = False,
) -> None:
    """Unsupervised classifier learning: name images with no, some or all labels.

    Example: unpaired bench ucl --config experiments/awa.toml --data DATA
    """
    _run("ucl", config, out, data, jobs, methods, seeds, redo_stale, confirm_stale)


@app.command()
def matching(
    config: Config,
    out: Out = None,
    data: Data = None,
    jobs: Jobs = 1,
    methods: Methods = None,
    seeds: Seeds = None,
    redo_stale: Redo = False,
    confirm_stale: Confirm = False,
) -> None:
    """Two sets of rows that belong together one to one: P@1, FOSCTTM, precision.

    Example: unpaired bench matching --config own.toml --data . --out results
    """
    _run("matching", config, out, data, jobs, methods, seeds, redo_stale, confirm_stale)


@app.command()
def table(
    results: Results,
    kind: Annotated[str, typer.Option("--format", help="text, markdown, csv or latex.")] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", help="Write to this file instead of the screen.")
    ] = None,
) -> None:
    """Print the tables of finished cells, the paper's figure beside ours.

    Example: unpaired bench table results --format latex --out table.tex
    """
    from unpaired._files import atomic_writer
    from unpaired.bench.cells import read_folder
    from unpaired.bench.tables import result_tables
    from unpaired.report.result_table import format_table

    records, damaged = read_folder(results)
    text = "\n".join(format_table(made, kind) for made in result_tables(records))
    for line in damaged:
        typer.echo(f"left out, not a finished cell: {line}", err=True)
    if out is None:
        typer.echo(text, nl=False)
        return
    with atomic_writer(out) as handle:
        handle.write(text)
    typer.echo(f"Tables: {out}")


@app.command()
def plot(
    results: Results,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for pictures; by default RESULTS/plots.")
    ] = None,
    kind: Annotated[str, typer.Option("--format", help="png, svg or pdf.")] = "png",
) -> None:
    """Draw R@1 or accuracy against the label share, and the matching over iterations.

    Example: unpaired bench plot results --format svg
    """
    from unpaired.bench.cells import read_folder
    from unpaired.bench.curves import all_curves
    from unpaired.errors import DataError
    from unpaired.report.curves import draw_curves

    pictures = all_curves(read_folder(results)[0])
    if not pictures:
        raise DataError(f"{results} must hold cells with something to draw: there is nothing.")
    folder = out if out is not None else results / "plots"
    for picture in pictures:
        name = re.sub(r"[^a-z0-9@]+", "-", f"{picture.title} {picture.y_label}".lower()).strip("-")
        typer.echo(draw_curves(picture, folder / f"{name}.{kind}"))


def _run(
    task: str,
    config: Path,
    out: Path | None,
    data: Path | None,
    jobs: int,
    methods: str | None,
    seeds: str | None,
    redo_stale: bool,
    confirm_stale: bool,
) -> None:
    from unpaired.bench.config import read_config, select
    from unpaired.errors import InputError

    chosen = read_config(config)
    if chosen.task != task:
        raise InputError(
            f'{config} is a configuration of task "{chosen.task}": run unpaired bench '
            f"{chosen.task} --config {config}."
        )
    if redo_stale and confirm_stale:
        raise InputError(
            "--redo-stale must be left out where --confirm-stale is given: cells that are not "
            "confirmed are run again by --redo-stale alone, afterwards."
        )
    chosen = select(chosen, methods, seeds)
    folder = out if out is not None else Path("runs") / config.stem
    if confirm_stale and not folder.is_dir():
        raise InputError(
            f"--confirm-stale needs finished cells: there is no folder {folder}. Run the benchmark "
            "first, or name its results by --out."
        )
    from unpaired.bench.run import run_bench  # heavy, so only for a configuration that is right

    root = None if data is None else str(data)
    if confirm_stale:
        from unpaired.bench.confirm import confirm_stale as confirm

        count = confirm(chosen, folder, data_root=root, tell=typer.echo)
        typer.echo(f"{count} cells confirmed; --redo-stale runs those that are still stale")
        return
    try:
        summary = run_bench(
            chosen, folder, data_root=root, n_jobs=jobs, redo_stale=redo_stale, tell=typer.echo
        )
    except KeyboardInterrupt:
        typer.echo(
            f"unpaired: stopped; finished cells are kept in {folder}. The same command goes on.",
            err=True,
        )
        raise typer.Exit(130) from None
    typer.echo(
        f"{summary.n_run} cells run, {summary.n_skipped} skipped, {len(summary.failures)} failed; "
        f"results in {folder}. Next: unpaired bench table {folder}"
    )
    if summary.failures:
        raise typer.Exit(1)
