"""Photos to rows by a dictionary of whitened patches, no label and no network (Coates & Ng 2011).

"The importance of encoding versus training with sparse coding and vector quantization", the
features with which the paper ran CIFAR-10: 6 x 6 patches, contrast normalisation, ZCA whitening, a
dictionary learned by OMP-1 (k-means up to sign and gain), a two-sided soft threshold, and sums over
four quadrants. 1,600 atoms give 12,800 numbers a photo.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unpaired._checks import check_number
from unpaired._log import track
from unpaired.errors import InputError

CONTRAST_OFFSET = 10.0
"""Added to a patch's variance (pixels 0 to 255), so that flat patches stay flat."""
WHITENING_OFFSET = 0.1
THRESHOLD = 0.25
CHUNK_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class PatchDictionary:
    """What was learned from patches; d = 3 * patch_size ** 2."""

    mean: NDArray[np.float32]
    """(d,) mean of the normalised patches."""
    whitening: NDArray[np.float32]
    """(d, d) symmetric map that makes them white (ZCA)."""
    atoms: NDArray[np.float32]
    """(d, n_atoms) unit columns."""
    patch_size: int


def learn_dictionary(
    images: Any,
    rng: np.random.Generator,
    *,
    n_atoms: int = 1600,
    patch_size: int = 6,
    n_patches: int = 400_000,
    n_iter: int = 10,
) -> PatchDictionary:
    """Whitening and dictionary learned from random patches of ``images``, without labels.

    Args:
        images: (n, height, width, 3) array of type uint8.
        rng: Draws the patches and the first atoms.
        n_atoms: Columns of the dictionary.
        patch_size: Side of a patch in pixels.
        n_patches: How many patches to learn from.
        n_iter: Rounds of OMP-1: give every patch to the atom it projects on most, renew the atoms.

    Raises:
        InputError: when an argument cannot be used.
    """
    pixels = _check_images(images, patch_size)
    for name, value in (("n_atoms", n_atoms), ("n_patches", n_patches), ("n_iter", n_iter)):
        check_number(value, name, 1, integer=True)
    patches = normalise_contrast(_random_patches(pixels, rng, patch_size, n_patches))
    mean = patches.mean(0)
    whitening = zca(patches, mean)
    white = (patches - mean) @ whitening
    first = torch.as_tensor(rng.standard_normal((white.shape[1], n_atoms)), dtype=torch.float32)
    atoms = omp1_atoms(white, first / first.norm(dim=0), n_iter, rng)
    return PatchDictionary(mean.numpy(), whitening.numpy(), atoms.numpy(), patch_size)


def coates_ng_features(
    images: Any, dictionary: PatchDictionary, *, threshold: float = THRESHOLD, batch_size: int = 100
) -> NDArray[np.float32]:
    """Features of ``images``, shape (n, 8 * n_atoms), float32.

    Order: quadrants (top left, top right, bottom left, bottom right); in each, the positive
    responses of all atoms, then the negative ones. Standardise the columns before a linear
    classifier.

    Raises:
        InputError: when an argument cannot be used.
    """
    pixels = _check_images(images, dictionary.patch_size)
    check_number(batch_size, "batch_size", 1, integer=True)
    mean, whitening, atoms = (
        torch.as_tensor(part) for part in (dictionary.mean, dictionary.whitening, dictionary.atoms)
    )
    size = dictionary.patch_size
    height, width = (side - size + 1 for side in pixels.shape[1:3])
    project = whitening @ atoms  # (d, n_atoms): whiten and project in one product
    shift = mean @ project
    features = np.empty((len(pixels), 8 * atoms.shape[1]), dtype=np.float32)
    with torch.inference_mode():
        for start in range(0, len(pixels), batch_size):
            batch = torch.as_tensor(pixels[start : start + batch_size], dtype=torch.float32)
            patches = torch.nn.functional.unfold(batch.permute(0, 3, 1, 2), size)  # (b, d, p)
            rows = normalise_contrast(patches.transpose(1, 2))  # (b, p, d)
            response = (rows @ project - shift).reshape(len(batch), height, width, -1)
            pooled = torch.cat(
                [
                    torch.relu(sign * part - threshold).sum((1, 2))
                    for part in _quadrants(response)
                    for sign in (1.0, -1.0)
                ],
                dim=1,
            )
            features[start : start + batch_size] = pooled.numpy()
    return features


