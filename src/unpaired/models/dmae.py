"""Deep Matching Autoencoders: two autoencoders and an unknown matching, learned together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from unpaired._checks import check_choice, check_number, check_pairs, check_view
from unpaired._random import RandomState, derive_rng, derive_seed, resolve_seed
from unpaired.errors import InputError
from unpaired.matching.assignment import assign
from unpaired.matching.describing import describe, softmax_rows
from unpaired.matching.portfolio import RELATIONS, match
from unpaired.math.dependence import MEASURES
from unpaired.models.base import MATCH_ARRAYS, SavedEstimator
from unpaired.nets.autoencoder import Autoencoder, AutoencoderConfig, pick_device
from unpaired.training.loop import LoopConfig, Trained, alternate
from unpaired.training.objective import Bandwidth, ObjectiveConfig
from unpaired.training.readout import Readout, fit_readout
from unpaired.types import FloatArray, IntArray, Match, Objective

BLOCK_ROWS = 1024
COSINE_SHARPNESS = 10.0
"""How much a cosine counts in a probability over classes."""


class DMAE(SavedEstimator):
    """Match two views and learn encoders for both, with no pairs, a few, or all of them.

    Args:
        dependence: What matched latents maximise: "smi", "ukta", "hsic" or "cka".
        dependence_weight: Weight of the dependence against reconstruction (lambda).
        relation: "one-to-one" or "many-to-one".
        n_latent: Latent dimensions per view.
        hidden: Sizes of the hidden layers of each encoder; decoders mirror them.
        n_components: Principal components of each view that the networks see, and dimensions of
            the embedding, at most.
        bandwidth_x: Gaussian width on the standardised latents of x, or "median".
        bandwidth_y: The same for y.
        ratio_ridge: Ridge of the density-ratio fit under SMI.
        readout_ridge: Ridge of the closed-form map that makes both latents comparable.
        n_pretrain_epochs: Epochs of each autoencoder alone.
        n_rounds: Rounds of network update and re-matching, at most.
        n_epochs_per_round: Epochs of network update in a round.
        batch_size: Matched pairs in a step.
        learning_rate: Adam's step size.
        tol: Stop when a round changes at most this share of the partners.
        device: "auto" takes CUDA or MPS when there is one.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``match_`` (a Match over the rows given), ``history_`` (one dict per step),
    ``trace_`` (the matched pairs after each round), ``seed_``.
    """

    def __init__(
        self,
        dependence: str = "smi",
        *,
        dependence_weight: float = 0.7,
        relation: str = "one-to-one",
        n_latent: int = 64,
        hidden: tuple[int, ...] = (256, 128),
        n_components: int = 256,
        bandwidth_x: Bandwidth = "median",
        bandwidth_y: Bandwidth = "median",
        ratio_ridge: float = 1e-2,
        readout_ridge: float = 0.1,
        n_pretrain_epochs: int = 10,
        n_rounds: int = 8,
        n_epochs_per_round: int = 3,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        tol: float = 0.002,
        device: str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.dependence = dependence
        self.dependence_weight = dependence_weight
        self.relation = relation
        self.n_latent = n_latent
        self.hidden = hidden
        self.n_components = n_components
        self.bandwidth_x = bandwidth_x
        self.bandwidth_y = bandwidth_y
        self.ratio_ridge = ratio_ridge
        self.readout_ridge = readout_ridge
        self.n_pretrain_epochs = n_pretrain_epochs
        self.n_rounds = n_rounds
        self.n_epochs_per_round = n_epochs_per_round
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.tol = tol
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        x: Any,
        y: Any,
        pairs: Any = None,
        *,
        start: IntArray | None = None,
        on_step: Callable[[dict[str, float]], None] = lambda step: None,
    ) -> Self:
        """Learn from the rows of x and y; ``pairs`` names known partners.

        Args:
            x: First view, (n_x, d_x).
            y: Second view, (n_y, d_y); n_y may differ from n_x.
            pairs: None, "aligned", or a (k, 2) array of (row of x, row of y). A row may occur in
                several pairs, as an image with five captions does.
            start: Partner of each row of x to begin from, -1 = none; by default
                ``unpaired.match`` finds one.
            on_step: Called after each step with its entry of ``history_``.
        """
        self._check_params()
        rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
        known = check_pairs(pairs, len(rows_x), len(rows_y))
        self.seed_ = resolve_seed(self.random_state)
        self._device = pick_device(self.device)
        self._prepare(rows_x, rows_y)
        views = (self._inputs(rows_x, 0), self._inputs(rows_y, 1))
        free_x, free_y = self._free_rows(known, len(rows_x), len(rows_y))
        rematch = None
        begin = known
        first: Match | None = None
        if len(free_x) and len(free_y):
            begin, first = self._start(rows_x, rows_y, known, start)

            def rematch(z_x: Tensor, z_y: Tensor) -> IntArray:
                """Match the free rows anew by the readout's score; known pairs stay."""
                readout = self._fit_readout(views, (z_x, z_y), trained_pairs[-1])
                embed_x = readout.embed_x(torch.cat([views[0], z_x], 1)[free_x])
                embed_y = readout.embed_y(torch.cat([views[1], z_y], 1)[free_y])
                scores = (embed_x @ embed_y.T).double().cpu().numpy()
                partner = scores.argmax(1) if self.relation == "many-to-one" else assign(-scores)
                kept = partner >= 0
                found = np.column_stack([free_x[kept], free_y[partner[kept]]])
                trained_pairs.append(np.concatenate([known, found]).astype(np.int64))
                return trained_pairs[-1]

        trained_pairs = [begin]
        trained = alternate(
            self._nets,
            views,
            begin,
            rematch,
            ObjectiveConfig(
                self.dependence,
                self.dependence_weight,
                self.bandwidth_x,
                self.bandwidth_y,
                self.ratio_ridge,
            ),
            LoopConfig(
                self.n_pretrain_epochs,
                self.n_rounds,
                self.n_epochs_per_round,
                self.batch_size,
                self.learning_rate,
                self.tol,
            ),
            derive_rng(self.seed_, "loop"),
            on_step,
        )
        self.history_, self.trace_ = trained.history, trained.trace
        with torch.no_grad():
            latents = tuple(net.encoder(view) for net, view in zip(self._nets, views, strict=True))
        self._readout = self._fit_readout(views, latents, trained.pairs)
        self.match_ = self._describe(rows_x, rows_y, known, trained, first)
        return self

    def transform_x(self, x: Any) -> FloatArray:
        """Embed rows of the first view, (n, d_x) -> (n, n_embedding), unit length."""
        return self._embed(x, 0)

    def transform_y(self, y: Any) -> FloatArray:
        """Embed rows of the second view, (n, d_y) -> (n, n_embedding), unit length."""
        return self._embed(y, 1)

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, (n_x, n_y); larger = better."""
        return self.transform_x(x) @ self.transform_y(y).T

    # ---- the parts of fit, in the order in which they are used ----

    def _check_params(self) -> None:
        check_choice(self.dependence, "dependence", MEASURES)
        check_choice(self.relation, "relation", RELATIONS)
        for name in ("n_latent", "n_components", "n_epochs_per_round"):
            check_number(getattr(self, name), name, 1, integer=True)
        for name in ("n_pretrain_epochs", "n_rounds"):
            check_number(getattr(self, name), name, 0, integer=True)
        check_number(self.batch_size, "batch_size", 2, integer=True)
        for name in ("dependence_weight", "tol"):
            check_number(getattr(self, name), name, 0.0)
        for name in ("ratio_ridge", "readout_ridge", "learning_rate"):
            check_number(getattr(self, name), name, 1e-12)
        for name in ("bandwidth_x", "bandwidth_y"):
            if getattr(self, name) != "median":
                check_number(getattr(self, name), name, 1e-12)

    def _prepare(self, rows_x: FloatArray, rows_y: FloatArray) -> None:
        """Fit each view's principal components and scale, and build its autoencoder."""
        self._centres, self._axes, nets = [], [], []
        for name, rows in (("x", rows_x), ("y", rows_y)):
            centre, axes = principal_map(rows, self.n_components, derive_seed(self.seed_, name))
            self._centres.append(centre)
            self._axes.append(axes)
            config = AutoencoderConfig(axes.shape[1], self.n_latent, tuple(self.hidden))
            nets.append(Autoencoder(config, derive_seed(self.seed_, f"net {name}")))
        self._nets = (nets[0].to(self._device), nets[1].to(self._device))

    def _inputs(self, rows: FloatArray, view: int) -> Tensor:
        """Rows of a view as the networks see them."""
        reduced = (rows - self._centres[view]) @ self._axes[view]
        return torch.as_tensor(reduced, dtype=torch.float32, device=self._device)

    def _free_rows(self, known: IntArray, n_x: int, n_y: int) -> tuple[IntArray, IntArray]:
        """The rows that may still be matched."""
        free_x = np.setdiff1d(np.arange(n_x), known[:, 0])
        if self.relation == "many-to-one":
            return free_x, np.arange(n_y)
        return free_x, np.setdiff1d(np.arange(n_y), known[:, 1])

    def _start(
        self, rows_x: FloatArray, rows_y: FloatArray, known: IntArray, start: IntArray | None
    ) -> tuple[IntArray, Match | None]:
        """Pairs to begin from, and the Match they come from unless the caller gave them."""
        found: Match | None = None
        if start is None:
            first = known[np.unique(known[:, 0], return_index=True)[1]]
            if self.relation == "one-to-one":
                first = first[np.unique(first[:, 1], return_index=True)[1]]
            found = match(rows_x, rows_y, first, self.relation, derive_seed(self.seed_, "match"))
            partner = found.partner
        else:
            partner = np.asarray(start, dtype=np.int64)
            if partner.shape != (len(rows_x),) or partner.max() >= len(rows_y):
                raise InputError(
                    f"start must hold a row of y, or -1, for each of the {len(rows_x)} rows of x: "
                    f"it has shape {partner.shape} and largest entry {partner.max()}."
                )
        rows = np.setdiff1d(np.flatnonzero(partner >= 0), known[:, 0])
        if self.relation == "one-to-one":
            rows = rows[~np.isin(partner[rows], known[:, 1])]
        found_pairs = np.column_stack([rows, partner[rows]])
        return np.concatenate([known, found_pairs]).astype(np.int64), found

    def _fit_readout(
        self, views: tuple[Tensor, ...], latents: tuple[Tensor, ...], pairs: IntArray
    ) -> Readout:
        """The closed-form map on inputs and latents together."""
        both = [torch.cat([v, z], 1).double() for v, z in zip(views, latents, strict=True)]
        readout = fit_readout(
            both[0], both[1], pairs, ridge=self.readout_ridge, n_components=self.n_components
        )
        return Readout(*(tensor.float() for tensor in vars(readout).values()))

    def _embed(self, rows: Any, view: int) -> FloatArray:
        self._check_fitted()
        name = "xy"[view]
        array = check_view(rows, name, min_rows=1)
        width = len(self._centres[view])
        if array.shape[1] != width:
            raise InputError(
                f"{name} must have the {width} columns seen in fit: it has {array.shape[1]}. "
                "Use the same features as in training."
            )
        embed = self._readout.embed_x if view == 0 else self._readout.embed_y
        blocks = []
        with torch.no_grad():
            for begin in range(0, len(array), BLOCK_ROWS):
                inputs = self._inputs(array[begin : begin + BLOCK_ROWS], view)
                latents = self._nets[view].encoder(inputs)
                blocks.append(embed(torch.cat([inputs, latents], 1)).cpu().numpy())
        return np.concatenate(blocks)

    def _describe(
        self,
        rows_x: FloatArray,
        rows_y: FloatArray,
        known: IntArray,
        trained: Trained,
        first: Match | None,
    ) -> Match:
        """The Match over the rows given to fit; a known pair has confidence 1.

        No other row is surer than the surest row of the start was: learning on a wrong matching
        makes it look better than it is.
        """
        partner = np.full(len(rows_x), -1, dtype=np.int64)
        partner[trained.pairs[::-1, 0]] = trained.pairs[::-1, 1]  # the first pair of a row wins
        dependence = [h["dependence"] for h in trained.history if "dependence" in h]
        trust, per_start = 1.0, {}
        if first is not None:
            free = np.setdiff1d(np.arange(len(rows_x)), known[:, 0])
            trust = float(first.confidence[free].max(initial=0.0))
            per_start = first.objective.per_start
        objective = Objective(dependence[-1] if dependence else np.nan, per_start)
        embed_x, embed_y = self.transform_x(rows_x), self.transform_y(rows_y)
        sharpness = COSINE_SHARPNESS
        if self.relation == "one-to-one":
            sharpness /= max(float((embed_x[:BLOCK_ROWS] @ embed_y.T).std()), 1e-12)
        parts = []
        for rows in np.array_split(np.arange(len(rows_x)), -(-len(rows_x) // BLOCK_ROWS)):
            scores = embed_x[rows] @ embed_y.T
            shares = trust * softmax_rows(scores, sharpness)
            parts.append(describe(scores, partner[rows], objective, probabilities=shares))
        per_row: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in MATCH_ARRAYS
        }
        per_row["confidence"][known[:, 0]] = 1.0
        found = replace(parts[0], relation=self.relation, converged=trained.converged, **per_row)
        if first is None:
            return found
        return replace(found, agreement=first.agreement, gap=first.gap)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays: dict[str, np.ndarray] = {}
        for view, name in enumerate("xy"):
            arrays[f"centre.{name}"] = self._centres[view]
            arrays[f"axes.{name}"] = self._axes[view]
            for key, tensor in self._nets[view].state_dict().items():
                arrays[f"net.{name}.{key}"] = tensor.cpu().numpy()
        for key, tensor in vars(self._readout).items():
            arrays[f"readout.{key}"] = tensor.cpu().numpy()
        for step, pairs in enumerate(self.trace_):
            arrays[f"trace.{step}"] = pairs
        configs = [asdict(net.config) for net in self._nets]
        values = {
            "seed": self.seed_,
            "history": self.history_,
            "nets": configs,
            "n_trace": len(self.trace_),
        }
        return arrays, values

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.seed_, self.history_ = values["seed"], values["history"]
        self.trace_ = [arrays[f"trace.{step}"] for step in range(values["n_trace"])]
        self._device = pick_device(self.device)
        self._centres = [arrays["centre.x"], arrays["centre.y"]]
        self._axes = [arrays["axes.x"], arrays["axes.y"]]
        nets = []
        for name, config in zip("xy", values["nets"], strict=True):
            net = Autoencoder(AutoencoderConfig(**config), seed=0)
            prefix = f"net.{name}."
            net.load_state_dict(
                {
                    key.removeprefix(prefix): torch.as_tensor(array)
                    for key, array in arrays.items()
                    if key.startswith(prefix)
                }
            )
            nets.append(net.to(self._device))
        self._nets = (nets[0], nets[1])
        self._readout = Readout(
            *(
                torch.as_tensor(arrays[f"readout.{key}"], device=self._device)
                for key in ("mean_x", "map_x", "mean_y", "map_y")
            )
        )


def principal_map(rows: FloatArray, n_components: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Centre (d,) and axes (d, p) that turn rows into principal components of mean square 1.

    One scale for all components: directions keep their relative size. Directions without variance
    (constant or repeated columns) are dropped.
    """
    from sklearn.decomposition import PCA

    n_kept = min(n_components, rows.shape[1], len(rows) - 1)
    pca = PCA(n_kept, random_state=seed).fit(rows)
    kept = pca.explained_variance_ > 1e-10 * pca.explained_variance_[0]
    axes = pca.components_[kept].T
    scale = np.sqrt(pca.explained_variance_[kept].mean())
    return np.asarray(pca.mean_), np.asarray(axes / scale)
