"""Deep Matching Autoencoders: two encoders and an unknown matching, learned together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from unpaired._checks import check_choice, check_pairs, check_partners, check_view
from unpaired._random import RandomState, derive_rng, derive_seed, resolve_seed
from unpaired.errors import InputError
from unpaired.evaluation.retrieval import foscttm
from unpaired.matching.portfolio import RELATIONS, Alignment, align, match
from unpaired.matching.soft_match import SURE
from unpaired.math.dependence import MEASURES
from unpaired.models.base import SavedEstimator
from unpaired.models.placing import (
    describe_partners,
    free_pairs,
    match_free,
    numbered,
    one_to_one,
    place_rows,
    share_of_partners,
    without_pairs,
)
from unpaired.models.presets import (
    NAMES,
    Settings,
    learner_config,
    published_config,
    resolve,
)
from unpaired.nets.autoencoder import pick_device
from unpaired.training.closed_form import Rows, pair_weights
from unpaired.training.common_space import CommonSpace
from unpaired.training.learner import learn
from unpaired.training.objective import Bandwidth
from unpaired.training.published import PublishedSpace, learn_published
from unpaired.training.soft_plan import SoftPlan, hard_plan, product_blocks, soft_plan
from unpaired.types import FloatArray, IntArray, Match, Objective

FEW_ROWS = 64
"""Below so many rows of x with a known partner, the matching engine gives the start."""
LEAST_ROWS = 8
"""Below so many, what the engine finds is taken over."""
START_TEMPERATURE = 0.3
"""Of the plan made of the engine's scores, in their standard deviations."""