def normalise_contrast(patches: Tensor) -> Tensor:
    """Patches (..., d) with mean 0 and variance about 1 each."""
    centred = patches - patches.mean(-1, keepdim=True)
    spread = torch.sqrt(
        centred.square().sum(-1, keepdim=True) / (patches.shape[-1] - 1) + CONTRAST_OFFSET
    )
    return centred / spread


def zca(rows: Tensor, mean: Tensor) -> Tensor:
    """The symmetric map (d, d) that whitens rows - mean."""
    centred = (rows - mean).double()
    covariance = centred.T @ centred / (len(rows) - 1)
    values, vectors = torch.linalg.eigh(covariance)
    scale = (values.clamp_min(0) + WHITENING_OFFSET).rsqrt()
    return ((vectors * scale) @ vectors.T).float()


def omp1_atoms(rows: Tensor, atoms: Tensor, n_iter: int, rng: np.random.Generator) -> Tensor:
    """Unit atoms (d, k) after ``n_iter`` rounds of OMP-1 from ``atoms``; unused ones are redrawn.

    Each row goes to the atom with the largest absolute projection; an atom becomes the sum of its
    rows weighted by their projections, scaled to length 1.
    """
    for _ in track(range(n_iter), "Learning a dictionary of patches"):
        total = torch.zeros_like(atoms.T)  # (k, d)
        for chunk in torch.split(rows, CHUNK_ROWS):
            projection = chunk @ atoms
            best = projection.abs().argmax(1)
            weight = projection.gather(1, best[:, None])
            total.index_add_(0, best, weight * chunk)
        length = total.norm(dim=1)
        unused = torch.nonzero(length < 1e-6).ravel()
        if len(unused):
            drawn = torch.as_tensor(rng.choice(len(rows), len(unused)))
            total[unused] = rows[drawn] + 1e-6
            length[unused] = total[unused].norm(dim=1)
        atoms = (total / length[:, None]).T
    return atoms


def _random_patches(
    pixels: NDArray[np.uint8], rng: np.random.Generator, size: int, count: int
) -> Tensor:
    """``count`` patches (count, 3 * size * size), channels first as unfold lays them out."""
    image = rng.integers(len(pixels), size=count)
    top = rng.integers(pixels.shape[1] - size + 1, size=count)
    left = rng.integers(pixels.shape[2] - size + 1, size=count)
    step = np.arange(size)
    rows, columns = (top[:, None] + step)[:, :, None], (left[:, None] + step)[:, None, :]
    found = pixels[image[:, None, None], rows, columns]  # (count, size, size, 3)
    return torch.as_tensor(found.transpose(0, 3, 1, 2).reshape(count, -1), dtype=torch.float32)


def _quadrants(response: Tensor) -> Iterator[Tensor]:
    """The four quarters of (b, height, width, k), the upper and left ones larger when odd."""
    middle_row, middle_column = (-(-side // 2) for side in response.shape[1:3])
    for rows in (slice(None, middle_row), slice(middle_row, None)):
        for columns in (slice(None, middle_column), slice(middle_column, None)):
            yield response[:, rows, columns]


def _check_images(images: Any, patch_size: int) -> NDArray[np.uint8]:
    pixels = np.asarray(images)
    if pixels.ndim != 4 or pixels.shape[-1] != 3 or pixels.dtype != np.uint8:
        raise InputError(
            f"images must be a (n, height, width, 3) array of type uint8: it has shape "
            f"{pixels.shape} and type {pixels.dtype}. Pass RGB pixels from 0 to 255."
        )
    check_number(patch_size, "patch_size", 1, integer=True)
    if len(pixels) == 0 or min(pixels.shape[1:3]) < patch_size + 1:
        raise InputError(
            f"images must be at least {patch_size + 1} pixels high and wide, and at least one: "
            f"the shape is {pixels.shape}. Pass a smaller patch_size."
        )
    return pixels
