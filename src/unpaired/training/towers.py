"""Two towers on whitened coordinates: canonical ones plus a learned residual, and decoders.

A tower's latents are a linear map, which starts as the closed-form canonical one, plus a small
network that starts at zero, so that depth begins where the closed form ends. Under "smi" what is
maximised is the logarithm of the squared-loss mutual information of each anchor: with the density
ratio r(x, y) = exp(cos(z_x, z_y) / T) it is log(r(x, y)^2 / mean_j r(x, y_j)^2), a softmax over the
batch at temperature T / 2. The ratio models both latents together, so their cosine is the score.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unpaired.errors import ConvergenceError
from unpaired.nets.residual import ResidualTower
from unpaired.training.objective import ObjectiveConfig, measure_dependence, reconstruction_error

TEMPERATURES = (0.01, 1.0)
"""The learned temperature stays in this range."""


@dataclass(frozen=True)
class TowerConfig:
    """Shape of both towers and how they learn; constants chosen on Flickr8k's dev images."""

    hidden: int = 256
    """Units of the residual network; 0 leaves the linear part alone."""
    n_epochs: int = 6
    batch_size: int = 1000
    learning_rate: float = 2e-3
    temperature: float = 0.05
    """Of the softmax, to start from; learned."""
    noise: float = 0.8
    """How much of the noise that stands for the ridge is added to the inputs."""
    averaging: float = 0.98
    """Decay of the running mean of the weights, which is what is returned."""
    warmup: float = 0.05
    """Share of the steps over which the learning rate rises; it falls as a cosine after that."""


def log_smi_loss(
    scores: Tensor, pairs: Tensor, temperature: Tensor, weights: Tensor | None = None
) -> Tensor:
    """Minus the mean log of per-anchor SMI, both ways, up to a constant.

    Notation: ``scores`` (n, n), entry (i, j) of pair i's row of x and pair j's row of y; ``pairs``
    (n, 2). Entries of two pairs that share a row of x or of y are left out: they are no negatives.
    ``weights`` (n,) counts anchors. Cost O(n^2).
    """
    shared = (pairs[:, :1] == pairs[:, 0]) | (pairs[:, 1:] == pairs[:, 1])
    shared.fill_diagonal_(False)
    logits = (scores / temperature).masked_fill(shared, -torch.inf)
    losses = logits.logsumexp(1) + logits.logsumexp(0) - 2.0 * logits.diagonal()
    if weights is None:
        return losses.mean() / 2.0
    return (losses * weights).sum() / weights.sum().clamp_min(1e-12) / 2.0


def _batches(n: int, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Shuffled numbers below ``n`` in nearly equal parts of at most ``size``."""
    yield from torch.randperm(n, generator=generator).tensor_split(max(1, -(-n // size)))


def _noisy(rows: Tensor, spread: Tensor, generator: torch.Generator) -> Tensor:
    """Rows plus normal noise of standard deviation ``spread`` (d,)."""
    drawn = torch.randn(rows.shape, generator=generator, dtype=rows.dtype)
    return rows + spread * drawn.to(rows.device)


def _rate(step: int, n_steps: int, warmup: float) -> float:
    """Share of the learning rate at ``step``: a linear rise, then half a cosine down to zero."""
    rise = min(1.0, (step + 1) / (warmup * n_steps + 1.0))
    return rise * 0.5 * (1.0 + math.cos(math.pi * step / n_steps))


def train_towers(
    x: Tensor,
    y: Tensor,
    pairs: Tensor,
    start: tuple[Tensor, Tensor],
    noise: tuple[Tensor, Tensor],
    config: TowerConfig,
    objective: ObjectiveConfig,
    *,
    seed: int = 0,
    weights: Tensor | None = None,
    on_epoch: Callable[[dict[str, float]], None] = lambda step: None,
) -> tuple[ResidualTower, ResidualTower]:
    """Train both towers on matched rows and return them with averaged weights.

    Args:
        x: Whitened rows (n_x, d_x).
        y: Whitened rows (n_y, d_y).
        pairs: (k, 2) of (row of x, row of y); a row may occur in several pairs.
        start: Canonical maps (d_x, n_latent), (d_y, n_latent) that the towers begin with.
        noise: Standard deviations (d_x,), (d_y,) that stand for the ridge of the whitening.
        config: Shape and schedule.
        objective: The dependence and the weights of its terms.
        seed: The same seed gives the same bits; torch's global state is left as it was.
        weights: How much each pair counts (k,), for soft pairs; all alike by default.
        on_epoch: Called with the mean loss parts of each epoch.

    Cost per epoch O(k (parameters + batch_size * n_latent)). With fewer than two pairs there is
    nothing to tell apart, and the towers come back as they start.
    """
    generator = torch.Generator().manual_seed(seed)
    decodes = objective.reconstruction_weight > 0.0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        towers = nn.ModuleList(
            [ResidualTower(map_, config.hidden, decodes=decodes) for map_ in start]
        )
    towers.to(device=x.device, dtype=x.dtype)
    log_temperature = nn.Parameter(x.new_tensor(math.log(config.temperature)))
    averaged = copy.deepcopy(towers)
    spreads = [config.noise * spread for spread in noise]
    optimizer = torch.optim.Adam(
        [*towers.parameters(), log_temperature], lr=config.learning_rate, fused=True
    )
    n_batches = max(1, -(-len(pairs) // config.batch_size))
    n_steps, step = config.n_epochs * n_batches, 0
    for epoch in range(config.n_epochs if len(pairs) > 1 else 0):
        total = 0.0
        for numbers in _batches(len(pairs), config.batch_size, generator):
            chosen = numbers.to(x.device)
            batch = pairs[chosen]
            rows = (x[batch[:, 0]], y[batch[:, 1]])
            z_x, z_y = (
                tower(_noisy(part, spread, generator))
                for tower, part, spread in zip(towers, rows, spreads, strict=True)
            )
            if objective.dependence == "smi":
                cosines = functional.normalize(z_x) @ functional.normalize(z_y).T
                temperature = log_temperature.exp().clamp(*TEMPERATURES)
                counts = None if weights is None else weights[chosen]
                loss = objective.dependence_weight * log_smi_loss(
                    cosines, batch, temperature, counts
                )
            else:
                loss = -objective.dependence_weight * measure_dependence(z_x, z_y, objective)
            for tower, z, part in zip(towers, (z_x, z_y), rows, strict=True):
                if isinstance(tower, ResidualTower) and tower.decoder is not None:
                    error = reconstruction_error(part, tower.decoder(z))
                    loss = loss + objective.reconstruction_weight * error
            total += float(loss.detach())
            if not np.isfinite(total):
                raise ConvergenceError(
                    f"Training stopped in epoch {epoch}: the loss became {total}. "
                    "Try a smaller learning_rate."
                )
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate * _rate(step, n_steps, config.warmup)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            step += 1
            _average(averaged, towers, min(config.averaging, (1.0 + step) / (10.0 + step)))
        on_epoch({"loss": total / n_batches, "temperature": float(log_temperature.detach().exp())})
    tower_x, tower_y = averaged
    assert isinstance(tower_x, ResidualTower)
    assert isinstance(tower_y, ResidualTower)
    return tower_x.eval(), tower_y.eval()


@torch.no_grad()
def _average(averaged: nn.Module, towers: nn.Module, decay: float) -> None:
    """Move the averaged weights towards the present ones by 1 - decay, in place."""
    for mean, now in zip(averaged.parameters(), towers.parameters(), strict=True):
        mean.lerp_(now, 1.0 - decay)
