"""A ResultTable as text, Markdown, CSV or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from unpaired.errors import InputError
from unpaired.types import ResultTable

LATEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
         "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}",
         "±": r"$\pm$", "→": r"$\to$", "->": r"$\to$", "–": "--"}  # fmt: skip


def format_table(table: ResultTable, kind: str = "text") -> str:
    """The table in one of the known formats, ending in a line break.

    Raises:
        InputError: when the format is not known.
    """
    if kind not in FORMATS:
        raise InputError(f'Unknown format "{kind}". Known: {", ".join(sorted(FORMATS))}.')
    return FORMATS[kind](table)


def _text(table: ResultTable) -> str:
    widths = [max(map(len, column)) for column in zip(table.header, *table.rows, strict=True)]

    def line(cells: tuple[str, ...]) -> str:
        padded = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    body = [line(row) for row in table.rows]
    return "\n".join([table.title, "", line(table.header), rule, *body, "", *table.notes]) + "\n"


def _markdown(table: ResultTable) -> str:
    def line(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "|".join("---" if i < 3 else "---:" for i in range(len(table.header))) + "|"
    body = [line(row) for row in table.rows]
    notes = [note for note in table.notes for note in (note, "")][:-1]
    return "\n".join([f"### {table.title}", "", line(table.header), rule, *body, "", *notes]) + "\n"


def _csv(table: ResultTable) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["table", *table.header])
    writer.writerows([table.title, *row] for row in table.rows)
    return buffer.getvalue()


def _latex(table: ResultTable) -> str:
    columns = "lll" + "r" * (len(table.header) - 3)

    def line(cells: tuple[str, ...]) -> str:
        return "    " + " & ".join(map(escape_latex, cells)) + r" \\"

    notes = escape_latex(" ".join(table.notes))
    return (
        "\n".join(
            [
                r"\begin{table}",
                r"  \centering",
                rf"  \caption{{{escape_latex(table.title)}. {notes}}}",
                rf"  \begin{{tabular}}{{{columns}}}",
                r"    \hline",
                line(table.header),
                r"    \hline",
                *(line(row) for row in table.rows),
                r"    \hline",
                r"  \end{tabular}",
                r"\end{table}",
            ]
        )
        + "\n"
    )


def escape_latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> escape_latex("20% ± 1")
    '20\\% $\\pm$ 1'
    """
    found, i = [], 0
    while i < len(text):
        step = 2 if text[i : i + 2] in LATEX else 1
        found.append(LATEX.get(text[i : i + step], text[i : i + step]))
        i += step
    return "".join(found)


FORMATS: dict[str, Callable[[ResultTable], str]] = {
    "csv": _csv,
    "latex": _latex,
    "markdown": _markdown,
    "text": _text,
}
