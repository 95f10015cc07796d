"""Files written whole or not at all, and arrays read only when they can be what they claim."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import DataError, InputError

MAX_UNPACKED = 8 * 2**30
"""Bytes that an archive may unpack to."""


class atomic_writer:  # noqa: N801 - reads as a function, like open()
    """Open a file that appears under its name only when written to the end."""

    def __init__(self, path: str | os.PathLike[str], *, binary: bool = False) -> None:
        """Remember where the finished file belongs."""
        self.path = Path(path)
        self.binary = binary

    def __enter__(self) -> Any:
        """Return a handle on a temporary file in the same folder."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd, self._temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".unpaired-")
        if self.binary:
            self._handle: IO[Any] = os.fdopen(fd, "wb")
        else:
            self._handle = os.fdopen(fd, "w", encoding="utf-8", newline="")
        return self._handle

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Move the file into place, or remove it when the block or the move failed."""
        try:
            self._handle.close()  # a full disk shows here at the latest
            if kind is None:
                os.chmod(self._temporary, 0o644)
                os.replace(self._temporary, self.path)
        finally:
            if os.path.exists(self._temporary):
                os.unlink(self._temporary)


@contextmanager
def whole_folder(folder: Path, own: Sequence[str]) -> Iterator[Path]:
    """Yield an empty folder that takes the place of ``folder`` when the block is through.

    An earlier one is replaced as a whole, so that no file of it is left beside new ones.

    Raises:
        InputError: when ``folder`` holds anything but files called as in ``own``.
    """
    folder = Path(os.path.realpath(folder))
    check_writable(folder)
    check_replaceable(folder, own)
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".unpaired-"))
    try:
        fresh, earlier = place / "new", place / "old"
        fresh.mkdir()
        yield fresh
        if folder.exists():
            os.rename(folder, earlier)
        try:
            os.rename(fresh, folder)
        except OSError:
            if earlier.exists():
                os.rename(earlier, folder)
            raise
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def staged_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder whose files move into ``folder`` when the block is through.

    When the block fails, ``folder`` is as it was: not made, and no file of it changed.
    """
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=folder, prefix=".unpaired-"))
    try:
        fresh, earlier = place / "new", place / "old"
        fresh.mkdir()
        earlier.mkdir()
        yield fresh
        _move_in(folder, fresh, earlier)
    finally:
        shutil.rmtree(place, ignore_errors=True)
        for path in made:
            if path.is_dir() and not os.listdir(path):
                path.rmdir()


def _move_in(folder: Path, fresh: Path, earlier: Path) -> None:
    """Move all of ``fresh`` into ``folder``; when that fails or is stopped, nothing of it."""
    names = sorted(os.listdir(fresh))
    try:
        for name in names:
            if os.path.lexists(folder / name):
                os.rename(folder / name, earlier / name)
            os.rename(fresh / name, folder / name)
    except BaseException:
        for name in names:
            if not (fresh / name).exists():
                os.rename(folder / name, fresh / name)
            if os.path.lexists(earlier / name):
                os.rename(earlier / name, folder / name)
        raise


def check_replaceable(folder: Path, own: Sequence[str], name: str = "directory") -> None:
    """Accept a folder that is new, or holds nothing but files called as in ``own``.

    Raises:
        InputError: when it holds others, which replacing it would remove.
    """
    others = sorted(set(os.listdir(folder)) - set(own)) if folder.is_dir() else []
    if others:
        raise InputError(
            f"{name} must be new, empty or an earlier save, since it is replaced as a whole: "
            f"{folder} also holds {others[0]}. Name a folder of its own."
        )


