"""A ResultTable as text, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from unpaired.errors import InputError
from unpaired.results import ResultTable

N_NAMES = 3
"""Columns that hold names and stand left; figures stand right."""
SYMBOLS = {"±": r"$\pm$", "→": r"$\to$", "–": "--"}
"""What LaTeX has its own commands for."""


def format_table(table: ResultTable, kind: str = "text") -> str:
    """The table in one of the known formats, ending in a line break.

    Raises:
        InputError: when the format is not known.
    """
    if kind not in FORMATS:
        raise InputError(f'Unknown format "{kind}". Known: {", ".join(sorted(FORMATS))}.')
    return FORMATS[kind](table)


def _text(table: ResultTable) -> str:
    body = _laid_out(table, "simple", str)
    return "\n".join([table.title, "", body, "", *table.notes]) + "\n"


def _markdown(table: ResultTable) -> str:
    body = _laid_out(table, "pipe", lambda cell: cell.replace("|", "\\|"))
    return "\n\n".join([f"### {table.title}", body, *table.notes]) + "\n"


def _latex(table: ResultTable) -> str:
    caption = escape_latex(" ".join([f"{table.title}.", *table.notes]))
    body = _laid_out(table, "latex_raw", escape_latex)
    parts = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", body, r"\end{table}"]
    return "\n".join(parts) + "\n"


def _csv(table: ResultTable) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["table", *table.header])
    writer.writerows([table.title, *row] for row in table.rows)
    return buffer.getvalue()


def _laid_out(table: ResultTable, layout: str, escape: Callable[[str], str]) -> str:
    """Header and rows by tabulate, which escapes no bars in Markdown and no symbols in LaTeX."""
    from tabulate import tabulate

    sides = ["left" if i < N_NAMES else "right" for i in range(len(table.header))]
    return tabulate(
        [list(map(escape, row)) for row in table.rows],
        headers=list(map(escape, table.header)),
        tablefmt=layout,
        colalign=sides if table.rows else None,
        disable_numparse=True,  # figures are text already: "0.50" must not become 0.5
    )


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> escape_latex("20% ± 1")
    '20\\% $\\pm$ 1'
    """
    from tabulate import LATEX_ESCAPE_RULES

    rules: dict[str, str | int | None] = {**LATEX_ESCAPE_RULES, **SYMBOLS}
    return text.translate(str.maketrans(rules))


FORMATS: dict[str, Callable[[ResultTable], str]] = {
    "csv": _csv,
    "latex": _latex,
    "markdown": _markdown,
    "text": _text,
}
