"""Deep Matching Autoencoders as published (Mukherjee, Yamada & Hospedales 2017)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from unpaired._checks import check_choice, check_pairs, check_partners
from unpaired._random import RandomState, derive_rng, derive_seed, resolve_seed
from unpaired.errors import CollapseWarning, InputError
from unpaired.evaluation.retrieval import foscttm
from unpaired.models.base import SavedEstimator
from unpaired.models.output import FrameOutput
from unpaired.nets.autoencoder import pick_device
from unpaired.published.config import MAX_PLAN, NAMES, PublishedConfig, check_used, resolve
from unpaired.published.loop import Fitted, Matching, learn
from unpaired.published.networks import view_from_arrays
from unpaired.published.readout import fit_readout, readout_arrays, readout_from_arrays
from unpaired.types import FloatArray, IntArray, Match, Objective

STARTS = ("uniform", "known", "engine")
COLLAPSED = 0.9
"""Share of the pairs of rows that lie nearly in one point from which on a view has collapsed."""


class PublishedDMAE(FrameOutput, SavedEstimator):
    """The published method, its errata mended; ``docs/published.md`` lists every difference.

    Pre-train two autoencoders, then by turns: a Theta step on reconstruction minus lam times the
    dependence of known pairs and of matched pairs, and a Pi step on the relaxed matching. None
    stands for the value of ``unpaired.published.config``, where the meaning and the origin of each
    constant are told. A constant that a fit would not use is refused.

    Args:
        dependence: "smi" or "ukta".
        relation: "one-to-one", or "many-to-one" (images to classes).
        readout: What ``score_matrix`` uses: "density-ratio", "cosine" or "linear-map".
        lam: lambda, 0.7.
        lam_pi: lambda_Pi, 1.
        sigma2_x: sigma_x^2, 2.5, on latents at mean squared distance 2.
        sigma2_y: sigma_y^2, 0.5.
        reconstruction_weight: 1; 0 gives Deep-SMI or Deep-uKTA.
        hidden: Hidden layers of the encoders, (256, 128); decoders mirror them.
        n_latent: Latent dimensions, 64.
        n_components: Principal components that the networks see, at most, 256.
        ratio_ridge: Ridge of the density ratio in the Theta step and the read-out (SMI), 0.0001.
        pi_ridge: Ridge of the density ratio in the Pi step (SMI), 0.1; many-to-one 0.01.
        n_basis: Basis pairs of a density ratio over all rows, at most, 500.
        n_pretrain_epochs: Epochs of each autoencoder alone, 10.
        n_rounds: Rounds, at most, 8.
        n_epochs: Epochs in a Theta step, 5.
        n_pi_steps: Ascent steps in a Pi step, at most, 100.
        batch_size: Pairs in a batch, 256.
        learning_rate: Adam's, 0.001.
        tol: Stop when a round changes at most this share of the partners, 0.002.
        device: "auto" takes CUDA or MPS when there is one.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``match_`` (confidence is the relaxed Pi's share of the partner), ``history_``
    (one dict per epoch), ``trace_`` (matched pairs at the start and after each round), ``seed_``.
    """

    def __init__(
        self,
        dependence: str = "smi",
        *,
        relation: str = "one-to-one",
        readout: str = "density-ratio",
        lam: float | None = None,
        lam_pi: float | None = None,
        sigma2_x: float | None = None,
        sigma2_y: float | None = None,
        reconstruction_weight: float | None = None,
        hidden: tuple[int, ...] | None = None,
        n_latent: int | None = None,
        n_components: int | None = None,
        ratio_ridge: float | None = None,
        pi_ridge: float | None = None,
        n_basis: int | None = None,
        n_pretrain_epochs: int | None = None,
        n_rounds: int | None = None,
        n_epochs: int | None = None,
        n_pi_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        tol: float | None = None,
        device: str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.dependence = dependence
        self.relation = relation
        self.readout = readout
        self.lam = lam
        self.lam_pi = lam_pi
        self.sigma2_x = sigma2_x
        self.sigma2_y = sigma2_y
        self.reconstruction_weight = reconstruction_weight
        self.hidden = hidden
        self.n_latent = n_latent
        self.n_components = n_components
        self.ratio_ridge = ratio_ridge
        self.pi_ridge = pi_ridge
        self.n_basis = n_basis
        self.n_pretrain_epochs = n_pretrain_epochs
        self.n_rounds = n_rounds
        self.n_epochs = n_epochs
        self.n_pi_steps = n_pi_steps
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
        start: str | IntArray | None = None,
        on_step: Callable[[dict[str, float]], None] = lambda step: None,
    ) -> Self:
        """Learn from the rows of x and y; ``pairs`` names known partners.

        Args:
            x: First view, (n_x, d_x).
            y: Second view, (n_y, d_y); n_y may differ from n_x.
            pairs: None, "aligned", or a (k, 2) array of (row of x, row of y). A row may occur in
                several pairs, as an image with five captions does.
            start: Where Pi begins. "uniform", as published; no free row is matched until the first
                Pi step has made a Pi of it and rounded that. "known": where the density ratio of
                the known pairs puts the free rows after the first Theta step. "engine": what
                ``unpaired.match`` finds. Or a partner for each row of x, -1 = none. None: "known"
                if there are pairs, else "uniform".
            on_step: Called after each epoch with its entry of ``history_``.
        """
        given = {name: getattr(self, name) for name in NAMES}
        config = resolve(given)
        rows_x, rows_y = self._rows_of_fit(x=x, y=y)
        known = check_pairs(pairs, len(rows_x), len(rows_y))
        free_x, free_y = _free_rows(known, len(rows_x), len(rows_y), config)
        matches = bool(len(free_x) and len(free_y))
        check_used(given, config, matches=matches)
        begin = _check_start(start, known, matches)
        _check_size(free_x, free_y)
        self.seed_ = resolve_seed(self.random_state)
        self._device = pick_device(self.device)
        partner: IntArray | None = None
        if isinstance(begin, str) and begin == "engine":
            seed = derive_seed(self.seed_, "engine")
            partner = engine_partners(rows_x, rows_y, known, config.relation, seed)
        elif not isinstance(begin, str):
            partner = check_partners(begin, len(rows_x), len(rows_y))
        matching = Matching(known, free_x, free_y, _restrict(partner, free_x, free_y, len(rows_y)))
        fitted = learn(
            (self._tensor(rows_x), self._tensor(rows_y)),
            matching,
            begin if isinstance(begin, str) else "given",
            config,
            derive_seed(self.seed_, "networks"),
            derive_rng(self.seed_, "loop"),
            on_step,
        )
        self._config, self._views = config, fitted.views
        self.history_, self.trace_ = fitted.history, fitted.trace
        latents = (
            self._views[0].encode(self._tensor(rows_x)),
            self._views[1].encode(self._tensor(rows_y)),
        )
        rng = derive_rng(self.seed_, "readout")
        self._readout = fit_readout(*latents, matching.pairs, config, rng)
        self.match_ = _describe(fitted, len(rows_x), len(rows_y), config)
        _warn_of_collapse(fitted, config)
        return self

    def transform_x(self, x: Any) -> FloatArray:
        """Latents of rows of the first view at the training scale, (n, d_x) -> (n, n_latent)."""
        rows = self._checked(x, 0)
        return self._as_asked(np.asarray(self._views[0].encode(rows).cpu().numpy()), x)

    def transform_y(self, y: Any) -> FloatArray:
        """Latents of rows of the second view, (n, d_y) -> (n, n_latent)."""
        rows = self._checked(y, 1)
        return self._as_asked(np.asarray(self._views[1].encode(rows).cpu().numpy()), y)

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y by the read-out, (n_x, n_y)."""
        rows_x, rows_y = self._checked(x, 0), self._checked(y, 1)
        z_x = self._views[0].encode(rows_x)
        z_y = self._views[1].encode(rows_y)
        return np.asarray(self._readout.scores(z_x, z_y).cpu().numpy())

    def score(self, x: Any, y: Any, pairs: Any = "aligned") -> float:
        """1 - FOSCTTM on pairs that go one to one, 0 to 1; larger = better, 0.5 is chance."""
        scores = self.score_matrix(x, y)
        known = check_pairs(pairs, *scores.shape)
        if not len(known):
            raise InputError('score needs pairs: got none. Pass "aligned" or a (k, 2) array.')
        return 1.0 - foscttm(scores[np.ix_(known[:, 0], known[:, 1])])

    def _tensor(self, rows: FloatArray) -> Tensor:
        return torch.as_tensor(rows, dtype=torch.float32, device=self._device)

    def _checked(self, rows: Any, view: int) -> Tensor:
        return self._tensor(self._rows_like_fit(rows, "xy"[view]))

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {f"trace.{step}": pairs for step, pairs in enumerate(self.trace_)}
        for name, view in zip("xy", self._views, strict=True):
            arrays |= {f"{name}.{key}": array for key, array in view.arrays().items()}
        arrays |= {f"readout.{k}": array for k, array in readout_arrays(self._readout).items()}
        return arrays, {
            "seed": self.seed_,
            "history": self.history_,
            "n_trace": len(self.trace_),
        }

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.seed_, self.history_ = values["seed"], values["history"]
        self.trace_ = [arrays[f"trace.{step}"] for step in range(values["n_trace"])]
        self._device = pick_device(self.device)

        def part(name: str) -> dict[str, np.ndarray]:
            return {
                k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(f"{name}.")
            }

        self._views = (
            view_from_arrays(part("x"), self._device),
            view_from_arrays(part("y"), self._device),
        )
        self._readout = readout_from_arrays(part("readout"), self._device)


def engine_partners(
    x: FloatArray, y: FloatArray, known: IntArray, relation: str, seed: int
) -> IntArray:
    """Partner of each row of x as the matching engine finds it, with the pairs it can take."""
    from unpaired.matching import match

    pairs = known[np.unique(known[:, 0], return_index=True)[1]]
    if relation == "one-to-one":
        pairs = pairs[np.unique(pairs[:, 1], return_index=True)[1]]
    return match(x, y, pairs if len(pairs) else None, relation, seed).partner


def _free_rows(
    known: IntArray, n_x: int, n_y: int, config: PublishedConfig
) -> tuple[IntArray, IntArray]:
    """The rows that may still be matched; many to one, every row of y may serve again."""
    free_x = np.setdiff1d(np.arange(n_x), known[:, 0])
    if config.relation == "many-to-one":
        return free_x, np.arange(n_y)
    return free_x, np.setdiff1d(np.arange(n_y), known[:, 1])


def _check_start(start: Any, known: IntArray, matches: bool) -> str | IntArray:
    """``start`` with its default filled in; refused where it could have no effect."""
    if start is None:
        return "known" if len(known) and matches else "uniform"
    if not matches:
        raise InputError(
            "start would have no effect: all pairs are known, so there is no Pi step. Leave it out."
        )
    if not isinstance(start, str):
        return np.asarray(start)
    check_choice(start, "start", STARTS)
    if start == "known" and len(known) < 2:
        raise InputError(
            f'start="known" needs at least 2 known pairs: there are {len(known)}. Pass pairs, or '
            'start="uniform" or "engine".'
        )
    return start


def _check_size(free_x: IntArray, free_y: IntArray) -> None:
    if len(free_x) * len(free_y) > MAX_PLAN:
        raise InputError(
            f"The relaxed matching of the published method is dense: {len(free_x)} free rows of x "
            f"times {len(free_y)} of y are more than {MAX_PLAN:,} entries. Subsample, or use DMAE."
        )


def _restrict(
    partner: IntArray | None, free_x: IntArray, free_y: IntArray, n_y: int
) -> IntArray | None:
    """Partners of the free rows as positions among the free rows of y; known ones drop out."""
    if partner is None:
        return None
    position = np.full(n_y + 1, -1, dtype=np.int64)
    position[free_y] = np.arange(len(free_y))
    return position[partner[free_x]]


def _describe(fitted: Fitted, n_x: int, n_y: int, config: PublishedConfig) -> Match:
    """The Match of a fit; confidence, runner-up and margin are read off the relaxed Pi."""
    matching, plan = fitted.matching, fitted.plan
    partner, runner_up = (np.full(n_x, -1, dtype=np.int64) for _ in range(2))
    pairs = matching.pairs[::-1]  # of several pairs of a row the first is told
    partner[pairs[:, 0]] = pairs[:, 1]
    confidence, margin = np.zeros(n_x), np.full(n_x, np.nan)
    if plan is not None and matching.partner is not None:
        rows = np.arange(len(plan))
        shares = plan / np.maximum(plan.sum(1, keepdims=True), 1e-300)
        own = np.where(matching.partner >= 0, shares[rows, matching.partner], 0.0)
        shares[rows, matching.partner] = -1.0
        best = shares.argmax(1)
        confidence[matching.free_x] = own
        if plan.shape[1] > 1:
            runner_up[matching.free_x] = matching.free_y[best]
            margin[matching.free_x] = own - shares[rows, best]
    confidence[matching.known[:, 0]] = 1.0
    kinds = ("dependence_matched", "dependence_known")
    reached = [fitted.history[-1][kind] for kind in kinds if kind in fitted.history[-1]]
    objective = Objective(reached[0] if reached else float("nan"), {"published": sum(reached)})
    return Match(
        partner=partner,
        confidence=confidence,
        objective=objective,
        runner_up=runner_up,
        margin=margin,
        n_y=n_y,
        relation=config.relation,
        converged=fitted.converged,
    )


def _warn_of_collapse(fitted: Fitted, config: PublishedConfig) -> None:
    """Say so when the latents of a view lie in a point, or all rows went to one class."""
    for name in "xy":
        share = fitted.history[-1][f"near_{name}"]
        if share >= COLLAPSED:
            warnings.warn(
                f"The latents of {name} collapsed: {share:.0%} of the pairs of rows lie nearly in "
                "one point. Raise reconstruction_weight, lower lam, or use "
                'dependence="smi", which collapse does not improve.',
                CollapseWarning,
                stacklevel=3,
            )
    partner = fitted.matching.partner
    if config.relation == "many-to-one" and partner is not None and len(fitted.matching.free_y) > 2:
        share = float(np.bincount(partner[partner >= 0]).max() / len(partner))
        if share >= COLLAPSED:
            warnings.warn(
                f"The matching collapsed: {share:.0%} of the free rows have the same partner. "
                'That pays under uKTA once column sums are free. Use dependence="smi".',
                CollapseWarning,
                stacklevel=3,
            )
