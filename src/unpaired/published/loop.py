"""The alternation: pre-train each autoencoder, then Theta step and Pi step by turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from unpaired._log import track
from unpaired.errors import ConvergenceError
from unpaired.nets.autoencoder import Autoencoder
from unpaired.published.config import PublishedConfig
from unpaired.published.matching_step import MatchingStep, matching_step, round_plan
from unpaired.published.networks import (
    InputMap,
    TrainedView,
    fit_input_map,
    make_network,
    trained_view,
)
from unpaired.published.objective import dependence, reconstruction_error, scale_latents
from unpaired.published.readout import fit_density_ratio
from unpaired.types import FloatArray, IntArray

OnStep = Callable[[dict[str, float]], None]
Views = tuple[Tensor, Tensor]
NEAR, MAX_NEAR_ROWS = 0.1, 1000
"""Part of the mean squared distance below which two rows are near; rows that are looked at."""


@dataclass
class Matching:
    """Which rows belong together now: known pairs, and partners of the free rows of x."""

    known: IntArray
    """(k, 2)."""
    free_x: IntArray
    """Numbers of the rows of x that are matched."""
    free_y: IntArray
    partner: IntArray | None
    """(len(free_x),) position in ``free_y``, -1 = none; None before there is any matching."""

    @property
    def matched(self) -> IntArray:
        """The matched free rows as (m, 2) pairs of row numbers."""
        if self.partner is None:
            return self.known[:0]
        rows = np.flatnonzero(self.partner >= 0)
        return np.column_stack([self.free_x[rows], self.free_y[self.partner[rows]]])

    @property
    def pairs(self) -> IntArray:
        """Known pairs, then matched ones."""
        return np.concatenate([self.known, self.matched])


@dataclass
class Fitted:
    """What a fit leaves behind."""

    views: tuple[TrainedView, TrainedView]
    matching: Matching
    plan: FloatArray | None
    """The last relaxed Pi, (len(free_x), len(free_y)); None when all pairs were known."""
    converged: bool
    history: list[dict[str, float]] = field(default_factory=list)
    trace: list[IntArray] = field(default_factory=list)


def learn(
    rows: Views,
    matching: Matching,
    start: str,
    config: PublishedConfig,
    seed: int,
    rng: np.random.Generator,
    on_step: OnStep,
) -> Fitted:
    """Pre-train, then alternate Theta step and Pi step until the matching stays.

    Without a given matching the first Theta step has known pairs alone, and the first Pi step
    begins at the uniform Pi or, with ``start`` "known", at the density ratio's choice.
    """
    maps = [fit_input_map(part, config.n_components) for part in rows]
    inputs = (maps[0](rows[0]), maps[1](rows[1]))
    nets = [
        make_network(part.shape[1], config, seed + view).to(part.device)
        for view, part in enumerate(inputs)
    ]
    training = Training((nets[0], nets[1]), inputs, config, rng, on_step)
    if config.reconstruction_weight > 0:
        training.pretrain()
    has_pi_step = bool(len(matching.free_x) and len(matching.free_y))
    fitted = Fitted(training.views((maps[0], maps[1])), matching, None, not has_pi_step)
    fitted.trace.append(matching.pairs)
    for round_number in track(range(config.n_rounds), "Matching and training"):
        training.theta_step(matching)
        if has_pi_step:
            latents = training.latents()
            if start == "known" and round_number == 0:
                matching.partner = partners_by_ratio(latents, matching, config, rng)
                fitted.trace[0] = matching.pairs
            before = matching.partner
            step = pi_step(latents, matching, config, rng)
            matching.partner, fitted.plan = step.partner, step.plan
            changed = 1.0 if before is None else float((before != step.partner).mean())
            training.history[-1] |= {"changed": changed, "pi_dependence": step.value}
            fitted.converged = changed <= config.tol and round_number > 0
        training.finish_round()
        fitted.trace.append(matching.pairs)
        if has_pi_step and fitted.converged:
            break
    fitted.views = training.views((maps[0], maps[1]))
    fitted.history = training.history
    return fitted


def pi_step(
    latents: Views, matching: Matching, config: PublishedConfig, rng: np.random.Generator
) -> MatchingStep:
    """The free rows matched anew; known pairs stay as they are."""
    z_x, z_y = latents
    known = (z_x[matching.known[:, 0]], z_y[matching.known[:, 1]])
    free = (z_x[matching.free_x], z_y[matching.free_y])
    return matching_step(*free, known, matching.partner, config, rng)


def partners_by_ratio(
    latents: Views, matching: Matching, config: PublishedConfig, rng: np.random.Generator
) -> IntArray:
    """Partners of the free rows by the density ratio that is fitted to the known pairs."""
    z_x, z_y = latents
    ratio = fit_density_ratio(z_x, z_y, matching.known, config, rng)
    scores = ratio.scores(z_x[matching.free_x], z_y[matching.free_y])
    return round_plan(scores.cpu().numpy().astype(np.float64), config.relation)


class Training:
    """Both networks, their optimiser and the history of what it did."""

    def __init__(
        self,
        nets: tuple[Autoencoder, Autoencoder],
        inputs: Views,
        config: PublishedConfig,
        rng: np.random.Generator,
        on_step: OnStep,
    ) -> None:
        self.nets, self.inputs, self.config, self.rng = nets, inputs, config, rng
        self.powers = [float((part**2).mean()) for part in inputs]
        self.on_step = on_step
        self.history: list[dict[str, float]] = []
        weights = [*nets[0].parameters(), *nets[1].parameters()]
        self.optimizer = torch.optim.Adam(weights, lr=config.learning_rate)

    def pretrain(self) -> None:
        """Train each autoencoder alone on all rows of its view."""
        for _ in track(range(self.config.n_pretrain_epochs), "Training autoencoders alone"):
            entry = {"step": float(len(self.history))}
            for view, name in enumerate("xy"):
                order = self.rng.permutation(len(self.inputs[view]))
                n_batches = -(-len(order) // self.config.batch_size)
                errors = []
                for batch in np.array_split(order, n_batches):
                    error = self._error(view, self.inputs[view][torch.as_tensor(batch)])
                    errors.append(self._descend(error))
                entry[f"reconstruction_{name}"] = float(np.mean(errors))
            entry["loss"] = entry["reconstruction_x"] + entry["reconstruction_y"]
            self.history.append(entry)
            self.on_step(entry)

    def theta_step(self, matching: Matching) -> None:
        """``n_epochs`` epochs of both networks on the whole objective, the matching held fixed.

        Known pairs and matched ones come in batches of their own, each with its dependence term;
        rows of either side without a partner are reconstructed beside them.
        """
        parts = [matching.known, matching.matched]
        loose = [
            np.setdiff1d(np.arange(len(self.inputs[view])), matching.pairs[:, view])
            for view in (0, 1)
        ]
        largest = max(len(part) for part in (*parts, *loose))
        n_batches = -(-largest // self.config.batch_size)
        for _ in track(range(self.config.n_epochs), "Matching and training"):
            streams = [
                _batches(len(part), n_batches, self.config.batch_size, self.rng)
                for part in (*parts, *loose)
            ]
            entries = []
            for known, matched, rest_x, rest_y in zip(*streams, strict=True):
                batch = (parts[0][known], parts[1][matched])
                entries.append(self._theta_batch(batch, (loose[0][rest_x], loose[1][rest_y])))
            entry = {"step": float(len(self.history))}
            entry |= {key: float(np.mean([e[key] for e in entries])) for key in entries[0]}
            self.history.append(entry)
            self.on_step(entry)

    def finish_round(self) -> None:
        """Note in the history how many rows of each view lie nearly in one point."""
        for name, z in zip("xy", self.latents(), strict=True):
            self.history[-1][f"near_{name}"] = share_near(z)

    @torch.no_grad()
    def latents(self) -> Views:
        """Scaled latents of all rows of both views."""
        z_x, z_y = (
            scale_latents(net.encoder(part))
            for net, part in zip(self.nets, self.inputs, strict=True)
        )
        return z_x, z_y

    def views(self, maps: tuple[InputMap, InputMap]) -> tuple[TrainedView, TrainedView]:
        """Both views as they are now."""
        return (
            trained_view(maps[0], self.nets[0], self.inputs[0]),
            trained_view(maps[1], self.nets[1], self.inputs[1]),
        )

    def _theta_batch(
        self, pairs: tuple[IntArray, IntArray], loose: tuple[IntArray, IntArray]
    ) -> dict[str, float]:
        """One step down the objective of known pairs, matched pairs and rows without a partner."""
        config, sides = self.config, []
        loss = torch.zeros((), device=self.inputs[0].device)
        entry: dict[str, float] = {}
        for view, name in enumerate("xy"):
            numbers = np.concatenate([pairs[0][:, view], pairs[1][:, view], loose[view]])
            rows, place = np.unique(numbers, return_inverse=True)
            batch = self.inputs[view][torch.as_tensor(rows)]
            latents = self.nets[view].encoder(batch)
            if config.reconstruction_weight > 0:
                decoded = self.nets[view].decoder(latents)
                error = reconstruction_error(batch, decoded, self.powers[view])
                loss = loss + config.reconstruction_weight * error
                entry[f"reconstruction_{name}"] = float(error.detach())
            scaled = scale_latents(latents)[torch.as_tensor(place)]
            ends = np.cumsum([len(pairs[0]), len(pairs[1])])
            sides.append((scaled[: ends[0]], scaled[ends[0] : ends[1]]))
        for number, kind in enumerate(("known", "matched")):
            if len(pairs[number]) > 1:
                value = dependence(sides[0][number], sides[1][number], config)
                loss = loss - config.lam * value
                entry[f"dependence_{kind}"] = float(value.detach())
        if not loss.requires_grad:
            return {**entry, "loss": 0.0}
        return {**entry, "loss": self._descend(loss)}

    def _error(self, view: int, batch: Tensor) -> Tensor:
        decoded = self.nets[view](batch)[1]
        return reconstruction_error(batch, decoded, self.powers[view])

    def _descend(self, loss: Tensor) -> float:
        """Take one step down ``loss`` and return its value; refuse a loss that is not finite."""
        value = float(loss.detach())
        if not np.isfinite(value):
            raise ConvergenceError(
                f"Training stopped at step {len(self.history)}: the loss became {value}. "
                "Try a smaller learning_rate or a larger ratio_ridge."
            )
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return value


def _batches(n_rows: int, n_batches: int, size: int, rng: np.random.Generator) -> list[IntArray]:
    """``n_batches`` batches of at most ``size`` row numbers; a short list goes round again."""
    if n_rows == 0:
        return [np.empty(0, dtype=np.int64)] * n_batches
    found: list[IntArray] = []
    while len(found) < n_batches:
        found += np.array_split(rng.permutation(n_rows), -(-n_rows // size))
    return found[:n_batches]


def share_near(latents: Tensor) -> float:
    """Share of the pairs of rows nearer than a tenth of the mean squared distance: 1 = a point."""
    rows = latents[:: -(-len(latents) // MAX_NEAR_ROWS)]
    distances = torch.cdist(rows, rows) ** 2
    others = ~torch.eye(len(rows), dtype=torch.bool, device=rows.device)
    return float((distances[others] < NEAR * distances[others].mean()).float().mean())
