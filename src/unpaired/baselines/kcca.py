"""Kernel canonical correlation analysis (Akaho 2001; Hardoon et al. 2004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from unpaired._checks import check_number
from unpaired._random import derive_rng, derive_seed
from unpaired.baselines.cca import CCA
from unpaired.baselines.inputs import principal
from unpaired.errors import InputError
from unpaired.math.kernels import gaussian_gram, squared_distances
from unpaired.types import FloatArray


@dataclass(eq=False, repr=False, kw_only=True)
class KernelCCA(CCA):
    """Gaussian kernel CCA: regularised CCA of kernel principal components.

    The kernel is exp(-d^2 / 2 sigma^2) on centred rows. With at most ``n_landmarks`` rows in a
    view it is exact; above, evenly drawn landmarks carry it (Nystroem). Everything after the
    features is CCA's, ridges chosen the same way.

    Args:
        bandwidth_x: sigma of x, or "median": sigma^2 is half the median squared distance.
        bandwidth_y: The same for y.
        n_landmarks: Rows that carry the kernel, at most.
        n_components: Dimensions of the embedding, at most.
        ridge_x: Ridge in units of the mean variance of the features, or "auto".
        ridge_y: The same for y.
        power: Power of the correlations by which directions are scaled.
        n_inputs: Kernel principal components that are used, at most.
        random_state: Seed of the landmarks and of the held-out pairs.

    References: akaho2001, hardoon2004.
    """

    bandwidth_x: float | Literal["median"] = "median"
    bandwidth_y: float | Literal["median"] = "median"
    n_landmarks: int = 1500

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.n_landmarks, "n_landmarks", 2, integer=True)
        for name in ("bandwidth_x", "bandwidth_y"):
            value = getattr(self, name)
            if isinstance(value, str) and value != "median":
                raise InputError(
                    f'{name} must be "median" or a positive number: got "{value}". '
                    'Leave it at "median" when in doubt.'
                )
            if value != "median":
                check_number(value, name, 1e-12)

    def _prepare(self, rows: FloatArray, view: int) -> FloatArray:
        name = "xy"[view]
        rng = derive_rng(self.seed_, f"landmarks {name}")
        distinct = np.unique(rows, axis=0, return_index=True)[1]
        chosen = np.sort(rng.permutation(distinct)[: self.n_landmarks])
        landmarks = rows[chosen]
        bandwidth = self.bandwidth_x if view == 0 else self.bandwidth_y
        if bandwidth == "median":
            squared = squared_distances(torch.as_tensor(landmarks)).numpy()
            bandwidth = float(np.sqrt(np.median(squared[np.triu_indices(len(squared), 1)]) / 2.0))
        gram = gaussian_gram(torch.as_tensor(landmarks), bandwidth=bandwidth).numpy()
        values, vectors = np.linalg.eigh(gram)
        kept = values > 1e-9 * values[-1]
        root = vectors[:, kept] / np.sqrt(values[kept])
        self._arrays |= {
            f"landmarks.{name}": landmarks,
            f"bandwidth.{name}": np.array([bandwidth]),
        }
        features = self._kernel(rows, view) @ root
        axes = principal(features, self.n_inputs, derive_seed(self.seed_, name))
        self._arrays |= {
            f"offset.{name}": axes.centre @ axes.axes,
            f"root.{name}": root @ axes.axes,
        }
        return axes.apply(features)

    def _kernel(self, rows: FloatArray, view: int) -> FloatArray:
        name = "xy"[view]
        landmarks = torch.as_tensor(self._arrays[f"landmarks.{name}"])
        bandwidth = float(self._arrays[f"bandwidth.{name}"][0])
        return gaussian_gram(torch.as_tensor(rows), landmarks, bandwidth=bandwidth).numpy()

    def _features(self, rows: FloatArray, view: int) -> FloatArray:
        name = "xy"[view]
        return (
            self._kernel(rows, view) @ self._arrays[f"root.{name}"] - self._arrays[f"offset.{name}"]
        )
