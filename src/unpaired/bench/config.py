"""What a benchmark runs, read from a TOML file, and the cells it consists of."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from unpaired._checks import check_choice
from unpaired.errors import DataError, InputError

TASKS: dict[str, tuple[str, ...]] = {
    "retrieval": ("sup", "semi"),
    "ucl": ("inductive", "transductive", "zero-shot"),
    "matching": ("sup", "semi"),
}
COLUMNS = {
    "retrieval": ("x->y R@1", "x->y R@5", "y->x R@1", "y->x R@5", "csls x->y R@1", "csls y->x R@1"),
    "ucl": ("svm embedding accuracy", "nearest accuracy", "svm accuracy", "precision", "recall"),
    "matching": ("x->y R@1", "csls x->y R@1", "foscttm", "precision"),
}
FIELDS = {"title", "task", "rows", "settings", "seeds", "published", "columns", "note",
          "data", "options", "methods"}  # fmt: skip
METHOD_FIELDS = {"name", "label", "params", "fit", "settings", "rows", "seeds", "same"}


@dataclass(frozen=True)
class MethodSpec:
    """One method of a benchmark: its name in the registry (or module:Class) and its settings."""

    name: str
    label: str
    params: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)
    """Further arguments of its ``fit``, such as a start."""
    settings: tuple[str, ...] = ()
    """The settings it takes part in; empty means all."""
    rows: tuple[str, ...] = ()
    """The rows it takes part in; empty means all. For a slow method."""
    seeds: tuple[int, ...] = ()
    """The seeds it takes part in; empty means all."""
    same: dict[str, str] = field(default_factory=dict)
    """Setting -> the label of a method that is the same there by construction, and run instead."""

    def takes_part(self, setting: str, row: str, seed: int) -> bool:
        """Whether the method has a cell there."""
        return (
            setting not in self.same
            and (not self.settings or setting in self.settings)
            and (not self.rows or row in self.rows)
            and (not self.seeds or seed in self.seeds)
        )


@dataclass(frozen=True)
class Cell:
    """One fit: a method, a setting, a row of the table and a seed."""

    task: str
    data: dict[str, Any]
    options: dict[str, Any]
    method: MethodSpec
    setting: str
    row: str
    seed: int

    @property
    def key(self) -> dict[str, Any]:
        """All that the result depends on, as plain values."""
        method = {"name": self.method.name, "params": self.method.params}
        if self.method.fit:
            method["fit"] = self.method.fit
        return {**asdict(self), "method": method}


@dataclass(frozen=True)
class BenchConfig:
    """A benchmark: what the TOML file says."""

    title: str
    task: str
    data: dict[str, Any]
    methods: tuple[MethodSpec, ...]
    rows: tuple[str, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    columns: tuple[str, ...]
    options: dict[str, Any]
    published: tuple[str, ...] = ()
    """Published tables to print beside, see published.toml."""
    note: str = ""
    same: tuple[tuple[str, str, str], ...] = ()
    """Setting, label and label of the method that is the same there: of all methods of the file."""

    def cells(self) -> Iterator[Cell]:
        """All cells, seed by seed, so that a run that is stopped has whole rounds to show."""
        for seed in self.seeds:
            for row in self.rows:
                for setting in self.settings:
                    for method in self.methods:
                        if _makes_sense(self.task, setting, row) and method.takes_part(
                            setting, row, seed
                        ):
                            yield Cell(
                                self.task, self.data, self.options, method, setting, row, seed
                            )

    @property
    def heading(self) -> dict[str, Any]:
        """What a table needs to know beside the cells; the same whichever methods are chosen."""
        return {
            "title": self.title,
            "task": self.task,
            "published": list(self.published),
            "columns": list(self.columns),
            "note": self.note,
            "same": [list(entry) for entry in self.same],
        }


def _makes_sense(task: str, setting: str, row: str) -> bool:
    """Whether a cell exists: nothing to learn from no pair, nothing unpaired left at 100%."""
    if task == "ucl":
        return (setting == "zero-shot") == (row == "official" or row.endswith("unseen"))
    if setting == "sup":
        return not row.startswith("0") or row.startswith("0.")
    return row != "100%"


def read_config(path: str | Path) -> BenchConfig:
    """The benchmark that a TOML file describes.

    Raises:
        DataError: when the file cannot be read as TOML.
        InputError: when a field is missing, unknown or of the wrong kind.
    """
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"There is no configuration {file}: {error}. See experiments/.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{file} must be TOML: {error}. Mend that line.") from error
    return parse_config(values, str(file))


def parse_config(values: dict[str, Any], name: str = "config") -> BenchConfig:
    """The benchmark that plain values describe; checks every field.

    Raises:
        InputError: when a field is missing, unknown or of the wrong kind.
    """
    for field_name in values:
        check_choice(field_name, f"field of {name}:", FIELDS)
    for required in ("task", "rows", "data", "methods"):
        if required not in values:
            raise InputError(
                f"{name} must have the field {required}: it is absent. See experiments/."
            )
    task = check_choice(values["task"], "task", TASKS)
    settings = tuple(_texts(values.get("settings", list(TASKS[task][:2])), f"{name}: settings"))
    for setting in settings:
        check_choice(setting, f"setting of task {task}:", TASKS[task])
    seeds = _seeds(values.get("seeds", [0, 1, 2]), f"{name}: seeds")
    if not seeds:
        raise InputError(f"{name}: seeds must be whole numbers, at least one: got none.")
    if not isinstance(values["data"], dict) or "source" not in values["data"]:
        raise InputError(f'{name} must have a table [data] with a field source, such as "toy".')
    published = values.get("published", [])
    published = [published] if isinstance(published, str) else published
    methods = values["methods"]
    if not isinstance(methods, list) or not methods:
        raise InputError(f"{name} must have at least one table [[methods]] with a name.")
    found = tuple(_method(entry, name) for entry in methods)
    for twin in {twin for method in found for twin in method.same.values()}:
        check_choice(twin, f"label of a method in {name}:", [method.label for method in found])
    return BenchConfig(
        title=str(values.get("title", Path(name).stem)),
        task=task,
        data=dict(values["data"]),
        methods=found,
        rows=tuple(_texts(values["rows"], f"{name}: rows")),
        settings=settings,
        seeds=seeds,
        columns=tuple(_texts(values.get("columns", list(COLUMNS[task])), f"{name}: columns")),
        options=dict(values.get("options", {})),
        published=tuple(_texts(published, f"{name}: published")),
        note=str(values.get("note", "")),
        same=tuple((where, m.label, twin) for m in found for where, twin in m.same.items()),
    )


def select(config: BenchConfig, methods: str | None, seeds: str | None) -> BenchConfig:
    """The configuration with only the methods and seeds of two comma-separated lists.

    A label may contain commas: at each place the longest label or name that fits counts.

    Raises:
        InputError: when a list names something that is not there.
    """
    if methods is not None:
        wanted = _named(methods, {name for m in config.methods for name in (m.label, m.name)})
        kept = (m for m in config.methods if wanted & {_pieces(m.label), _pieces(m.name)})
        config = replace(config, methods=tuple(kept))
    if seeds is not None:
        parts = [part.strip() for part in seeds.split(",")]
        if not all(part.isdigit() for part in parts):
            raise InputError(f'--seeds must be whole numbers with commas, such as 0,1: "{seeds}".')
        config = replace(config, seeds=tuple(map(int, parts)))
    return config


def _named(text: str, known: set[str]) -> set[tuple[str, ...]]:
    """The pieces of each known name in a list, the longest that fits at each place."""
    names = {_pieces(name) for name in known}
    rest, found = _pieces(text) or ("",), set()
    while rest:
        size = next((n for n in range(len(rest), 0, -1) if rest[:n] in names), 0)
        if not size:
            options = sorted(", ".join(name) for name in names)
            near = difflib.get_close_matches(rest[0], options, n=1)
            guess = f' Did you mean "{near[0]}"?' if near else ""
            listed = ", ".join(f'"{option}"' for option in options)  # as a name may hold a comma
            raise InputError(
                f'Unknown method of this configuration: "{rest[0]}".{guess} Known: {listed}.'
            )
        found.add(rest[:size])
        rest = rest[size:]
    return found


def _pieces(text: str) -> tuple[str, ...]:
    """What stands between the commas of a text, without blanks around it."""
    return tuple(piece.strip() for piece in text.split(",") if piece.strip())


def _method(entry: Any, name: str) -> MethodSpec:
    if isinstance(entry, str):
        entry = {"name": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise InputError(f'{name}: every method must have a name, such as name = "dmae".')
    for field_name in entry:
        check_choice(field_name, f"field of a method in {name}:", METHOD_FIELDS)
    return MethodSpec(
        name=entry["name"],
        label=str(entry.get("label", entry["name"].rpartition(":")[2])),
        params=dict(entry.get("params", {})),
        fit=dict(entry.get("fit", {})),
        settings=tuple(_texts(entry.get("settings", []), f"{name}: settings of a method")),
        rows=tuple(_texts(entry.get("rows", []), f"{name}: rows of a method")),
        seeds=_seeds(entry.get("seeds", []), f"{name}: seeds of a method"),
        same=dict(entry.get("same", {})),
    )


def _texts(value: Any, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{name} must be a list of texts: got {value!r}.")
    return value


def _seeds(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(_is_seed(seed) for seed in value):
        raise InputError(f"{name} must be a list of whole numbers of at least 0: got {value!r}.")
    return tuple(value)


def _is_seed(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
