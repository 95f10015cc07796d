"""The published method, its errata mended: autoencoders, kernel dependence, a hard matching.

Known pairs stay; the free rows are matched anew by least-squares object matching (SMI) or convex
kernelized sorting (the other measures), in blocks: a block solves a problem of at most BLOCK_ROWS
rows, known pairs among them. LSOM starts from the matching at hand; convex sorting, being convex,
needs no start. So a step costs O(n BLOCK_ROWS^2) and no n x n array is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

import numpy as np
import torch
from torch import Tensor

from unpaired.matching.convex_sorting import penalised_convex_sorting
from unpaired.matching.lsom import penalised_lsom
from unpaired.matching.solution import Solution, plan_of, uniform_plan
from unpaired.nets.autoencoder import Autoencoder, AutoencoderConfig
from unpaired.training.features import principal_axes
from unpaired.training.loop import LoopConfig, alternate
from unpaired.training.objective import ObjectiveConfig, latent_gram
from unpaired.training.readout import RatioReadout, fit_ratio_readout
from unpaired.types import IntArray

BLOCK_ROWS = 256


def solve_block(
    z_x: Tensor, z_y: Tensor, n_known: int, config: ObjectiveConfig, sum_penalty: float
) -> Solution:
    """One block matched anew: rows in the order of the matching at hand, known pairs first."""
    gram_x = latent_gram(z_x, config.bandwidth_x).double().cpu().numpy()
    gram_y = latent_gram(z_y, config.bandwidth_y).double().cpu().numpy()
    known = np.repeat(np.arange(n_known)[:, None], 2, axis=1)
    if config.dependence == "smi":
        at_hand = plan_of(np.arange(len(z_x)), len(z_y))
        start = (at_hand + uniform_plan(len(z_x), len(z_y))) / 2.0  # a corner would not be left
        return penalised_lsom(
            gram_x,
            gram_y,
            start,
            known,
            ratio_ridge=max(config.ratio_ridge, 1.0),
            sum_penalty=sum_penalty,
        )
    return penalised_convex_sorting(gram_x, gram_y, known=known, sum_penalty=sum_penalty)


def rematch_in_blocks(
    z_x: Tensor,
    z_y: Tensor,
    pairs: IntArray,
    n_known: int,
    config: ObjectiveConfig,
    sum_penalty: float,
    rng: np.random.Generator,
) -> IntArray:
    """The pairs (k, 2) after one matching step; the first ``n_known`` of them are given and stay.

    Each block takes a random part of the free pairs, and as many known pairs as fit in its half.
    Rows without a partner keep none.
    """
    known, free = pairs[:n_known], pairs[n_known:].copy()
    n_fixed = min(n_known, BLOCK_ROWS // 2)
    n_blocks = max(1, -(-len(free) // (BLOCK_ROWS - n_fixed)))
    for part in np.array_split(rng.permutation(len(free)), n_blocks):
        fixed = known[rng.permutation(n_known)[:n_fixed]]
        rows = np.concatenate([fixed, free[part]])
        found = solve_block(z_x[rows[:, 0]], z_y[rows[:, 1]], n_fixed, config, sum_penalty)
        free[part, 1] = rows[found.partner[n_fixed:], 1]
    return np.concatenate([known, free])


def rematch_to_classes(
    z_x: Tensor, z_y: Tensor, pairs: IntArray, n_known: int, config: ObjectiveConfig
) -> IntArray:
    """The same with the column sums dropped: every free row takes the y with the largest ratio."""
    readout = fit_ratio_readout(z_x, z_y, pairs, config)
    free = pairs[n_known:].copy()
    with torch.no_grad():
        scores = readout.embed_x(z_x[free[:, 0]]) @ readout.embed_y(z_y).T
    free[:, 1] = scores.argmax(1).cpu().numpy()
    return np.concatenate([pairs[:n_known], free])


@dataclass(frozen=True)
class PublishedConfig:
    """All constants of a fit."""

    objective: ObjectiveConfig
    n_latent: int
    hidden: tuple[int, ...]
    n_components: int
    sum_penalty: float
    many_to_one: bool
    loop: LoopConfig


@dataclass(frozen=True)
class PublishedSpace:
    """Principal components, encoders, and the density ratio of their latents."""

    centres: tuple[Tensor, Tensor]
    axes: tuple[Tensor, Tensor]
    nets: tuple[Autoencoder, Autoencoder]
    ratio: RatioReadout

    @torch.no_grad()
    def embed(self, rows: Tensor, view: int) -> Tensor:
        """Rows of a view as kernel values against the basis; inner products are the ratio."""
        blocks = []
        for block in torch.split(rows, 2048):
            latents = self.nets[view].encoder((block - self.centres[view]) @ self.axes[view])
            blocks.append((self.ratio.embed_x, self.ratio.embed_y)[view](latents))
        return torch.cat(blocks)

    def placed(self, rows: Tensor, view: int) -> Tensor:
        """The same: the ratio is the score as it stands."""
        return self.embed(rows, view)

    def scores(self, x: Tensor, y: Tensor) -> Tensor:
        """The ratio of all rows of x with all rows of y, (n, m)."""
        return self.embed(x, 0) @ self.embed(y, 1).T

    def arrays(self) -> dict[str, np.ndarray]:
        """All that ``from_arrays`` needs."""
        found = {f"ratio.{f.name}": getattr(self.ratio, f.name) for f in fields(RatioReadout)}
        for view, name in enumerate("xy"):
            found[f"centre.{name}"], found[f"axes.{name}"] = self.centres[view], self.axes[view]
            config = asdict(self.nets[view].config)
            sizes = [config["n_inputs"], *config["hidden"], config["n_latent"]]
            found[f"sizes.{name}"] = torch.tensor(sizes)
            for key, tensor in self.nets[view].state_dict().items():
                found[f"net.{name}.{key}"] = tensor
        return {key: tensor.detach().cpu().numpy() for key, tensor in found.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], device: torch.device) -> PublishedSpace:
        """The space that ``arrays`` were taken from."""
        tensors = {key: torch.as_tensor(array, device=device) for key, array in arrays.items()}
        nets = []
        for name in "xy":
            sizes = [int(size) for size in arrays[f"sizes.{name}"]]
            config = AutoencoderConfig(sizes[0], sizes[-1], tuple(sizes[1:-1]))
            net, prefix = Autoencoder(config, seed=0), f"net.{name}."
            net.load_state_dict(
                {k.removeprefix(prefix): t for k, t in tensors.items() if k.startswith(prefix)}
            )
            nets.append(net.to(device))
        return cls(
            (tensors["centre.x"], tensors["centre.y"]),
            (tensors["axes.x"], tensors["axes.y"]),
            (nets[0], nets[1]),
            RatioReadout(*(tensors[f"ratio.{f.name}"] for f in fields(RatioReadout))),
        )


@dataclass(frozen=True)
class Published:
    """What a fit leaves behind."""

    space: PublishedSpace
    converged: bool
    history: list[dict[str, float]]
    trace: list[IntArray]


def learn_published(
    views: tuple[Tensor, Tensor],
    pairs: IntArray,
    n_known: int,
    config: PublishedConfig,
    rng: np.random.Generator,
    seed: int,
    on_step: Callable[[dict[str, float]], None] = lambda step: None,
) -> Published:
    """Alternate network updates and matching steps, starting from ``pairs``, known ones first."""
    scaled = [principal_map(view, config.n_components) for view in views]
    inputs = [(view - centre) @ axes for view, (centre, axes) in zip(views, scaled, strict=True)]
    nets = [
        Autoencoder(
            AutoencoderConfig(part.shape[1], config.n_latent, config.hidden), seed + number
        ).to(part.device)
        for number, part in enumerate(inputs)
    ]
    matched = [pairs]

    def rematch(z_x: Tensor, z_y: Tensor) -> IntArray:
        if config.many_to_one:
            new = rematch_to_classes(z_x, z_y, matched[-1], n_known, config.objective)
        else:
            new = rematch_in_blocks(
                z_x, z_y, matched[-1], n_known, config.objective, config.sum_penalty, rng
            )
        matched.append(new)
        return new

    trained = alternate(
        (nets[0], nets[1]),
        (inputs[0], inputs[1]),
        pairs,
        rematch if len(pairs) > n_known else None,
        config.objective,
        config.loop,
        rng,
        on_step,
    )
    with torch.no_grad():
        z_x, z_y = (net.encoder(part) for net, part in zip(nets, inputs, strict=True))
    ratio = fit_ratio_readout(z_x, z_y, trained.pairs, config.objective)
    space = PublishedSpace(
        (scaled[0][0], scaled[1][0]), (scaled[0][1], scaled[1][1]), (nets[0], nets[1]), ratio
    )
    return Published(space, trained.converged, trained.history, trained.trace)


def principal_map(rows: Tensor, n_components: int) -> tuple[Tensor, Tensor]:
    """Centre (1, d) and axes (d, p) that turn rows into principal components of mean square 1.

    One scale for all components: directions keep their relative size. Directions without variance
    (constant or repeated columns) are dropped.
    """
    centre = rows.mean(0, keepdim=True)
    variances, axes = principal_axes((rows - centre).double())
    kept = min(n_components, max(1, int((variances > 1e-10 * variances[0]).sum())))
    scale = variances[:kept].clamp_min(1e-300).mean().sqrt()
    return centre, (axes[:, :kept] / scale).to(rows.dtype)
