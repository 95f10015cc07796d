"""What all methods with two networks share: inputs, start, training loop and read-out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from unpaired._checks import check_choice, check_number
from unpaired._random import derive_rng, derive_seed
from unpaired.baselines.base import Found, TwoViewMethod
from unpaired.baselines.closed_form import (
    FEW_ROWS,
    PairedMaps,
    Ridge,
    check_ridge,
    choose_ridges,
    fit_cca,
)
from unpaired.baselines.closed_form import cca_fit as cca_fitter
from unpaired.baselines.inputs import (
    Moments,
    hold_out,
    mean_reciprocal_rank,
    pair_moments,
    principal,
)
from unpaired.errors import ConvergenceError
from unpaired.naming.smooth_space import unit_rows
from unpaired.nets.autoencoder import pick_device
from unpaired.nets.tower import Tower, TowerConfig
from unpaired.types import FloatArray, IntArray

Towers = tuple[Tower, Tower]
CLIP_NORM = 5.0
"""Gradients longer than this are shortened to it: one odd batch must not throw the weights away."""


@dataclass(frozen=True)
class Batch:
    """Matched rows of a step; row i of x and of y is one pair."""

    x: Tensor
    """(b, p_x) inputs, with noise."""
    y: Tensor
    clean_x: Tensor
    """(b, p_x) the same without noise: what a decoder aims at."""
    clean_y: Tensor
    same: Tensor
    """(b, b) whether pairs i and j share a row, so that they are no negatives of each other."""
    free_x: Tensor
    """(c, p_x) rows of x that are in no pair; empty when there are none or nobody asked."""
    free_y: Tensor


@dataclass(eq=False, repr=False, kw_only=True)
class TowerMethod(TwoViewMethod):
    """A method that trains one network per view on known pairs by a loss of its own.

    Inputs are principal components, divided by sqrt(variance + ridge * mean variance); the noise
    of standard deviation sqrt(ridge / (variance + ridge)) added in training is what that ridge
    means to a network. The ridges are those that CCA chooses by held-out pairs. Each tower is a
    linear map plus a correction by fully connected layers with ReLU. Started at "cca" the map is
    that of regularised CCA and the correction zero; started at "random" both are drawn.
    ``start_`` says which one was taken. A child writes ``_loss``.

    Args:
        n_latent: Dimensions of the latents, at most; no more than the smaller view has.
        hidden: Sizes of the hidden layers of each correction; decoders mirror them.
        n_inputs: Principal components of each view that the networks see, at most.
        start: "cca", "random" weights, or "best": both are trained on four fifths of the pairs, and
            the one that ranks the held-out partners higher is trained anew on all (with pairs of
            fewer than ten rows of x nothing can be held out: "cca").
        noise: Times the noise above; 0 for none.
        readout: "cosine" of the latents, or "cca": a closed-form map of them first.
        n_epochs: Passes over the pairs.
        least_steps: Steps to take when that many epochs are fewer, but at most one for ten pairs,
            lest few pairs are learned by heart.
        batch_size: Pairs in a step.
        learning_rate: Adam's step size at first; it falls to zero along a cosine.
        weight_decay: AdamW's decay.
        ridge: Ridge of the inputs and of the start, or "auto".
        device: "auto" takes CUDA or MPS when there is one.
        random_state: Seed of everything drawn.
    """

    n_latent: int = 256
    hidden: tuple[int, ...] = (512,)
    n_inputs: int = 384
    start: Literal["cca", "random", "best"] = "cca"
    noise: float = 1.0
    readout: Literal["cosine", "cca"] = "cosine"
    n_epochs: int = 10
    least_steps: int = 200
    batch_size: int = 512
    learning_rate: float = 5e-4
    weight_decay: float = 1e-2
    ridge: Ridge = "auto"
    device: str = "auto"

    ridge_power: ClassVar[float] = 0.5
    """How fast the ridge of a "cca" read-out falls with the pairs."""
    has_decoder: ClassVar[bool] = False
    uses_free_rows: ClassVar[bool] = False
    """Whether the loss looks at rows that are in no pair."""

    # ---- what a child writes ----

    @abstractmethod
    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        """The loss of one step; any extra weights are in ``_extra``."""

    def _start_maps(self, moments: Moments) -> PairedMaps:
        """The linear maps (p, k) at which the towers begin, from moments of noisy inputs."""
        return cca_fitter(self.n_latent, 0.5)(moments, 1e-6, 1e-6)

    def _latent_width(self, n_inputs: tuple[int, int]) -> int:
        """Dimensions of the latents for views of these many inputs."""
        return min(self.n_latent, *n_inputs)

    def _order(self, pairs: IntArray, rng: np.random.Generator) -> IntArray:
        """The order in which an epoch goes through the pairs."""
        return rng.permutation(len(pairs))

    def _fix_towers(self) -> None:
        """Hold back weights that must not learn."""

    def _extra_weights(self) -> list[Tensor]:
        """Weights of the loss itself, such as a temperature."""
        return []

    # ---- the parts of fit, in the order in which they are used ----

    def _check_params(self) -> None:
        for name in ("n_latent", "n_inputs"):
            check_number(getattr(self, name), name, 1, integer=True)
        for name in ("n_epochs", "least_steps"):
            check_number(getattr(self, name), name, 0, integer=True)
        check_number(self.batch_size, "batch_size", 2, integer=True)
        check_choice(self.start, "start", ("cca", "random", "best"))
        check_choice(self.readout, "readout", ("cosine", "cca"))
        for name in ("noise", "weight_decay"):
            check_number(getattr(self, name), name, 0.0)
        check_number(self.learning_rate, "learning_rate", 1e-12)
        check_ridge(self.ridge, "ridge")

    @property
    def start_(self) -> str:
        """Where the towers were started: "cca" or "random"."""
        self._check_fitted()
        return str(self._values["start"])

    def _fit(self, x: FloatArray, y: FloatArray, known: IntArray) -> Found | None:
        self._learn(x, y, known)
        return None

    def _learn(
        self, x: FloatArray, y: FloatArray, pairs: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Train the towers on ``pairs`` from the start asked for; return the inputs of all rows."""
        self._device = pick_device(self.device)
        inputs = self._prepare(x, y, pairs)
        start = self._better_start(inputs, pairs) if self.start == "best" else self.start
        self._train_from(start, inputs, pairs)
        return inputs

    def _train_from(
        self, start: str, inputs: tuple[FloatArray, FloatArray], pairs: IntArray
    ) -> None:
        self.history_ = []
        self._build(start, inputs, pairs)
        self._train(inputs, pairs)
        self._finish(inputs, pairs)
        self._values["start"] = start

    def _better_start(self, inputs: tuple[FloatArray, FloatArray], pairs: IntArray) -> str:
        """The start from which held-out partners come to rank higher."""
        if len(np.unique(pairs[:, 0])) < FEW_ROWS:
            return "cca"
        kept, judged = hold_out(pairs, derive_rng(self.seed_, "start"))
        rows_x, owner = np.unique(judged[:, 0], return_inverse=True)
        ranks = {}
        for start in ("cca", "random"):
            self._train_from(start, inputs, kept)
            embed_x = unit_rows(self._read(inputs[0][rows_x], 0))
            embed_y = unit_rows(self._read(inputs[1][judged[:, 1]], 1))
            ranks[start] = mean_reciprocal_rank(embed_x, embed_y, owner)
        return max(ranks, key=lambda start: ranks[start])

    def _prepare(
        self, x: FloatArray, y: FloatArray, known: IntArray
    ) -> tuple[FloatArray, FloatArray]:
        """Fit what the towers see of both views and return it for all rows."""
        axes = [
            principal(rows, self.n_inputs, derive_seed(self.seed_, name))
            for name, rows in (("x", x), ("y", y))
        ]
        parts = (axes[0].apply(x), axes[1].apply(y))
        fit = cca_fitter(self.n_latent, 0.5)
        rng = derive_rng(self.seed_, "ridges")
        ridges = choose_ridges(fit, *parts, known, self.ridge, self.ridge, rng)
        inputs, noises = [], []
        for name, axis, rows, ridge in zip("xy", axes, parts, ridges, strict=True):
            added = ridge * float(axis.variances.mean())
            scale = 1.0 / np.sqrt(axis.variances + added)
            self._arrays |= {f"centre.{name}": axis.centre, f"axes.{name}": axis.axes * scale}
            noises.append(np.sqrt(added) * scale)
            inputs.append(rows * scale)
        self._noises = tuple(self._tensor(noise) for noise in noises)
        return inputs[0], inputs[1]

    def _build(self, start: str, inputs: tuple[FloatArray, FloatArray], pairs: IntArray) -> None:
        """Make the towers, started at the CCA of ``pairs`` or at random weights."""
        n_latent = self._latent_width((inputs[0].shape[1], inputs[1].shape[1]))
        moments = pair_moments(inputs[0], inputs[1], pairs)
        noises = [noise.cpu().numpy().astype(np.float64) for noise in self._noises]
        ridged = [np.diag(noise**2) for noise in noises]  # the ridge, as the inputs see it
        maps = self._start_maps(Moments(moments.xx + ridged[0], moments.xy, moments.yy + ridged[1]))
        towers = []
        for name, rows, begin in zip("xy", inputs, (maps.map_x, maps.map_y), strict=True):
            n_inputs = rows.shape[1]
            config = TowerConfig(
                n_inputs, n_latent, tuple(self.hidden), n_inputs if self.has_decoder else 0
            )
            weights = None
            if start == "cca":  # fewer directions than latents leave the rest at zero
                weights = torch.zeros(n_inputs, n_latent)
                width = min(n_latent, begin.shape[1])
                weights[:, :width] = torch.as_tensor(begin[:, :width])
            towers.append(Tower(config, derive_seed(self.seed_, f"tower {name}"), weights))
        self._towers = (towers[0].to(self._device), towers[1].to(self._device))
        self._fix_towers()
        self._extra = [p.to(self._device).requires_grad_() for p in self._extra_weights()]

    def _tensor(self, rows: FloatArray) -> Tensor:
        return torch.as_tensor(rows, dtype=torch.float32, device=self._device)

    def _train(
        self, inputs: tuple[FloatArray, FloatArray], pairs: IntArray, n_epochs: int | None = None
    ) -> None:
        """Minimise ``_loss`` over shuffled batches of ``pairs``; towers change in place."""
        rng = derive_rng(self.seed_, f"batches {len(self.history_)}")
        views = [self._tensor(rows) for rows in inputs]
        free = [
            np.setdiff1d(np.arange(len(rows)), pairs[:, column])
            for column, rows in enumerate(inputs)
        ]
        generator = torch.Generator().manual_seed(derive_seed(self.seed_, "noise"))
        learned = [*self._towers[0].parameters(), *self._towers[1].parameters(), *self._extra]
        weights = [weight for weight in learned if weight.requires_grad]
        optimizer = torch.optim.AdamW(
            weights, lr=self.learning_rate, weight_decay=self.weight_decay
        )
        n_batches = max(1, -(-len(pairs) // self.batch_size))
        if n_epochs is None:
            n_steps = min(self.least_steps, len(pairs) // 10)
            n_epochs = max(self.n_epochs, -(-n_steps // n_batches))
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            optimizer, max(1, n_epochs * n_batches)
        )
        for epoch in range(n_epochs):
            losses = []
            for part in np.array_split(self._order(pairs, rng), n_batches):
                batch = self._batch(views, pairs[part], free, rng, generator)
                loss = self._loss(self._towers, batch)
                losses.append(float(loss.item()))
                if not np.isfinite(losses[-1]):
                    raise ConvergenceError(
                        f"Training stopped in epoch {epoch}: the loss became {losses[-1]}. "
                        "Try a smaller learning_rate."
                    )
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(weights, CLIP_NORM)
                optimizer.step()
                schedule.step()
            step = {"step": float(len(self.history_)), "loss": float(np.mean(losses))}
            self.history_.append(step)

    def _batch(
        self,
        views: list[Tensor],
        pairs: IntArray,
        free: list[IntArray],
        rng: np.random.Generator,
        generator: torch.Generator,
    ) -> Batch:
        """The rows of one step, with noise drawn for them."""
        rows = torch.as_tensor(pairs, device=self._device)
        clean = [views[0][rows[:, 0]], views[1][rows[:, 1]]]
        noisy = [
            part + self.noise * spread * torch.randn(part.shape, generator=generator).to(part)
            for part, spread in zip(clean, self._noises, strict=True)
        ]
        same = (rows[:, None, 0] == rows[None, :, 0]) | (rows[:, None, 1] == rows[None, :, 1])
        others = []
        for view, numbers in zip(views, free, strict=True):
            n_drawn = min(len(numbers), self.batch_size) if self.uses_free_rows else 0
            drawn = rng.choice(numbers, n_drawn, replace=False) if n_drawn else numbers[:0]
            others.append(view[torch.as_tensor(drawn, device=self._device)])
        return Batch(noisy[0], noisy[1], clean[0], clean[1], same, others[0], others[1])

    def _finish(self, inputs: tuple[FloatArray, FloatArray], pairs: IntArray) -> None:
        """Keep the towers' weights and fit the read-out on ``pairs``."""
        for name, tower in zip("xy", self._towers, strict=True):
            for key, tensor in tower.state_dict().items():
                self._arrays[f"tower.{name}.{key}"] = tensor.cpu().numpy().copy()
        self._values["towers"] = [asdict(tower.config) for tower in self._towers]
        if self.readout == "cca":
            self._fit_readout(inputs, pairs)

    def _fit_readout(self, inputs: tuple[FloatArray, FloatArray], pairs: IntArray) -> None:
        """CCA of the latents of ``pairs``, with the noise of training and a ridge of its own.

        The networks were fitted to the same pairs, so none can be held out to choose a ridge: it is
        (n_latent / paired rows of x) ** ``ridge_power``, in units of the mean variance. Each view's
        own moments come from noisy latents, the products of both from clean ones, which noise
        would only blur.
        """
        rng = derive_rng(self.seed_, "readout")
        clean, noisy = [], []
        for view, (rows, spread) in enumerate(zip(inputs, self._noises, strict=True)):
            noise = self.noise * spread.cpu().numpy() * rng.standard_normal(rows.shape)
            latents = self._encode(rows, view)
            name = "xy"[view]
            self._arrays[f"offset.{name}"] = latents.mean(0)
            clean.append(latents - self._arrays[f"offset.{name}"])
            noisy.append(self._encode(rows + noise, view) - self._arrays[f"offset.{name}"])
        if self.noise > 0:
            held = pair_moments(noisy[0], noisy[1], pairs)
            cross = pair_moments(clean[0], clean[1], pairs).xy
            fit = cca_fitter(self.n_latent, 0.5)
            ridge = (clean[0].shape[1] / len(np.unique(pairs[:, 0]))) ** self.ridge_power
            maps = fit(Moments(held.xx, cross, held.yy), ridge, ridge)
        else:
            maps = fit_cca(clean[0], clean[1], pairs, rng, n_components=self.n_latent)
        self._arrays |= {"map.x": maps.map_x, "map.y": maps.map_y}

    def _encode(self, inputs: FloatArray, view: int) -> FloatArray:
        """Latents (n, k) of input rows."""
        with torch.no_grad():
            latents = [
                self._towers[view](self._tensor(inputs[begin : begin + 4096])).cpu().numpy()
                for begin in range(0, len(inputs), 4096)
            ]
        return np.concatenate(latents).astype(np.float64)

    def _map(self, rows: FloatArray, view: int) -> FloatArray:
        name = "xy"[view]
        inputs = (rows - self._arrays[f"centre.{name}"]) @ self._arrays[f"axes.{name}"]
        return self._read(inputs, view)

    def _read(self, inputs: FloatArray, view: int) -> FloatArray:
        """The embedding of input rows: their latents, through the read-out where there is one."""
        latents = self._encode(inputs, view)
        if self.readout == "cca":
            name = "xy"[view]
            latents = (latents - self._arrays[f"offset.{name}"]) @ self._arrays[f"map.{name}"]
        return latents

    def _rebuild(self) -> None:
        self._device = pick_device(self.device)
        towers = []
        for name, config in zip("xy", self._values["towers"], strict=True):
            settings: dict[str, Any] = {**config, "hidden": tuple(config["hidden"])}
            tower = Tower(TowerConfig(**settings), seed=0)
            prefix = f"tower.{name}."
            tower.load_state_dict(
                {
                    key.removeprefix(prefix): torch.as_tensor(array)
                    for key, array in self._arrays.items()
                    if key.startswith(prefix)
                }
            )
            towers.append(tower.to(self._device))
        self._towers = (towers[0], towers[1])
