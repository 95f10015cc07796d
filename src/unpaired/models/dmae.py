"""Deep Matching Autoencoders' task, our way: two maps and an unknown matching, learned together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from unpaired._checks import check_choice, check_number, check_pairs, check_sizes
from unpaired._random import RandomState, derive_rng, derive_seed, resolve_seed
from unpaired._threads import few_threads
from unpaired.alignment.critics import PeakWeight
from unpaired.errors import InputError
from unpaired.evaluation.retrieval import foscttm
from unpaired.learning.learner import LearnerConfig, learn
from unpaired.learning.towers import TowerConfig
from unpaired.matching import Alignment, solve
from unpaired.models.translating import TranslatingEstimator
from unpaired.nets.autoencoder import pick_device
from unpaired.plans.plan import DensePlan, Plan, hard_plan, make_pairs, plan_of
from unpaired.problem.given_start import Start, check_start
from unpaired.problem.merging import merged_partners
from unpaired.problem.problem import MANY_TO_ONE, ONE_TO_ONE, RELATIONS, check_problem
from unpaired.spaces.readout import Reading, numbered, read_scores, to_match
from unpaired.spaces.solution import Solution
from unpaired.trust.evidence import shape_of
from unpaired.trust.names import covered_share, judge_names
from unpaired.trust.verdict import judge
from unpaired.types import FloatArray, IntArray, Match, Verdict

FEW_KNOWN = 64
"""Below so many rows of x with a known partner, the matching engine gives the start."""
LEAST_ROWS = 8
"""Below so many, what the engine finds is the answer: nothing more can be learned from them."""
START_TEMPERATURE = 0.3
"""Of the plan made of the engine's scores, in their standard deviations."""