class DMAE(SavedEstimator):
    """Match two views and learn encoders for both, with no pairs, a few, or all of them.

    Args:
        dependence: What matched latents maximise: "smi", "ukta", "hsic" or "cka".
        preset: Where constants that are None come from: "default", or "paper" for the method as
            published (kernel dependence plus reconstruction, hard matching, density-ratio score).
        relation: "one-to-one" or "many-to-one".
        dependence_weight: Weight of the dependence (lambda).
        reconstruction_weight: Weight of both decoders' errors; 0 builds no decoder.
        n_latent: Latent dimensions per view, at most.
        hidden: Sizes of hidden layers. The paper's encoders have one layer each, and decoders
            mirror them; the default's residual networks use the first.
        n_components: Principal components of each view that are used, at most.
        bandwidth_x: Gaussian width on the standardised latents of x, or "median".
        bandwidth_y: The same for y.
        ratio_ridge: Ridge of the density-ratio fit under SMI with a kernel critic.
        ridge: Ridge of the closed forms for one pair, in units of the total variance; it falls
            with the number of pairs. None lets known pairs, held out in turn, ask for less.
        soft_weight: Weight of a soft pair of full confidence against a known pair.
        sum_penalty: Penalty on row and column sums in the paper's matching step.
        n_pretrain_epochs: Epochs of each autoencoder alone (paper).
        n_rounds: Rounds of learning and re-matching, at most.
        n_epochs: Epochs of the networks: in each round (paper), or after the rounds (default).
        batch_size: Matched pairs in a step.
        learning_rate: Adam's step size, at its peak.
        tol: Stop when a round changes at most this share of the partners (paper).
        device: "auto" takes CUDA or MPS when there is one.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``match_`` (a Match over the rows given), ``history_`` (one dict per step),
    ``trace_`` (the matched pairs after each round), ``seed_``.
    """

    def __init__(
        self,
        dependence: str = "smi",
        *,
        preset: str = "default",
        relation: str = "one-to-one",
        dependence_weight: float | None = None,
        reconstruction_weight: float | None = None,
        n_latent: int | None = None,
        hidden: tuple[int, ...] | None = None,
        n_components: int | None = None,
        bandwidth_x: Bandwidth | None = None,
        bandwidth_y: Bandwidth | None = None,
        ratio_ridge: float | None = None,
        ridge: float | None = None,
        soft_weight: float | None = None,
        sum_penalty: float | None = None,
        n_pretrain_epochs: int | None = None,
        n_rounds: int | None = None,
        n_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        tol: float | None = None,
        device: str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.dependence = dependence
        self.preset = preset
        self.relation = relation
        self.dependence_weight = dependence_weight
        self.reconstruction_weight = reconstruction_weight
        self.n_latent = n_latent
        self.hidden = hidden
        self.n_components = n_components
        self.bandwidth_x = bandwidth_x
        self.bandwidth_y = bandwidth_y
        self.ratio_ridge = ratio_ridge
        self.ridge = ridge
        self.soft_weight = soft_weight
        self.sum_penalty = sum_penalty
        self.n_pretrain_epochs = n_pretrain_epochs
        self.n_rounds = n_rounds
        self.n_epochs = n_epochs
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
            start: Partner of each row of x to begin from, -1 = none. By default known pairs are
                the start, or what ``unpaired.match`` finds where there are hardly any.
            on_step: Called after each step with its entry of ``history_``.
        """
        check_choice(self.dependence, "dependence", MEASURES)
        check_choice(self.relation, "relation", RELATIONS)
        settings = resolve(self.preset, {name: getattr(self, name) for name in NAMES})
        rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
        known = check_pairs(pairs, len(rows_x), len(rows_y))
        partner = None if start is None else check_partners(start, len(rows_x), len(rows_y))
        self.seed_ = resolve_seed(self.random_state)
        self._device = pick_device(self.device)
        self.widths_ = (rows_x.shape[1], rows_y.shape[1])
        free_x, free_y = self._free_rows(known, len(rows_x), len(rows_y))
        wanted = bool(len(free_x) and len(free_y))
        found: Alignment | Match | None = None
        few = len(np.unique(known[:, 0])) < (FEW_ROWS if self.relation == "one-to-one" else 2)
        if wanted and partner is None and (few or self.preset == "paper"):
            found = self._engine(rows_x, rows_y, known)
            partner = (found.match if isinstance(found, Alignment) else found).partner
        views = self._tensor(rows_x), self._tensor(rows_y)
        if self.preset == "paper":
            self.match_ = self._fit_published(views, known, partner, settings, on_step)
        else:
            free = (free_x, free_y)
            self.match_ = self._fit_default(views, known, free, partner, found, settings, on_step)
        return self

    def transform_x(self, x: Any) -> FloatArray:
        """Embed rows of the first view, (n, d_x) -> (n, n_embedding)."""
        return self._embedded(x, 0)

    def transform_y(self, y: Any) -> FloatArray:
        """Embed rows of the second view, (n, d_y) -> (n, n_embedding)."""
        return self._embedded(y, 1)

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, (n_x, n_y); larger = better.

        The mean cosine of all parts of the model, less how crowded each row's neighbourhood among
        the training rows is (hubness correction), plus a share of the log density of training
        pairs around both rows.
        """
        scores = self._space.scores(self._checked(x, 0), self._checked(y, 1))
        return np.asarray(scores.cpu().numpy())

    def score(self, x: Any, y: Any, pairs: Any = None) -> float:
        """How good the model is on rows it may not have seen, 0 to 1; larger = better.

        With ``pairs`` ("aligned" or (k, 2), one to one): 1 - FOSCTTM on them. Without: how
        consistent the model is, 1 - the mean relative rank of a row among the best partners of its
        own best partner; no label is needed, so ``GridSearchCV`` can use it.
        """
        scores = self.score_matrix(x, y)
        known = check_pairs(pairs, *scores.shape)
        if len(known):
            return 1.0 - foscttm(scores[np.ix_(known[:, 0], known[:, 1])])
        ranks = []
        for matrix in (scores, scores.T):
            best = matrix.argmax(1)
            own = matrix[np.arange(len(best)), best]
            ranks.append((matrix[:, best] > own[None, :]).mean())
        return 1.0 - float(np.mean(ranks))

    # ---- the parts of fit, in the order in which they are used ----

    def _free_rows(self, known: IntArray, n_x: int, n_y: int) -> tuple[IntArray, IntArray]:
        """The rows that may still be matched."""
        free_x = np.setdiff1d(np.arange(n_x), known[:, 0])
        if self.relation == "many-to-one":
            return free_x, np.arange(n_y)
        return free_x, np.setdiff1d(np.arange(n_y), known[:, 1])

    def _engine(self, x: FloatArray, y: FloatArray, known: IntArray) -> Alignment | Match:
        """What the matching engine finds, with the known pairs it can take."""
        seed = derive_seed(self.seed_, "match")
        if self.relation == "many-to-one":
            first = known[np.unique(known[:, 0], return_index=True)[1]]
            return match(x, y, first, self.relation, seed)
        rows, kept, pairs = one_to_one(y, known)
        found = align(x, rows, pairs, random_state=seed)
        partner, runner_up = (
            numbered(column, kept) for column in (found.match.partner, found.match.runner_up)
        )
        return replace(
            found, match=replace(found.match, partner=partner, runner_up=runner_up, n_y=len(y))
        )

    def _fit_default(
        self,
        views: tuple[Tensor, Tensor],
        known: IntArray,
        free: tuple[IntArray, IntArray],
        partner: IntArray | None,
        found: Alignment | Match | None,
        settings: Settings,
        on_step: Callable[[dict[str, float]], None],
    ) -> Match:
        """Closed forms, soft rounds and networks; see ``training.learner``."""
        x, y = views
        config = learner_config(self.dependence, settings)
        config = replace(config, keeps_ridge=self.ridge is not None)
        seed = derive_seed(self.seed_, "learner")
        begin: SoftPlan | None = None
        few = len(np.unique(known[:, 0])) < LEAST_ROWS
        if isinstance(found, Alignment) and found.kind == "small" and not few:
            found, partner = None, None  # so small that the known pairs say more
        elif isinstance(found, Alignment) and found.kind not in ("sharp", "small"):
            placed_x, placed_y = (
                self._tensor(embed(view.double().cpu().numpy()))
                for embed, view in ((found.embed_x, x), (found.embed_y, y))
            )
            if few:
                space, settled = without_pairs(
                    views, (placed_x, placed_y), found, config.closed_form, seed
                )
                self._space: CommonSpace | PublishedSpace = space
                self.history_, self.trace_ = [], [found.match.pairs]
                if settled is not found.match:
                    self.trace_.append(settled.pairs)
                return settled
            begin = soft_plan(
                product_blocks(placed_x[free[0]], placed_y[free[1]]),
                (len(free[0]), len(free[1])),
                START_TEMPERATURE,
                config.closed_form.n_candidates,
            )
            found, partner = None, None
        pairs = known
        if found is not None and partner is not None:  # evident, or all there is
            extra = np.setdiff1d(np.flatnonzero(partner >= 0), known[:, 0])
            pairs = np.concatenate([known, np.column_stack([extra, partner[extra]])])
            free, partner = self._free_rows(pairs, len(x), len(y)), None
        if partner is not None:
            position = np.full(len(y), -1)
            position[free[1]] = np.arange(len(free[1]))
            begin = hard_plan(
                np.where(partner[free[0]] >= 0, position[partner[free[0]]], -1),
                len(free[1]),
                self._device,
            )
        known_rows = torch.as_tensor(pairs, device=self._device)
        many = self.relation == "many-to-one"
        rows = Rows(
            known_rows,
            pair_weights(known_rows, len(x), len(y), many_to_one=many),
            torch.as_tensor(free[0], device=self._device),
            torch.as_tensor(free[1], device=self._device),
        )
        learned = learn(x, y, rows, config, seed, start=begin, balanced=not many, on_step=on_step)
        self._space, self.history_ = learned.space, learned.history
        self.trace_ = [
            np.concatenate([pairs, free_pairs(step.cpu().numpy(), free)]) for step in learned.trace
        ] or [pairs]
        if isinstance(found, Alignment):
            return found.match
        placed = place_rows(self._space, views, free)
        chosen = match_free(placed, self.relation)
        objective = Objective(learned.dependence, {"known pairs": learned.dependence})
        described = describe_partners(placed, chosen, free, pairs, views, objective, self.relation)
        confidence = described.confidence.copy()
        if learned.plan is not None:
            confidence[free[0]] = np.minimum(SURE, share_of_partners(learned.plan, chosen))
        if found is not None:  # classes named by the engine
            confidence = np.minimum(confidence, found.confidence)
        confidence[known[:, 0]] = 1.0
        return replace(described, confidence=confidence)

    def _fit_published(
        self,
        views: tuple[Tensor, Tensor],
        known: IntArray,
        partner: IntArray | None,
        settings: Settings,
        on_step: Callable[[dict[str, float]], None],
    ) -> Match:
        """The published alternation; see ``training.published``."""
        found = known[:0]
        if partner is not None:
            rows = np.setdiff1d(np.flatnonzero(partner >= 0), known[:, 0])
            if self.relation == "one-to-one":
                rows = rows[~np.isin(partner[rows], known[:, 1])]
            found = np.column_stack([rows, partner[rows]])
        config = published_config(self.dependence, self.relation, settings)
        learned = learn_published(
            views,
            np.concatenate([known, found]).astype(np.int64),
            len(known),
            config,
            derive_rng(self.seed_, "loop"),
            self.seed_,
            on_step,
        )
        self._space, self.history_, self.trace_ = learned.space, learned.history, learned.trace
        dependence = [h["dependence"] for h in learned.history if "dependence" in h]
        value = dependence[-1] if dependence else float("nan")
        partner = np.full(len(views[0]), -1, dtype=np.int64)
        partner[learned.trace[-1][::-1, 0]] = learned.trace[-1][::-1, 1]  # a row's first pair wins
        objective = Objective(value, {"published": value})
        everything = np.arange(len(views[0])), np.arange(len(views[1]))
        placed = place_rows(self._space, views, everything)
        described = describe_partners(
            placed, partner, everything, known, views, objective, self.relation
        )
        confidence = np.minimum(SURE, described.confidence)
        confidence[known[:, 0]] = 1.0
        return replace(described, confidence=confidence, converged=learned.converged)

    # ---- rows in, embeddings out ----

    def _tensor(self, rows: FloatArray) -> Tensor:
        return torch.as_tensor(rows, dtype=torch.float32, device=self._device)

    def _checked(self, rows: Any, view: int) -> Tensor:
        self._check_fitted()
        name = "xy"[view]
        array = check_view(rows, name, min_rows=1)
        if array.shape[1] != self.widths_[view]:
            raise InputError(
                f"{name} must have the {self.widths_[view]} columns seen in fit: it has "
                f"{array.shape[1]}. Use the same features as in training."
            )
        return self._tensor(array)

    def _embedded(self, rows: Any, view: int) -> FloatArray:
        checked = self._checked(rows, view)
        return np.asarray(self._space.embed(checked, view).cpu().numpy())

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {f"space.{name}": array for name, array in self._space.arrays().items()}
        arrays |= {f"trace.{step}": pairs for step, pairs in enumerate(self.trace_)}
        return arrays, {
            "seed": self.seed_,
            "history": self.history_,
            "widths": self.widths_,
            "n_trace": len(self.trace_),
        }

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.seed_, self.history_ = values["seed"], values["history"]
        self.widths_ = tuple(values["widths"])
        self.trace_ = [arrays[f"trace.{step}"] for step in range(values["n_trace"])]
        self._device = pick_device(self.device)
        kind = PublishedSpace if self.preset == "paper" else CommonSpace
        space = {k.removeprefix("space."): a for k, a in arrays.items() if k.startswith("space.")}
        self._space = kind.from_arrays(space, self._device)
