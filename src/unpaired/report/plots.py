"""Pictures for the report: inline SVG charts, photo thumbnails and the overview picture."""

from __future__ import annotations

import base64
import io
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import atomic_writer
from unpaired.errors import InputError, extra
from unpaired.report.svg import axes, axis_labels, nice_ticks, scale, svg
from unpaired.results import Naming, RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]

_MAX_POINTS = 400
_LARGEST_THUMBNAIL = 96
_INK, _SOFT, _WRONG = "#1c2027", "#575e69", "#b3261e"


def line_chart(
    series: Mapping[str, Points],
    *,
    title: str,
    x_label: str = "step",
    y_label: str = "",
    y_range: tuple[float, float] | None = None,
) -> str:
    """Return an inline SVG line chart of ``series``, name -> (x, y) points.

    Values that are not finite break the line. Colours and dashes come from the page's own style
    (classes ``s0``, ``s1``, ...), so that one chart serves light and dark pages.
    """
    thinned = {name: _thin(points) for name, points in series.items()}
    finite = [p for points in thinned.values() for p in points if _is_finite(p)]
    x_low, x_high = _span([x for x, _ in finite])
    y_low, y_high = y_range or _span([y for _, y in finite], pad=0.06)
    to_x, to_y = scale(x_low, x_high, y_low, y_high)

    parts = axes(to_x, to_y, nice_ticks(x_low, x_high), nice_ticks(y_low, y_high))
    parts += axis_labels(x_label, y_label)
    ends = []
    for i, (name, points) in enumerate(thinned.items()):
        path = _path(points, to_x, to_y)
        if not path:
            continue
        parts.append(f'<path class="line s{i % 4}" d="{path}"/>')
        x_end, y_end = [p for p in points if _is_finite(p)][-1]
        parts.append(
            f'<circle class="dot s{i % 4}" cx="{to_x(x_end):.1f}" cy="{to_y(y_end):.1f}" r="3.5"/>'
        )
        ends.append(f"{name} ends at {y_end:.3g}")
    return svg(parts, f"{title}: {'; '.join(ends) or 'nothing to draw'}")


def histogram(values: NDArray[Any], *, title: str, x_label: str, n_bins: int = 20) -> str:
    """Return an inline SVG histogram of ``values`` over [0, 1]; what is not finite is left out."""
    kept = np.asarray(values, dtype=float)
    kept = np.clip(kept[np.isfinite(kept)], 0.0, 1.0)
    counts, edges = np.histogram(kept, bins=n_bins, range=(0.0, 1.0))
    top = float(max(counts.max(initial=0), 1)) * 1.04
    to_x, to_y = scale(0.0, 1.0, 0.0, top)
    y_ticks = [t for t in nice_ticks(0.0, top, 4) if t == int(t)]
    parts = axes(to_x, to_y, nice_ticks(0.0, 1.0), y_ticks) + axis_labels(x_label, "rows")
    for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True):
        x, y = to_x(float(left)) + 1, to_y(count)
        width, height = to_x(float(right)) - x, to_y(0.0) - y
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}">'
            f"<title>{count} from {left:.2f} to {right:.2f}</title></rect>"
        )
    median = f"median {np.median(kept):.2f}" if kept.size else "no values"
    return svg(parts, f"{title}: {kept.size} rows, {median}")


def photo_uri(image: NDArray[np.uint8]) -> str:
    """Return one (h, w, 3) thumbnail as a data URI, made smaller when above 96 px.

    WebP, at half the size of JPEG; JPEG where this Pillow knows no WebP.
    """
    with extra("report"):
        from PIL import Image, features

    picture = Image.fromarray(np.ascontiguousarray(image))
    picture.thumbnail((_LARGEST_THUMBNAIL, _LARGEST_THUMBNAIL))
    buffer = io.BytesIO()
    kind = "webp" if features.check("webp") else "jpeg"
    picture.save(buffer, format=kind, quality=80)
    return f"data:image/{kind};base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def save_overview_png(
    result: RunResult,
    path: str | os.PathLike[str],
    *,
    photos_per_class: int = 10,
    max_classes: int = 10,
) -> Path:
    """Write one row of the most confident photos per given name, and return the path.

    Shows the naming whose title speaks of "no label", else the first one. Photos that got a wrong
    name are framed and crossed when the truth is known.

    Raises InputError when ``result`` has no naming or no images.
    """
    with extra("report"):
        from matplotlib.figure import Figure

    if not result.namings or result.images is None:
        raise InputError(
            "result must hold a naming and its images to draw an overview: it has "
            f"{len(result.namings)} namings and {'no' if result.images is None else 'some'} "
            "images. Use write_report, which needs neither."
        )
    titled = [n for n in result.namings if "no label" in n.title.lower()]
    naming = (titled or list(result.namings))[0]
    given = [c for c in range(len(naming.class_names)) if (naming.labels == c).any()][:max_classes]

    cell, name_space, share_space, head, foot = 70, 150, 80, 84, 44  # pixels
    width = name_space + cell * photos_per_class + share_space
    height = head + cell * max(len(given), 1) + foot
    paper = np.full((height, width, 3), 255, dtype=np.uint8)
    figure = Figure(figsize=(width / 100, height / 100), dpi=100, facecolor="white")
    paint = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    paint.set_axis_off()

    _label(paint, 20, 28, naming.title, size=15, weight="bold")
    notes = f"The {photos_per_class} most confident photos under each name they were given."
    if naming.truth is not None and (known := naming.truth >= 0).any():
        accuracy = float((naming.labels == naming.truth)[known].mean())
        notes = f"{accuracy:.1%} of {known.sum():,} photos got the right name. " + notes
        legend = "Framed and crossed: wrong name. At right: share right among all so named."
        _label(paint, 20, height - 20, legend, size=9.5, color=_SOFT)
    _label(paint, 20, 56, notes, size=10.5, color=_SOFT)
    for row, c in enumerate(given):
        top = head + row * cell
        _overview_row(paint, paper, naming, result.images, c, top, name_space, photos_per_class)
    paint.imshow(paper, extent=(0, width, height, 0), interpolation="none", aspect="auto")
    paint.set(xlim=(0, width), ylim=(height, 0))

    buffer = io.BytesIO()
    with warnings.catch_warnings():  # a script the font lacks is drawn as boxes, not refused
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="png", metadata={"Software": None})
    with atomic_writer(path) as handle:
        handle.buffer.write(buffer.getvalue())
    return Path(path)


