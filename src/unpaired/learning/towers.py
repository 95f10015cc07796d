"""Two towers on whitened coordinates: canonical ones plus a learned residual.

A tower's latents are a linear map, which starts as the closed-form canonical one, plus a small
network that starts at zero, so that depth begins where the closed form ends. What is minimised is
InfoNCE (van den Oord et al. 2018), both ways. It is kin to SMI: with the density ratio
r(x, y) = exp(cos(z_x, z_y) / T) the SMI of one anchor, with its best coefficient, is half of
r(x, y)^2 / mean_j r(x, y_j)^2, whose logarithm is InfoNCE at the temperature T / 2. The ratio
models both latents together, so their cosine is the score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from torch.optim.swa_utils import AveragedModel

from unpaired._log import track
from unpaired.errors import ConvergenceError
from unpaired.nets.residual import ResidualTower

TEMPERATURES = (0.01, 1.0)
"""The learned temperature stays in this range."""


@dataclass(frozen=True)
class TowerConfig:
    """Shape of both towers and how they learn; constants chosen on Flickr8k's dev images."""

    hidden: tuple[int, ...] = (256,)
    """Sizes of the residual network's layers; none leaves the linear part alone."""
    n_epochs: int = 6
    batch_size: int = 1000
    learning_rate: float = 2e-3
    """Adam's step size, at its peak."""
    temperature: float = 0.05
    """Of the softmax, to start from; learned."""
    noise: float = 0.8
    """How much of the noise that stands for the ridge is added to the inputs."""
    averaging: float = 0.98
    """Decay of the running mean of the weights, which is what is returned."""
    warmup: float = 0.05
    """Share of the steps over which the learning rate rises; it falls as a cosine after that."""


def info_nce(
    scores: Tensor, pairs: Tensor, temperature: Tensor, weights: Tensor | None = None
) -> Tensor:
    """The contrastive loss of a batch of pairs, both ways.

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


def train_towers(
    x: Tensor,
    y: Tensor,
    pairs: Tensor,
    start: tuple[Tensor, Tensor],
    noise: tuple[Tensor, Tensor],
    config: TowerConfig,
    *,
    seed: int = 0,
    weights: Tensor | None = None,
    on_epoch: Callable[[dict[str, float]], None] = lambda step: None,
) -> tuple[ResidualTower, ResidualTower]:
    """Both towers trained on matched rows, with averaged weights.

    Args:
        x: Whitened rows (n_x, d_x).
        y: Whitened rows (n_y, d_y).
        pairs: (k, 2) of (row of x, row of y); a row may occur in several pairs.
        start: Canonical maps (d_x, n_latent), (d_y, n_latent) that the towers begin with.
        noise: Standard deviations (d_x,), (d_y,) that stand for the ridge of the whitening.
        config: Shape and schedule.
        seed: The same seed gives the same bits; torch's global state is left as it was.
        weights: How much each pair counts (k,), for soft pairs; all alike by default.
        on_epoch: Called with the mean loss of each epoch.

    Cost per epoch O(k (parameters + batch_size * n_latent)). With fewer than two pairs there is
    nothing to tell apart, and the towers come back as they start.
    """
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        towers = nn.ModuleList([ResidualTower(map_, config.hidden) for map_ in start])
    towers.to(device=x.device, dtype=x.dtype)
    log_temperature = nn.Parameter(x.new_tensor(math.log(config.temperature)))
    averaged = AveragedModel(
        towers,
        avg_fn=lambda mean, now, count: mean.lerp(now, 1.0 - _decay(count, config.averaging)),
    )
    spreads = [config.noise * spread for spread in noise]
    parameters = [*towers.parameters(), log_temperature]
    optimizer = torch.optim.Adam(parameters, lr=config.learning_rate, fused=True)
    n_batches = max(1, -(-len(pairs) // config.batch_size))
    n_steps = config.n_epochs * n_batches
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: _rate(step, n_steps, config.warmup)
    )
    for epoch in track(range(config.n_epochs if len(pairs) > 1 else 0), "Training networks"):
        total = 0.0
        for numbers in _batches(len(pairs), config.batch_size, generator):
            chosen = numbers.to(x.device)
            batch = pairs[chosen]
            rows = (x[batch[:, 0]], y[batch[:, 1]])
            z_x, z_y = (
                normalize(tower(_noisy(part, spread, generator)))
                for tower, part, spread in zip(towers, rows, spreads, strict=True)
            )
            temperature = log_temperature.exp().clamp(*TEMPERATURES)
            counts = None if weights is None else weights[chosen]
            loss = info_nce(z_x @ z_y.T, batch, temperature, counts)
            total += float(loss.detach())
            if not math.isfinite(total):
                raise ConvergenceError(
                    f"Training stopped in epoch {epoch}: the loss became {total}. "
                    "Try a smaller learning_rate."
                )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            averaged.update_parameters(towers)
        on_epoch({"loss": total / n_batches, "temperature": float(log_temperature.detach().exp())})
    trained = averaged.module if n_steps and len(pairs) > 1 else towers
    assert isinstance(trained, nn.ModuleList)
    tower_x, tower_y = trained
    assert isinstance(tower_x, ResidualTower)
    assert isinstance(tower_y, ResidualTower)
    return tower_x.eval().requires_grad_(False), tower_y.eval().requires_grad_(False)


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
    return rise * 0.5 * (1.0 + math.cos(math.pi * min(step, n_steps) / max(n_steps, 1)))


def _decay(count: Tensor | int, most: float) -> float:
    """What the running mean keeps after ``count`` steps: little at first, ``most`` in the end."""
    return min(most, (1.0 + float(count)) / (10.0 + float(count)))