def check_writable(folder: Path, files: Sequence[str] = (), name: str = "directory") -> None:
    """Accept a folder that can be written or made, and leave no trace of having tried.

    Raises:
        InputError: when it, a folder above it, or one of ``files`` in it is in the way.
    """
    rule = f"{name} must be a folder that can be written"
    try:
        if folder.is_symlink() and not folder.exists():
            raise InputError(f"{rule}: {folder} is a link that leads nowhere. Remove it first.")
        nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        if not nearest.is_dir():
            raise InputError(f"{rule}: {nearest} is a file. Name another folder.")
        with tempfile.TemporaryDirectory(dir=nearest, prefix=".unpaired-") as trial:
            missing = folder.absolute().relative_to(nearest.absolute())
            (Path(trial) / missing).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{rule}: {folder} cannot ({reason}). Name another folder.") from error
    for file in files:
        if (folder / file).is_dir():
            raise InputError(f"{rule}: {folder / file} is a folder. Remove it, or name another.")


def check_apart(outputs: Sequence[Path], inputs: Sequence[Path | str | None], name: str) -> None:
    """Accept outputs of which none is also an input.

    Raises:
        InputError: naming the file that would be written over.
    """
    given = {str(path) for path in inputs if path is not None}
    given = {os.path.realpath(path) for path in given if "\0" not in path}
    for path in outputs:
        if os.path.realpath(path) in given:
            raise InputError(
                f"{name} must not write over what is read: {path} is both. Name another place."
            )


def read_npy(file: Path) -> NDArray[Any]:
    """The array in a .npy file, whose header may not claim more than the file holds.

    Raises:
        DataError: when it is no such file.
    """
    with file.open("rb") as handle:
        return _read_array(handle, file.stat().st_size, str(file))


def read_npz(file: Path, choose: Callable[[list[str]], str]) -> NDArray[Any]:
    """The array of a .npz archive that ``choose`` names, given all names.

    Raises:
        DataError: when it is no such archive, or unpacks to more than ``MAX_UNPACKED`` bytes.
    """
    with zipfile.ZipFile(file) as archive:
        check_unpacked(archive, file)
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        key = choose(names)
        info = archive.infolist()[names.index(key)]
        with archive.open(info) as member:
            return _read_array(member, info.file_size, f"{file}:{key}")


def check_unpacked(archive: zipfile.ZipFile, file: Path) -> None:
    """Accept an archive of at most ``MAX_UNPACKED`` bytes.

    Raises:
        DataError: when it claims to unpack to more.
    """
    size = sum(info.file_size for info in archive.infolist())
    if size > MAX_UNPACKED:
        raise DataError(
            f"{file} must unpack to at most {MAX_UNPACKED / 2**30:.0f} GiB: it claims "
            f"{size / 2**30:.1f} GiB. Save the arrays one by one as .npy."
        )


def _read_array(handle: IO[bytes], size: int, name: str) -> NDArray[Any]:
    """The array in an open .npy file of ``size`` bytes."""
    major, minor = np.lib.format.read_magic(handle)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if (major, minor) not in readers:
        raise DataError(
            f"{name} must be of .npy format 1.0 or 2.0: it says {major}.{minor}. "
            "Write it again with numpy.save, without named fields."
        )
    shape, in_columns, kind = readers[major, minor](handle)
    if kind.hasobject:
        raise DataError(
            f"{name} must hold plain numbers: it holds pickled objects, which are never read. "
            "Write it again with astype(float)."
        )
    if min(shape, default=0) < 0 or not kind.itemsize:
        raise DataError(f"{name} claims the shape {shape} of {kind}: that is no array of numbers.")
    claimed, held = kind.itemsize * math.prod(shape), size - handle.tell()
    if claimed > held:
        raise DataError(
            f"{name} must hold what its header claims: shape {shape} of {kind} takes {claimed} "
            f"bytes, and {held} follow. It was cut short or changed; write it again."
        )
    data = np.empty(claimed, dtype=np.uint8)
    view, begin = data.data, 0
    while begin < claimed:
        n_read = handle.readinto(view[begin:])  # type: ignore[attr-defined]
        if not n_read:
            raise DataError(f"{name} ends after {begin} of {claimed} bytes. Write it again.")
        begin += n_read
    return data.view(kind).reshape(shape, order="F" if in_columns else "C")
