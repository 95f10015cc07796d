"""One self-contained HTML page that tells a finished run to a person."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from unpaired._files import atomic_writer
from unpaired.errors import InputError, extra
from unpaired.report import plots
from unpaired.report.match_page import match_view, verdict_view
from unpaired.report.numbers import decimals, duration, number, percent
from unpaired.report.reliability import reliability_view
from unpaired.results import Asked, Naming, RunResult
from unpaired.types import IntArray

PHOTOS_PER_CLASS = 24
PHOTOS_PER_REPORT = 500  # keeps the page below 4 MB; every class shows at least 3
LARGEST_CONFUSION_MATRIX = 30

# Words in the name of a headline number that make it a yardstick rather than a result.
_YARDSTICKS = ("chance", "oracle", "baseline", "k-means", "kmeans", "random", "upper bound")

# Title of a chart, the keys of a history it draws, and the range of its y axis when fixed.
_CHARTS: tuple[tuple[str, tuple[str, ...], tuple[float, float] | None], ...] = (
    ("Precision and recall of the matching", ("precision", "recall"), (0.0, 1.0)),
    ("Loss", ("loss", "reconstruction_x", "reconstruction_y"), None),
    ("Dependence", ("dependence",), None),
    ("Changes of the match", ("changed",), None),
)


def write_report(result: RunResult, out_dir: str | os.PathLike[str]) -> Path:
    """Return the path of ``report.html``, written into ``out_dir`` as one self-contained page.

    Raises InputError when the arrays of ``result`` do not fit together.
    """
    path = Path(out_dir) / "report.html"
    page = render_report(result)
    with atomic_writer(path) as handle:
        handle.write(page)
    return path


def render_report(result: RunResult) -> str:
    """Return the page as text; the same ``result`` gives the same text."""
    with extra("report"):
        from jinja2 import Environment, FunctionLoader, StrictUndefined
        from markupsafe import Markup

    environment = Environment(
        loader=FunctionLoader(_beside),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for reading in (number, decimals, percent, duration):
        environment.filters[reading.__name__] = reading
    view = _page(result)
    script = _beside("rows.js")
    view["style"] = Markup(_beside("page.css"))
    view["script"] = Markup(script) if result.match is not None else None
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    view["script_source"] = f"'sha256-{digest}'" if result.match is not None else "'none'"
    page = environment.get_template("template.html.j2").render(view)
    return page.encode("utf-8", "replace").decode("utf-8")  # file names may hold lone surrogates


def _beside(name: str) -> str:
    """Return a file of this folder: a template, the style, the script."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _page(result: RunResult) -> dict[str, Any]:
    """Return everything the template shows."""
    n_groups = sum(len(naming.class_names) for naming in result.namings)
    limit = min(PHOTOS_PER_CLASS, max(3, PHOTOS_PER_REPORT // max(n_groups, 1)))
    # In a naming run a number between 0 and 1 is a share of photos and becomes a bar.
    shares = {name for name, v in result.headline.items() if result.namings and 0.0 <= v <= 1.0}
    match = result.match
    told = [] if match is None else match.summary().splitlines()  # stands in its own section
    return {
        "title": result.title,
        "bars": [
            (name, value, any(word in name.lower() for word in _YARDSTICKS))
            for name, value in result.headline.items()
            if name in shares
        ],
        "figures": [item for item in result.headline.items() if item[0] not in shares],
        "notes": [note for note in result.notes if match is None or note not in told],
        "namings": [
            _naming(naming, result.images, limit, result.ids_x) for naming in result.namings
        ],
        "verdict": verdict_view(result),
        "match": None if match is None else match_view(result, match),
        "charts": _charts(result.history),
        "settings": {name: _plain(value) for name, value in result.settings.items()},
        "seed": result.seed,
        "versions": result.versions,
        "seconds": result.seconds,
    }


def _plain(value: Any) -> str:
    """Return a setting as text that does not depend on hash order."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if isinstance(value, list | tuple):
        return ", ".join(_plain(inner) for inner in value) or "none"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 2000 else text[:2000] + " \N{HORIZONTAL ELLIPSIS}"


def _charts(history: list[dict[str, float]]) -> list[dict[str, Any]]:
    """Return the charts whose keys occur in ``history`` with at least one finite value."""
    from markupsafe import Markup

    charts = []
    for title, keys, y_range in _CHARTS:
        series, last = {}, {}
        for key in keys:
            points = [(s.get("step", i), s[key]) for i, s in enumerate(history) if key in s]
            finite = [y for _, y in points if math.isfinite(y)]
            if finite:
                label = key.replace("reconstruction_", "reconstruction of ")
                series[label], last[label] = points, finite[-1]
        if series:
            svg = plots.line_chart(series, title=title, y_range=y_range)
            charts.append({"title": title, "svg": Markup(svg), "legend": list(last.items())})
    return charts


def _naming(naming: Naming, images: Any, limit: int, ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return what the page shows of one naming."""
    _check_naming(naming, images)
    ids = ids if len(ids) == len(naming.labels) else ()  # those of a match beside it are others
    labels, truth = naming.labels, naming.truth
    known = np.zeros(len(labels), dtype=bool) if truth is None else truth >= 0
    scored = _scores(naming, truth, known) if truth is not None and known.any() else None
    classes = [*range(len(naming.class_names)), *([-1] if (labels < 0).any() else [])]
    return {
        "title": naming.title,
        "has_files": bool(ids),
        "n": len(labels),
        "n_classes": len(naming.class_names),
        "accuracy": float((labels == truth)[known].mean()) if scored else math.nan,
        "n_known": int(known.sum()),
        "verdict": naming.verdict,
        "scored": scored,
        "reliability": None if truth is None else _reliability(naming, truth),
        "groups": [_group(naming, images, c, limit, known, ids) for c in classes],
        "asked": [_asked(group) for group in naming.asked],
        "charts": _charts(naming.history),
    }


def _asked(group: Asked) -> dict[str, Any]:
    """Return what the page shows of a group that it asks about."""
    return {
        "size": group.size,
        "names": group.names,
        "photos": [
            {"file": file, "uri": None if image is None else plots.photo_uri(image)}
            for file, image in zip_longest(group.files, group.images)
        ],
    }


def _reliability(naming: Naming, truth: IntArray) -> dict[str, Any] | None:
    rows = (truth >= 0) & (naming.labels >= 0)
    return reliability_view(naming.confidence[rows], naming.labels[rows] == truth[rows])


def _check_naming(naming: Naming, images: Any) -> None:
    """Raise InputError when the parts of a naming do not fit together."""
    n, n_classes = len(naming.labels), len(naming.class_names)
    lengths = {"confidence": naming.confidence, "truth": naming.truth}
    for name, value in lengths.items():
        if value is not None and len(value) != n:
            raise InputError(
                f"{name} must have one entry per label in naming {naming.title!r}: it has "
                f"{len(value)}, labels {n}. Select the same rows for both."
            )
    if images is not None and len(images) > n:
        raise InputError(
            f"images must be of the rows of naming {naming.title!r}: there are {len(images)}, and "
            f"{n} labels. Select the same rows for both."
        )
    if images is not None and (images.ndim != 4 or images.shape[3] != 3 or images.dtype != "uint8"):
        raise InputError(
            "images must be uint8 of shape (n, height, width, 3): got "
            f"{images.dtype} of shape {images.shape}. Repeat a grey channel three times."
        )
    for name, classes in (("labels", naming.labels), ("truth", naming.truth)):
        if classes is not None and classes.size and classes.max() >= n_classes:
            raise InputError(
                f"{name} must be below {n_classes}, the number of class names of naming "
                f"{naming.title!r}: got {classes.max()}. Pass a name for every class."
            )


def _group(
    naming: Naming, images: Any, c: int, limit: int, known: Any, ids: Sequence[str]
) -> dict[str, Any]:
    """Return the photos given name ``c``, surest first; of many, the surest and the least sure."""
    rows = np.flatnonzero(naming.labels == c if c >= 0 else naming.labels < 0)
    order = np.argsort(-np.nan_to_num(naming.confidence[rows], nan=-1.0), kind="stable")
    rows = rows[order]
    seen = rows if images is None else rows[rows < len(images)]
    n_last = limit // 4 if len(seen) > limit else 0
    n_first = min(limit - n_last, len(seen))
    shown = [*seen[:n_first], *seen[len(seen) - n_last :]]

    def photo(i: int) -> dict[str, Any]:
        truth = None if naming.truth is None or not known[i] else naming.truth[i]
        return {
            "row": int(i),
            "file": ids[i] if ids else "",
            "confidence": float(naming.confidence[i]),
            "uri": None if images is None else plots.photo_uri(images[i]),
            "truth": None if truth is None else naming.class_names[truth],
            "wrong": truth is not None and truth != c,
        }

    photos = [photo(int(i)) for i in shown]
    judged = rows[known[rows]]
    right = math.nan
    if naming.truth is not None and judged.size and c >= 0:
        right = float((naming.truth[judged] == c).mean())
    return {
        "name": naming.class_names[c] if c >= 0 else "(left unnamed)",
        "count": len(rows),
        "right": right,
        "first": photos[:n_first],
        "last": photos[n_first:],
        "n_between": len(rows) - len(shown),
    }


def _scores(naming: Naming, truth: IntArray, known: Any) -> dict[str, Any]:
    """Return the confusion matrix and what follows from it, over the rows of known truth."""
    n_classes = len(naming.class_names)
    given = np.where(naming.labels < 0, n_classes, naming.labels)[known]
    confusion = np.zeros((n_classes, n_classes + 1), dtype=np.int64)
    np.add.at(confusion, (truth[known], given), 1)
    right, of_class, of_name = np.diag(confusion), confusion.sum(1), confusion.sum(0)[:n_classes]
    with np.errstate(invalid="ignore"):
        precision, recall = right / of_name, right / of_class
    n_columns = n_classes + int(confusion[:, -1].any())
    columns = [*naming.class_names, "(left unnamed)"][:n_columns]
    wrong = confusion[:, :n_columns].copy()
    np.fill_diagonal(wrong, 0)
    largest = np.argsort(-wrong, axis=None, kind="stable")[:20]
    pairs = [divmod(int(k), n_columns) for k in largest]
    return {
        "per_class": list(
            zip(naming.class_names, of_name, of_class, precision, recall, strict=True)
        ),
        "mean_precision": _mean(precision),
        "mean_recall": _mean(recall),
        "columns": columns,
        "confusion": confusion[:, :n_columns].tolist(),
        "shares": (confusion / np.maximum(of_class, 1)[:, None]).tolist(),
        "shows_matrix": n_classes <= LARGEST_CONFUSION_MATRIX,
        "mistakes": [
            (naming.class_names[i], columns[j], int(wrong[i, j])) for i, j in pairs if wrong[i, j]
        ],
    }


def _mean(values: Any) -> float:
    kept = values[np.isfinite(values)]
    return float(kept.mean()) if kept.size else math.nan
