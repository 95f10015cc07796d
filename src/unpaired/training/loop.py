"""The alternation: pre-train, then update the networks and the matching in turn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from unpaired.errors import CollapseWarning, ConvergenceError
from unpaired.nets.autoencoder import Autoencoder
from unpaired.training.objective import LossParts, ObjectiveConfig, dmae_loss, reconstruction_error
from unpaired.types import IntArray

Rematch = Callable[[Tensor, Tensor], IntArray]
MAX_RANK_ROWS = 2000
COLLAPSED_RANK = 1.2


@dataclass(frozen=True)
class LoopConfig:
    """How long and how fast to learn."""

    n_pretrain_epochs: int
    n_rounds: int
    n_epochs_per_round: int
    batch_size: int
    learning_rate: float
    tol: float
    """Stop when the share of changed partners falls to this."""


@dataclass
class Trained:
    """What the alternation leaves behind."""

    pairs: IntArray
    converged: bool
    history: list[dict[str, float]] = field(default_factory=list)
    trace: list[IntArray] = field(default_factory=list)
    """The matched pairs after the start and after each round."""


def _batches(n_rows: int, size: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Shuffled row numbers in parts of at most ``size``, nearly equal, so that none is tiny."""
    order = rng.permutation(n_rows)
    yield from np.array_split(order, max(1, -(-n_rows // size)))


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor, where: str) -> float:
    """Take one step down ``loss`` and return its value; refuse a loss that is not finite."""
    value = float(loss.item())
    if not np.isfinite(value):
        raise ConvergenceError(
            f"Training stopped in {where}: the loss became {value}. "
            "Try a smaller learning_rate or a larger ratio_ridge."
        )
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return value


def pretrain(
    net: Autoencoder, rows: Tensor, config: LoopConfig, rng: np.random.Generator, view: str
) -> list[float]:
    """Train one autoencoder alone and return its mean reconstruction error per epoch."""
    optimizer = torch.optim.Adam(net.parameters(), lr=config.learning_rate)
    errors = []
    for epoch in range(config.n_pretrain_epochs):
        epoch_errors = [
            _descend(
                optimizer,
                reconstruction_error(rows[batch], net(rows[batch])[1]),
                f"pre-training of {view}, epoch {epoch}",
            )
            for batch in map(torch.as_tensor, _batches(len(rows), config.batch_size, rng))
        ]
        errors.append(float(np.mean(epoch_errors)))
    return errors


def alternate(
    nets: tuple[Autoencoder, Autoencoder],
    views: tuple[Tensor, Tensor],
    pairs: IntArray,
    rematch: Rematch | None,
    objective: ObjectiveConfig,
    config: LoopConfig,
    rng: np.random.Generator,
    on_step: Callable[[dict[str, float]], None] = lambda step: None,
) -> Trained:
    """Learn both networks and the matching together, starting from matched ``pairs`` (k, 2).

    Each round takes ``n_epochs_per_round`` epochs on the networks with the matching held fixed
    (Theta step), then asks ``rematch(z_x, z_y)`` for new pairs with the networks held fixed
    (Pi step); without ``rematch`` the pairs are known and stay. Networks change in place. Cost per
    epoch O(k (parameters + batch_size^2)).
    """
    (net_x, net_y), (x, y) = nets, views
    errors_x = pretrain(net_x, x, config, rng, "x")
    errors_y = pretrain(net_y, y, config, rng, "y")
    result = Trained(pairs, converged=rematch is None, trace=[pairs])
    for error_x, error_y in zip(errors_x, errors_y, strict=True):
        step = {
            "step": float(len(result.history)),
            "loss": error_x + error_y,
            "reconstruction_x": error_x,
            "reconstruction_y": error_y,
        }
        result.history.append(step)
        on_step(step)

    parameters = [*net_x.parameters(), *net_y.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=config.learning_rate)
    for round_number in range(config.n_rounds):
        for _ in range(config.n_epochs_per_round):  # Theta step
            parts = []
            for batch in _batches(len(result.pairs), config.batch_size, rng):
                rows = torch.as_tensor(result.pairs[batch])
                batch_x, batch_y = x[rows[:, 0]], y[rows[:, 1]]
                loss = dmae_loss(batch_x, batch_y, net_x(batch_x), net_y(batch_y), objective)
                _descend(optimizer, loss.total, f"round {round_number}")
                parts.append(loss)
            result.history.append({"step": float(len(result.history)), **_mean_parts(parts)})
        if rematch is not None:  # Pi step
            with torch.no_grad():
                new_pairs = rematch(net_x.encoder(x), net_y.encoder(y))
            changed = _share_changed(result.pairs, new_pairs)
            result.pairs = new_pairs
            result.history[-1]["changed"] = changed
            result.converged = changed <= config.tol
        for name, net, rows in (("x", net_x, x), ("y", net_y, y)):
            result.history[-1][f"rank_{name}"] = _effective_rank(net.encoder(rows[:MAX_RANK_ROWS]))
        result.trace.append(result.pairs)
        on_step(result.history[-1])
        if rematch is not None and result.converged:
            break
    _warn_of_collapse(result.history, nets)
    return result


@torch.no_grad()
def _effective_rank(latents: Tensor) -> float:
    """How many directions the latents use: (sum of variances)^2 / sum of squared variances."""
    centred = latents - latents.mean(0, keepdim=True)
    variances = torch.linalg.svdvals(centred) ** 2
    floor = torch.finfo(latents.dtype).eps * float((latents**2).sum())
    if float(variances.sum()) <= floor:
        return 0.0
    return float(variances.sum() ** 2 / (variances**2).sum())


def _warn_of_collapse(
    history: list[dict[str, float]], nets: tuple[Autoencoder, Autoencoder]
) -> None:
    """Say so when a view with room for several directions ended in (nearly) one or none."""
    for name, net in zip("xy", nets, strict=True):
        room = min(net.config.n_inputs, net.config.n_latent)
        rank = history[-1].get(f"rank_{name}", float("inf")) if history else float("inf")
        if room > 2 and rank < COLLAPSED_RANK:
            warnings.warn(
                f"The latents of {name} collapsed: they use {rank:.1f} of {room} directions. "
                'Raise reconstruction_weight, lower dependence_weight, or use dependence="cka", '
                "which collapse does not improve.",
                CollapseWarning,
                stacklevel=4,
            )


def _mean_parts(parts: list[LossParts]) -> dict[str, float]:
    """Batch losses averaged by name."""
    dicts = [{**vars(part), "total": part.total.item()} for part in parts]
    mean = {key: float(np.mean([d[key] for d in dicts])) for key in dicts[0]}
    mean["loss"] = mean.pop("total")
    return mean


def _share_changed(before: IntArray, after: IntArray) -> float:
    """Share of the pairs in ``after`` that were not in ``before``."""
    known = set(map(tuple, before.tolist()))
    return sum(tuple(pair) not in known for pair in after.tolist()) / max(1, len(after))