def _overview_row(
    axes: Axes,
    paper: NDArray[np.uint8],
    naming: Naming,
    images: NDArray[np.uint8],
    c: int,
    top: int,
    left: int,
    n_photos: int,
) -> None:
    """Draw one name, its most confident photos and the share of all so named that is right."""
    with extra("report"):
        from PIL import Image

    rows = np.flatnonzero(naming.labels == c)
    surest = rows[np.argsort(-np.nan_to_num(naming.confidence[rows], nan=-1.0), kind="stable")]
    surest = surest[surest < len(images)]
    _label(axes, left - 14, top + 34, _shorten(naming.class_names[c], 15), size=11.5, ha="right")
    for column, i in enumerate(surest[:n_photos]):
        x0, x1, y0, y1 = left + 70 * column, left + 70 * column + 64, top, top + 64
        photo = Image.fromarray(np.ascontiguousarray(images[i]))
        paper[y0:y1, x0:x1] = np.asarray(photo.resize((64, 64), Image.Resampling.BICUBIC))
        if naming.truth is not None and naming.truth[i] >= 0 and naming.truth[i] != c:
            box = [x0 + 1, x1 - 1, x1 - 1, x0 + 1, x0 + 1], [y0 + 1, y0 + 1, y1 - 1, y1 - 1, y0 + 1]
            axes.plot(*box, color=_WRONG, lw=2.2, solid_joinstyle="miter")
            axes.fill([x1 - 18, x1, x1, x1 - 18], [y0, y0, y0 + 18, y0 + 18], color=_WRONG, lw=0)
            for ends in ([y0 + 4.5, y0 + 13.5], [y0 + 13.5, y0 + 4.5]):
                axes.plot([x1 - 13.5, x1 - 4.5], ends, color="white", lw=1.8)
    if naming.truth is not None and (known := naming.truth[rows] >= 0).any():
        share, right = float((naming.truth[rows][known] == c).mean()), left + 70 * n_photos + 10
        _label(axes, right, top + 24, f"{share:.0%}", size=11.5, weight="bold")
        _label(axes, right, top + 45, f"of {len(rows):,}", size=9, color=_SOFT)


def _label(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write ``text`` literally, so that a dollar sign starts no formula."""
    style = {"va": "center", "color": _INK, **style}
    axes.text(x, y, text, parse_math=False, **style)


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _is_finite(point: tuple[float, float]) -> bool:
    return math.isfinite(point[0]) and math.isfinite(point[1])


def _thin(points: Points) -> Points:
    """Return at most 400 of the points, evenly spaced, the last one always among them."""
    if len(points) <= _MAX_POINTS:
        return points
    kept = np.unique(np.linspace(0, len(points) - 1, _MAX_POINTS).round().astype(int))
    return [points[i] for i in kept]


def _span(values: Sequence[float], pad: float = 0.0) -> tuple[float, float]:
    """Return the range of the values, widened by ``pad`` and never empty."""
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        half = 0.5 * abs(low) if low else 0.5
        return low - half, high + half
    return low - pad * (high - low), high + pad * (high - low)


def _path(points: Points, to_x: Any, to_y: Any) -> str:
    """Return the ``d`` of a line through the points, with a gap where one is not finite."""
    pieces, pen_down = [], False
    for point in points:
        if not _is_finite(point):
            pen_down = False
            continue
        pieces.append(f"{'L' if pen_down else 'M'}{to_x(point[0]):.1f} {to_y(point[1]):.1f}")
        pen_down = True
    return "".join(pieces)
