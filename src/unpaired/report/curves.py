"""Curves drawn to picture files, with the spread over seeds as a band."""

from __future__ import annotations

import io
import os
from pathlib import Path

from unpaired._files import atomic_writer
from unpaired.errors import InputError, extra
from unpaired.results import Curves

KINDS = ("png", "svg", "pdf")
MARKS = "os^Dvp*hX<>d"


def draw_curves(curves: Curves, path: str | os.PathLike[str]) -> Path:
    """Draw one picture to ``path`` (png, svg or pdf) and return the path.

    Raises:
        InputError: when there is no line, or the ending is of another kind.
    """
    with extra("report"):
        from matplotlib import colormaps
        from matplotlib.figure import Figure

    file = Path(path)
    kind = file.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        raise InputError(f'path must end in {", ".join(KINDS)}: got "{file.name}".')
    if not curves.lines:
        raise InputError(f'Curves "{curves.title}" must have at least one line: there is none.')
    height = max(4.5, 0.2 * len(curves.lines) + 0.5)  # the legend must fit
    figure = Figure(figsize=(7.5, height), dpi=120, layout="constrained")
    axes = figure.subplots()
    colours = colormaps["tab20"].colors  # type: ignore[attr-defined]
    for i, (name, points) in enumerate(curves.lines.items()):
        x, mean, spread = (list(column) for column in zip(*points, strict=True))
        colour = colours[(2 * i + i // 10) % 20]
        style = {"color": colour, "marker": MARKS[i % len(MARKS)], "markersize": 4}
        dashed = "--" if " sup" in name else "-"
        axes.plot(x, mean, dashed, label=name, linewidth=1.4, **style)
        low = [m - s for m, s in zip(mean, spread, strict=True)]
        high = [m + s for m, s in zip(mean, spread, strict=True)]
        axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel=curves.x_label, ylabel=curves.y_label)
    axes.set_title(curves.title, fontsize=10, parse_math=False)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    buffer = io.BytesIO()
    no_date = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(buffer, format=kind, metadata=no_date[kind])
    with atomic_writer(file) as handle:
        handle.buffer.write(buffer.getvalue())
    return file
