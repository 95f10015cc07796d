"""``unpaired classify`` and ``predict``: a pile of photos and a list of names in, labels out."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unpaired.commands.console import Console, Json, Quiet, as_typed, to_json
from unpaired.commands.encode import Cache, check_cache, check_used, shorten
from unpaired.commands.match import Out, Seed
from unpaired.commands.pile import NAME_FILES, Collection, read_classes, read_labels, read_photos
from unpaired.errors import InputError

if TYPE_CHECKING:
    from unpaired.models.classifier import UnsupervisedClassifier
    from unpaired.results import RunResult

OUTPUTS = ("labels.csv", "report.html", "run.json")
THUMBNAIL, LARGER = 64, 96
"""Pixels of a photo under its name, and of one that is asked about."""
MAX_THUMBNAILS = 2000

Photos = Annotated[
    Path, typer.Argument(metavar="PHOTOS", help="Folder of photos, or a file of their vectors.")
]


def classify(
    photos: Photos,
    names: Annotated[
        Path,
        typer.Argument(
            metavar="NAMES", help="Text file: a line per name, or name<TAB>description; or vectors."
        ),
    ],
    labels: Annotated[
        Path | None, typer.Option(help="Known ones: CSV of file and name, as labels.csv.")
    ] = None,
    encoder: Annotated[
        str | None, typer.Option(help="For photos; `unpaired ls encoders` tells which there are.")
    ] = None,
    text_encoder: Annotated[
        str | None, typer.Option(help="For names; several with commas between them.")
    ] = None,
    cache: Cache = None,
    out: Out = Path("named"),
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Name photos that nobody labelled: labels.csv, report.html, model/ and run.json.

    Example: unpaired classify holiday names.txt --out named
    """
    from unpaired._files import check_apart, check_replaceable, check_writable
    from unpaired.commands.delivery import (
        check_extra,
        check_unmixed,
        deliver,
        file_digest,
        run_record,
        verdict_record,
    )

    console = Console(quiet, as_json)
    check_writable(out, OUTPUTS, "--out")
    check_unmixed(out, "classify")
    check_apart([out / name for name in OUTPUTS], [photos, names, labels], "--out")
    check_cache(cache)
    check_replaceable(out / "model", ("arrays.safetensors", "config.json"), "--out")
    check_extra("jinja2", "report", "Writing report.html")
    if not photos.is_dir():
        from unpaired.files.reading import check_exists, split_part

        check_exists(split_part(photos)[0])
    encodes, spelled = photos.is_dir(), names.suffix.lower() in NAME_FILES
    classes, class_vectors, unknown = read_classes(console, names, text_encoder, cache)
    check_used("--text-encoder", text_encoder, spelled, "NAMES is a table of vectors")
    if unknown:
        console.note(f"{len(unknown):,} words of NAMES have no vector: {shorten(unknown)}.")
    rows = read_photos(console, photos, encoder, cache)
    check_used("--encoder", encoder, encodes, "PHOTOS is a file of vectors")
    check_used("--cache", cache, encodes or spelled, "nothing is encoded")
    if len(rows.names) < 2 * len(classes):
        raise InputError(
            f"PHOTOS must be at least two for each of the {len(classes)} names, and better a "
            f"hundred: there are {len(rows.names)}. Add photos, or leave names out."
        )
    known = None if labels is None else read_labels(labels, rows.names, classes, console.note)

    seconds: dict[str, float] = {}
    with console.progress("Grouping and naming"):
        from unpaired.experiment import timed
        from unpaired.models.classifier import UnsupervisedClassifier
        from unpaired.report.html import write_report

        model = UnsupervisedClassifier(random_state=seed)
        with timed(seconds, "grouping and naming"), as_typed():
            model.fit(rows.vectors, class_vectors, known, classes=classes)
        model.encoder_ = rows.encoder
    options = {
        "labels": labels and str(labels),
        "encoder": encoder,
        "text_encoder": text_encoder,
        "cache": cache and str(cache),
    }
    questions = model.suggest(3)
    record = run_record(
        "classify",
        [str(photos), str(names)],
        options,
        seed,
        photos=len(rows.names),
        names=list(classes),
        skipped=[list(item) for item in rows.skipped],
        unknown_words=unknown,
        verdict=verdict_record(model.verdict_),
        least_certain=[
            {
                "group": question.group,
                "photos": question.size,
                "examples": [rows.names[row] for row in question.rows],
                "likeliest": question.classes[:3].tolist(),
            }
            for question in questions
        ],
        notes=list(model.notes_),
    )
    shown = {"photos": str(photos), "names": str(names), **options, "encoder": rows.encoder}
    result = describe(model, rows, shown, seed, known is not None, questions)
    result = replace(result, advice=advice_on(questions, rows.names), seconds=seconds)

    def write(folder: Path) -> None:
        model.save(folder / "model")
        write_labels(folder / "labels.csv", rows.names, model.labels_, model.confidence_)
        record["outputs"] = {"labels.csv": file_digest(folder / "labels.csv")}
        write_report(result, folder)
        (folder / "run.json").write_text(to_json(record), encoding="utf-8")

    with console.progress("Writing"):
        deliver(out, write)
    console.tell(f"verdict: {model.verdict_}")
    console.tell(f"{len(rows.names):,} photos named: {out / 'labels.csv'}")
    console.tell(f"Report: {out / 'report.html'}")
    for question in questions:
        examples = ", ".join(rows.names[row] for row in question.rows[:3])
        likely = ", ".join(question.classes[:3].tolist())
        console.tell(f"Uncertain: {question.size:,} photos such as {examples} ({likely}?)")
    console.tell(
        "To settle those, write a line file,name for some of each, and for a few photos of every "
        "other name, and give --labels."
    )
    console.finish(record)


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder model/ of classify.")],
    photos: Photos,
    cache: Cache = None,
    out: Annotated[Path, typer.Option("--out", help="File: .csv.")] = Path("labels.csv"),
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Name new photos by a model that classify wrote: file, name, confidence.

    Example: unpaired predict named/model new-photos --out new-labels.csv
    """
    from unpaired.commands.model import check_file, model_folder

    console = Console(quiet, as_json)
    check_file(out, photos, kinds=(".csv",))
    check_used("--cache", cache, photos.is_dir(), "PHOTOS is a file of vectors")
    check_cache(cache)
    with console.progress("Loading the model"):
        from unpaired.loading import load

        fitted: Any = load(model_folder(model))
    if not hasattr(fitted, "name_certainty_"):
        raise InputError(
            f"MODEL must be a classifier: {model} holds a {type(fitted).__name__}. "
            "Make one with unpaired classify."
        )
    if photos.is_dir() and fitted.encoder_ is None:
        raise InputError(
            f"PHOTOS must be a file of vectors, as {model} was fitted on one. Make it with "
            "unpaired encode and the encoder used then."
        )
    rows = read_photos(console, photos, fitted.encoder_, cache)
    with console.progress("Naming"), as_typed():
        shares = fitted.predict_proba(rows.vectors)
        best = shares.argmax(1)
        sure = shares.max(1) * fitted.name_certainty_[best]
    write_labels(out, rows.names, fitted.classes_[best], sure)
    console.tell(f"{len(rows.names):,} photos named: {out}")
    skipped = [list(item) for item in rows.skipped]
    console.finish({"photos": len(rows.names), "skipped": skipped, "out": str(out)})


def write_labels(file: Path, names: Sequence[str], labels: Any, confidence: Any) -> None:
    """Write one line per photo: file, name, confidence."""
    from unpaired._files import atomic_writer
    from unpaired.files.pairs import plain_cell

    with atomic_writer(file) as handle:
        writer = csv.writer(handle)
        writer.writerow(["file", "name", "confidence"])
        for photo, label, sure in zip(names, labels.tolist(), confidence.tolist(), strict=True):
            writer.writerow([plain_cell(photo), plain_cell(label), f"{sure:.4f}"])


def advice_on(questions: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """What to do next: the groups to look at, least certain name first, and how to say it."""
    look = [
        f"look at the {question.size:,} photos such as {names[question.rows[0]]}: are they "
        f"{' or '.join(question.classes[:3].tolist())}?"
        for question in questions
    ]
    return (
        *look,
        "write a line file,name for some of them, and for a few photos of every other name, and "
        "run again with --labels",
    )


def describe(
    model: UnsupervisedClassifier,
    rows: Collection,
    options: dict[str, Any],
    seed: int,
    taught: bool,
    questions: Sequence[Any] = (),
) -> RunResult:
    """What the report tells; of many photos a random two thousand are shown."""
    import numpy as np

    from unpaired.experiment import package_versions
    from unpaired.results import Asked, Naming, RunResult

    order = np.arange(len(rows.names))
    images = None
    if rows.folder is not None:
        if len(order) > MAX_THUMBNAILS:
            order = np.random.default_rng(seed).permutation(len(order))
        images = np.stack(rows.photos(order[:MAX_THUMBNAILS].tolist(), THUMBNAIL))
    asked = [
        Asked(
            question.size,
            tuple(question.classes[:3].tolist()),
            tuple(rows.names[row] for row in question.rows),
            tuple(rows.photos(question.rows.tolist(), LARGER)),
        )
        for question in questions
    ]
    naming = Naming(
        title="With the labels given" if taught else "No labels",
        class_names=tuple(model.classes_.tolist()),
        labels=model.match_.partner[order],
        confidence=model.confidence_[order],
        history=[dict(step) for step in model.history_],
        verdict=model.verdict_,
        asked=tuple(asked),
    )
    skipped = [f"Skipped: {name}, {reason}." for name, reason in rows.skipped[:50]]
    return RunResult(
        title=f"{len(rows.names):,} photos, {len(model.classes_)} names",
        headline={"photos": len(rows.names), "names": len(model.classes_)},
        settings={name: value for name, value in options.items() if value is not None},
        seed=seed,
        versions=package_versions(),
        seconds={},
        namings=(naming,),
        images=images,
        ids_x=tuple(rows.names[row] for row in order),
        notes=(
            "The names were found by geometry: when one is wrong it is usually wrong for a whole "
            "group. Look at each group below; a few lines in --labels mend it.",
            *model.notes_,
            *skipped,
        ),
    )
