"""The command line: arguments -> run -> report. No maths here."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated

import typer

from unpaired import __version__
from unpaired.commands import bench, classify, data, encode, info, model
from unpaired.commands.check import check
from unpaired.commands.console import Console, Quiet
from unpaired.commands.match import Out, Seed, match
from unpaired.commands.report import report
from unpaired.commands.translate import translate
from unpaired.errors import DataError, InputError, UnpairedError

app = typer.Typer(
    name="unpaired",
    help="Match two collections that were never paired.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help answers three times as fast
)
app.command()(match)
app.command()(model.fit)
app.command()(model.transform)
app.command()(model.retrieve)
app.command()(translate)
app.command()(check)
app.command()(report)
app.command()(encode.encode)
app.command()(classify.classify)
app.command()(classify.predict)
app.command()(info.info)
app.command("ls")(info.list_names)
app.add_typer(data.app)
app.add_typer(bench.app)


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
def demo(out: Out = Path("demo-report"), seed: Seed = 0, quiet: Quiet = False) -> None:
    """Name 16,000 photos with no label, then ask for the names of three groups; writes a report.

    Example: unpaired demo --out demo-report
    """
    from unpaired._files import check_writable
    from unpaired.commands.delivery import check_extra, check_unmixed, deliver

    console = Console(quiet)
    check_writable(out, ["report.html"], "--out")
    check_unmixed(out, "demo")
    for package in ("jinja2", "PIL"):
        check_extra(package, "report", "The demo's report")

    with console.progress("Loading the photos"):
        from unpaired.demo import run_demo
        from unpaired.report.html import write_report

    result = run_demo(seed, tell=console.tell, during=console.progress)
    with console.progress("Writing"):
        deliver(out, lambda folder: write_report(result, folder))
    console.tell()
    width = max(map(len, result.headline))
    for name, value in sorted(result.headline.items(), key=lambda item: -item[1]):
        console.tell(f"  {name:<{width}}  {value:6.1%}  {'#' * round(50 * value)}")
    console.tell()
    console.tell(result.notes[0])
    console.tell(f"Fits took {sum(result.seconds.values()):.0f} s.")
    console.tell(f"Report: {out / 'report.html'}")


def main() -> None:
    """Run the command line; mistakes print one sentence and exit 2, failed runs exit 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names that it cannot show are shown in ASCII
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except (InputError, DataError) as error:
        _say(str(error))
        sys.exit(2)
    except (UnpairedError, OSError) as error:
        _say(str(error))
        sys.exit(1)
    except ModuleNotFoundError as error:
        extra = info.extra_of(error.name or "")
        if extra is None:
            raise
        _say(f"this needs {error.name}: pip install 'unpaired[{extra}]'.")
        sys.exit(2)
    except MemoryError:
        _say("the memory of this machine is not enough. Match fewer rows, or reduce the columns.")
        sys.exit(1)
    except KeyboardInterrupt:
        _say("stopped; nothing was left half written.")
        sys.exit(130)
    except SystemExit as ended:  # typer turns Ctrl-C into an exit of its own
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
            _say("stopped; nothing was left half written.")
        raise


def _say(text: str) -> None:
    typer.echo(f"unpaired: {text}", err=True)