class DMAE(TranslatingEstimator):
    """Match two collections and learn a common space for both, with no pairs, a few, or all.

    With eight or more known pairs, maps of both sides and a soft matching of the rest are learned
    in turn (regularised CCA in linear and kernel coordinates), and networks that begin there are
    trained by InfoNCE in the last turn. One-to-one with fewer pairs and no start no network is
    trained: the answer is that of ``unpaired.match``, with its space; networks have not paid there.
    ``notes_`` says which it was. The method as published is ``PublishedDMAE``.

    Args:
        relation: "one-to-one" or "many-to-one".
        n_latent: Directions per pair of closed-form maps, at most; networks use up to 256 of them.
        hidden: Sizes of the networks' hidden layers; () leaves them linear.
        n_components: Principal components of each side that are used, at most.
        ridge: Ridge of the closed forms for one pair, in units of the total variance; it falls
            with the number of pairs. None takes 2 and lets known pairs, held out in turn, ask for
            less.
        soft_weight: Weight of a soft pair of full confidence against a known pair.
        n_rounds: Soft turns before the last, at most.
        n_epochs: Epochs of the networks; 0 trains none.
        batch_size: Matched pairs in a step of the networks.
        learning_rate: Adam's step size, at its peak.
        device: "auto" takes CUDA or MPS when there is one.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``match_`` (a Match over the rows given), ``history_`` (one dict per step),
    ``trace_`` (the matched pairs after each turn), ``notes_`` (sentences on what was done),
    ``seed_``. Parameters that only learning reads (all but the first and the last two) are refused
    in ``fit`` where there are too few pairs to learn from; ``soft_weight``, ``n_rounds`` and
    ``start`` where every row has its partner; what networks read where ``n_epochs`` is 0.
    """

    def __init__(
        self,
        *,
        relation: str = ONE_TO_ONE,
        n_latent: int | None = None,
        hidden: tuple[int, ...] | None = None,
        n_components: int | None = None,
        ridge: float | None = None,
        soft_weight: float | None = None,
        n_rounds: int | None = None,
        n_epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        device: str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.relation = relation
        self.n_latent = n_latent
        self.hidden = hidden
        self.n_components = n_components
        self.ridge = ridge
        self.soft_weight = soft_weight
        self.n_rounds = n_rounds
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.device = device
        self.random_state = random_state

    def fit(
        self,
        x: Any,
        y: Any,
        pairs: Any = None,
        *,
        start: Any = None,
        on_step: Callable[[dict[str, float]], None] = lambda step: None,
    ) -> Self:
        """Learn from the rows of x and y; ``pairs`` names known partners.

        Args:
            x: First side, (n_x, d_x).
            y: Second side, (n_y, d_y); n_y may differ from n_x.
            pairs: None, "aligned", or a (k, 2) array of (row of x, row of y). A row may occur in
                several pairs, as an image with five captions does.
            start: Partner of each row of x to begin from, -1 = none, or a plan (n_x, n_y) of
                weights >= 0. By default known pairs, or what ``match`` finds where few are known.
            on_step: Called after each step with its entry of ``history_``.
        """
        check_choice(self.relation, "relation", RELATIONS)
        config = self._config()
        rows_x, rows_y = self._rows_of_fit(x=x, y=y)
        known = check_pairs(pairs, len(rows_x), len(rows_y))
        begin = None if start is None else check_start(start, len(rows_x), len(rows_y))
        self.seed_ = resolve_seed(self.random_state)
        self._device = pick_device(self.device)
        with few_threads(len(rows_x)):
            self._fit(rows_x, rows_y, known, begin, config, on_step)
        self._remember(rows_x, rows_y, known)
        return self

    def transform_x(self, x: Any) -> FloatArray:
        """Rows of the first side so that inner products with ``transform_y`` are scores."""
        return self._placed(x, 0)

    def transform_y(self, y: Any) -> FloatArray:
        """Rows of the second side so that inner products with ``transform_x`` are scores."""
        return self._placed(y, 1)

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, (n_x, n_y); larger = better.

        The sum of the cosines of all parts of the model, less how crowded each row's neighbourhood
        among the training rows is (hub correction); ``match_`` is read from the same scores.
        """
        rows = self._checked(x, 0), self._checked(y, 1)
        return self._space.scores(*rows).cpu().numpy()

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

    def _config(self) -> LearnerConfig:
        """The learner's constants, with those that were given in their place."""
        rules = {
            "n_latent": (1, True),
            "n_components": (1, True),
            "ridge": (1e-12, False),
            "soft_weight": (0, False),
            "n_rounds": (0, True),
            "n_epochs": (0, True),
            "batch_size": (2, True),
            "learning_rate": (1e-12, False),
        }
        given = {name: getattr(self, name) for name in rules if getattr(self, name) is not None}
        for name, value in given.items():
            check_number(value, name, rules[name][0], integer=rules[name][1])
        towers: dict[str, Any] = {name: given[name] for name in NETWORKS if name in given}
        if self.hidden is not None:
            check_sizes(self.hidden, "hidden")
            towers["hidden"] = tuple(self.hidden)
        names = {"n_latent": "width", "n_components": "max_rank"}
        names |= {"ridge": "ridge", "n_rounds": "n_rounds"}
        own = {field: given[name] for name, field in names.items() if name in given}
        return LearnerConfig(
            towers=TowerConfig(**towers),
            peak_weight=PeakWeight(given["soft_weight"])
            if "soft_weight" in given
            else PeakWeight(),
            keeps_ridge="ridge" in given,
            **own,
        )

    def _fit(
        self,
        x: FloatArray,
        y: FloatArray,
        known: IntArray,
        start: Start | None,
        config: LearnerConfig,
        on_step: Callable[[dict[str, float]], None],
    ) -> None:
        """Choose what to learn from, learn, and read the match."""
        many = self.relation == MANY_TO_ONE
        pairs = make_pairs(known, len(x), len(y), self._device, many_to_one=many)
        n_owners = len(np.unique(known[:, 0]))
        anything = bool(len(pairs.free_x) and len(pairs.free_y))
        wanted = anything and start is None
        begin: Plan | None = None
        self.notes_: list[str] = []
        named: Match | None = None
        if not anything or (wanted and many and n_owners < 2):
            self._refuse(SOFTLY, "where no row is left to be matched softly", start)
        if wanted and many and n_owners < 2:
            from unpaired.naming.many_to_one import match_many_to_one  # a room of its own

            problem = check_problem(x, y, known, relation=MANY_TO_ONE)
            named = match_many_to_one(problem, derive_rng(self.seed_, "match"))
            pairs = make_pairs(named.pairs, len(x), len(y), self._device, many_to_one=True)
            self.notes_.append("Classes were named by the matching engine, and learned from that.")
        elif wanted and not many and n_owners < FEW_KNOWN:
            if n_owners < LEAST_ROWS:
                self._refuse(LEARNING, f"with fewer than {LEAST_ROWS} known pairs")
            found, kept = self._engine(x, y, known)
            if n_owners < LEAST_ROWS:
                self._take(found, kept, len(y), known, on_step)
                return
            if found.solution.kind != "tiny":  # otherwise the known pairs say more
                space = found.solution.space
                left, right = (
                    space.place(self._tensor(rows[free.cpu().numpy()]).cpu(), side)
                    for side, (rows, free) in enumerate(((x, pairs.free_x), (y, pairs.free_y)))
                )
                begin = plan_of(left, right, START_TEMPERATURE)
                self.notes_.append("The matching engine gave the start.")
        free = pairs.free_x.cpu().numpy(), pairs.free_y.cpu().numpy()
        if start is not None:
            begin = _plan(start.restrict(*free), self._device)
        seed, sides = derive_seed(self.seed_, "learner"), (self._tensor(x), self._tensor(y))
        if config.towers.n_epochs == 0:
            self._refuse(("hidden", *NETWORKS[1:]), "where n_epochs is 0")
        if config.n_rounds == 0 and begin is None:
            self._refuse(("soft_weight",), "where n_rounds is 0")
        learned = learn(*sides, pairs, config, seed, start=begin, on_step=on_step)
        trained = "Networks were" if config.towers.n_epochs else "No network was"
        self.notes_.append(f"{trained} trained in the last turn.")
        self._space, self.history_ = learned.solution.space, learned.solution.history
        every = pairs.known.cpu().numpy()
        self.trace_ = [
            np.concatenate([every, _free_pairs(step, free)]) for step in learned.trace
        ] or [every]
        self.match_ = self._read(x, y, every, free, learned.solution, named)

    def _refuse(self, names: tuple[str, ...], where: str, start: Start | None = None) -> None:
        """Refuse parameters, and a start, that could not change anything."""
        given = [name for name in names if getattr(self, name) is not None]
        given += [] if start is None else ["start"]
        if given:
            raise InputError(
                f"{given[0]} must be left out {where}: nothing is learned there that it could "
                "change. Give other pairs, or leave it out."
            )

    def _engine(self, x: FloatArray, y: FloatArray, known: IntArray) -> tuple[Alignment, IntArray]:
        """What the matching engine finds, and the rows of y that it saw."""
        rows, kept, pairs = merged_partners(y, known)
        return solve(check_problem(x, rows, pairs), derive_seed(self.seed_, "match")), kept

    def _take(
        self,
        found: Alignment,
        kept: IntArray,
        n_y: int,
        known: IntArray,
        on_step: Callable[[dict[str, float]], None],
    ) -> None:
        """Take the engine's answer as it is."""
        self.notes_.append(
            f"No network was trained: with fewer than {LEAST_ROWS} known pairs the answer is that "
            "of unpaired.match."
        )
        self.notes_ += found.solution.notes
        self._space = found.solution.space
        steps = found.solution.history or [{"dependence": float(found.match.objective)}]
        self.history_ = [{"step": float(number), **entry} for number, entry in enumerate(steps)]
        for entry in self.history_:
            on_step(entry)
        self.match_ = replace(
            found.match,
            partner=numbered(found.match.partner, kept),
            runner_up=numbered(found.match.runner_up, kept),
            n_y=n_y,
        )
        self.trace_ = [self.match_.pairs]

    def _read(
        self,
        x: FloatArray,
        y: FloatArray,
        known: IntArray,
        free: tuple[IntArray, IntArray],
        solution: Solution,
        named: Match | None,
    ) -> Match:
        """The match of all rows: free ones by their scores, the others by the known pairs."""
        n_x = len(x)
        partner, runner_up = (np.full(n_x, -1, dtype=np.int64) for _ in range(2))
        confidence, margin = np.zeros(n_x), np.full(n_x, np.nan)
        if min(len(free[0]), len(free[1])):
            problem = replace(
                check_problem(x, y), x=x[free[0]], y=y[free[1]], relation=self.relation
            )
            reading = read_scores(problem, solution)
            partner[free[0]] = numbered(reading.partner, free[1])
            runner_up[free[0]] = numbered(reading.runner_up, free[1])
            confidence[free[0]], margin[free[0]] = reading.confidence, reading.margin
        first = known[np.unique(known[:, 0], return_index=True)[1]]
        if self.relation == ONE_TO_ONE:
            verdict: Verdict | None = judge(solution, shape_of(check_problem(x, y)))
        elif named is not None:
            verdict = named.verdict
        else:
            covered = covered_share(partner[free[0]], known[:, 1])
            verdict = judge_names(solution.evidence, n_x, len(y), covered=covered)
        found = to_match(
            Reading(partner, runner_up, margin, confidence),
            solution.evidence,
            len(y),
            known=first,
            relation=self.relation,
            verdict=verdict,
        )
        if named is None:
            return found
        return replace(found, confidence=np.minimum(found.confidence, named.confidence))

    # ---- rows in, embeddings out ----

    def _tensor(self, rows: FloatArray) -> Tensor:
        return torch.as_tensor(rows, dtype=torch.float32, device=self._device)

    def _checked(self, rows: Any, side: int) -> Tensor:
        return self._tensor(self._rows_like_fit(rows, "xy"[side]))

    def _placed(self, rows: Any, side: int) -> FloatArray:
        checked = self._checked(rows, side)
        return self._as_asked(self._space.place(checked, side).cpu().numpy(), rows)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        from unpaired.spaces.stored import space_to_arrays

        arrays = space_to_arrays(self._space) | self._translation_arrays()
        arrays |= {f"trace.{step}": pairs for step, pairs in enumerate(self.trace_)}
        return arrays, {
            "seed": self.seed_,
            "history": self.history_,
            "notes": self.notes_,
            "n_trace": len(self.trace_),
        }

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        from unpaired.spaces.stored import space_from_arrays

        self.seed_, self.history_, self.notes_ = (values[k] for k in ("seed", "history", "notes"))
        self.trace_ = [arrays[f"trace.{step}"] for step in range(values["n_trace"])]
        self._device = pick_device(self.device)
        self._space = space_from_arrays(arrays, self._device)
        self._restore_translations(arrays)


NETWORKS = ("n_epochs", "batch_size", "learning_rate")
SOFTLY = ("soft_weight", "n_rounds")
"""Parameters that only rows without a known partner feel."""
LEARNING = ("n_latent", "hidden", "n_components", "ridge", *SOFTLY, *NETWORKS)
"""Parameters that only learning from pairs reads."""


def _free_pairs(partner: IntArray, free: tuple[IntArray, IntArray]) -> IntArray:
    """Pairs of row numbers from partners among the free rows."""
    rows = np.flatnonzero(partner >= 0)
    return np.column_stack([free[0][rows], free[1][partner[rows]]]).astype(np.int64)


def _plan(start: Start, device: torch.device) -> Plan:
    """The plan that a start stands for; rows of which it says nothing stay empty."""
    if start.plan is None:
        assert start.partner is not None  # one of the two is given
        return hard_plan(start.partner, start.n_y, device)
    shares = start.plan / np.maximum(start.plan.sum(axis=1, keepdims=True), 1e-300)
    return DensePlan(torch.as_tensor(shares, dtype=torch.float32, device=device))
