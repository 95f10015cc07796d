"""Coefficients of the verdict from collected runs, and how good it is on sources it never saw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from benchmarks.trust_runs import SOURCE_OF
from unpaired.spaces.solution import Evidence, HeldPair, Solution
from unpaired.trust.calibration import Calibration, Regime
from unpaired.trust.evidence import Shape
from unpaired.trust.verdict import GOOD, LEAST_RANK, claims, features, judge, repeats_itself
from unpaired.types import Verdict

PENALTY = 0.01
"""Of squared weights of standardised features, per run: few runs must not buy certainty."""
RELATED = 0.4
"""Share of the runs on related data among all that count: how many there are is our choice."""
N_KNOTS = 6
SAME = {
    "captions": "flickr8k",
    "en_fr": "words",
    "handwriting": "handwritten",
    "texts": "glosses",
    "unequal cells": "cells",
}
"""Sources of one list of runs that share rows, or their kind, with one of the other."""


@dataclass(frozen=True)
class Case:
    """A collected run: its evidence, and what was true."""

    solution: Solution
    shape: Shape
    kind: str
    sources: frozenset[str]
    source: str
    n_pairs: int
    foscttm: float
    right: float
    bins: np.ndarray
    """(20, 2): rows whose share lies in each twentieth, and how many of them are right."""

    @property
    def relied(self) -> bool:
        """Whether single partners, or the map, are relied on."""
        return repeats_itself(self.solution) and self.shape.rank >= LEAST_RANK

    @property
    def good(self) -> bool:
        """Whether the match is right for groups of rows."""
        return self.foscttm < GOOD


Judged = tuple[Case, Verdict, np.ndarray]
"""A run, the verdict on it, and the confidence of the rows in each of its bins."""


def case_of(row: dict[str, str]) -> Case:
    """A line of the file of results."""
    names = "agreement", "gap", "flips", "confirmed", "finer", "surprise", "repeated"
    evidence = Evidence(
        {},
        **{name: float(row[name]) for name in names},
        held_out=tuple(HeldPair(r, s, bool(t)) for r, s, t in json.loads(row["held_out"])),
    )
    parts = row["name"].split(" + ") if row["kind"] == "unrelated" else []
    own, *others = (
        SAME.get(name, name)
        for name in (row["source"], *(SOURCE_OF.get(part, part.split()[0]) for part in parts))
    )
    return Case(
        Solution(None, evidence, row["way"]),  # type: ignore[arg-type]  # no space is needed
        Shape(int(row["n"]), float(row["rank"]), float(row["repeats"])),
        row["kind"],
        frozenset({own, *others}),
        own,
        int(row["pairs"]),
        float(row["foscttm"]),
        float(row["right"]),
        np.array(json.loads(row["bins"])),
    )


ALONE = ("agreement", "gap", "flips", "confirmed", "directions")
"""Features without known pairs; with them, those that were held out tell."""


def fit(cases: Sequence[Case], made: str) -> Calibration:
    """The calibration that these runs ask for."""
    alone = [c for c in cases if not c.n_pairs and not c.relied]
    sure = [c for c in cases if not c.n_pairs and c.relied]
    ranks = np.array([c.foscttm for c in sure] or [0.1])
    found = Calibration(
        made,
        fit_regime(alone, ALONE),
        (sum(c.good for c in sure), len(sure)),
        (float(ranks.mean()), 0.0, float(max(0.05, np.quantile(ranks, 0.95)))),
    )
    free = [c for c in cases if not c.n_pairs]
    return replace(found, alone=replace(found.alone, row=fit_rows(found, free)))


def fit_regime(cases: Sequence[Case], names: Sequence[str]) -> Regime:
    """How evidence is read, from runs alike."""
    values = np.array([[features(c.solution.evidence, c.shape)[n] for n in names] for c in cases])
    related = np.array([c.kind == "related" for c in cases])
    weight = np.where(
        related, RELATED / max(related.sum(), 1), (1.0 - RELATED) / max((~related).sum(), 1)
    )
    good = np.array([float(c.good) for c in cases])
    spread = values.std(axis=0)
    beta = monotone_logistic(values / spread, good, PENALTY, weight * len(cases))
    beta[1:] /= spread
    score = beta[0] + values @ beta[1:]
    truth = np.array([c.foscttm for c in cases])
    return Regime(
        float(beta[0]),
        dict(zip(names, beta[1:].tolist(), strict=True)),
        *fit_ranks(score, truth, related, weight),
        1.0,
    )


def fit_ranks(
    score: np.ndarray, truth: np.ndarray, related: np.ndarray, weight: np.ndarray
) -> tuple[tuple[float, ...], ...]:
    """Knots of the log odds; there the expected rank and bounds that hold it in nine of ten."""
    isotonic = IsotonicRegression(increasing=False).fit(score, truth, sample_weight=weight)
    knots = np.unique(np.quantile(score[related], np.linspace(0.03, 0.97, N_KNOTS)))
    # Where nothing belongs together 0.5 is a convention: alone it would make bounds too narrow.
    bounds = []
    for chosen in (np.ones(len(score), dtype=bool), related):
        some = max(12, int(chosen.sum()) // 3)
        near = [np.argsort(np.abs(score[chosen] - k), kind="stable")[:some] for k in knots]
        bounds.append([np.quantile(truth[chosen][rows], (0.02, 0.98)) for rows in near])
    low = np.minimum.accumulate(np.min(bounds, axis=0)[:, 0])
    high = np.minimum.accumulate(np.max(bounds, axis=0)[:, 1])
    rank = np.clip(isotonic.predict(knots), low, high)
    return tuple(tuple(v.tolist()) for v in (knots, rank, low, high))


def fit_rows(found: Calibration, cases: Sequence[Case]) -> float:
    """The number of right rows over that claimed by shares and probabilities; runs count alike."""
    right, claimed = 0.0, 0.0
    for case in cases:
        if not case.relied:
            share = float(case.bins[:, 0] @ middles() / case.bins[:, 0].sum())
            claimed += judge(case.solution, case.shape, found).probability * share
            right += case.right
    return min(right / max(claimed, 1e-9), 1.0)


def monotone_logistic(
    values: np.ndarray, truth: np.ndarray, penalty: float, weight: np.ndarray
) -> np.ndarray:
    """Intercept and weights >= 0 of the weighted logistic regression of truth on values."""

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        odds = beta[0] + values @ beta[1:]
        wrong = weight * (expit(odds) - truth)
        slope = np.concatenate([[wrong.sum()], wrong @ values]) / weight.sum()
        slope[1:] += 2 * penalty * beta[1:] / values.shape[1]
        value = float((weight * (np.logaddexp(0, odds) - truth * odds)).sum() / weight.sum())
        return value + penalty * float(np.square(beta[1:]).sum()) / values.shape[1], slope

    bounds = [(None, None)] + [(0.0, None)] * values.shape[1]
    return minimize(loss, np.zeros(values.shape[1] + 1), jac=True, bounds=bounds).x


def leave_sources_out(cases: Sequence[Case]) -> list[Judged]:
    """Each run with its verdict and the confidence of its bins, by runs of other sources only."""
    found = []
    for source in sorted({c.source for c in cases}):
        others = [c for c in cases if source not in c.sources]
        found += transfer(others, [c for c in cases if c.source == source])
    return found


def transfer(fitted: Sequence[Case], cases: Sequence[Case]) -> list[Judged]:
    """Each run with its verdict and the confidence of its bins, as fitted to other runs."""
    calibration, found = fit(fitted, ""), []
    for case in cases:
        verdict = judge(case.solution, case.shape, calibration)
        found.append((case, verdict, claims(case.solution, verdict, calibration)(middles())))
    return found


def report(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    """Lines for a table: what was measured, and the figure."""
    good = np.array([c.good for c, _, _ in judged])
    chance = np.array([v.probability for _, v, _ in judged])
    truth = np.array([c.foscttm for c, _, _ in judged])
    rank = np.array([v.expected_rank for _, v, _ in judged])
    held = np.array([v.interval[0] <= c.foscttm <= v.interval[1] for c, v, _ in judged])
    trusted = np.array([v.trusted for _, v, _ in judged])
    relied = np.array([v.level == "reliable" for _, v, _ in judged])
    kind = np.array([c.kind for c, _, _ in judged])
    pairs = np.array([c.n_pairs for c, _, _ in judged])
    free = pairs == 0
    related = kind == "related"
    lines = [
        (
            "runs (related, unrelated, noise)",
            ", ".join(str(int((kind == k).sum())) for k in ("related", "unrelated", "noise")),
        )
    ]
    for name in ("noise", "unrelated"):
        rows = kind == name
        lines.append((f"{name}: trusted", f"{trusted[rows].sum()} of {rows.sum()}"))
        lines.append((f"{name}: rows at confidence >= .5", f"{_sure_rows(judged, name):.3f}"))
    fine = related & free & (truth < 0.05)
    lines.append(("FOSCTTM < .05, no pairs: called reliable", _of(relied[fine])))
    named = fine & np.array([c.right >= 0.5 for c, _, _ in judged])
    lines.append(("... and half of the partners right: called reliable", _of(relied[named])))
    lines.append(("called reliable: FOSCTTM < .1", _of(truth[relied] < 0.1)))
    lines.append(("trusted: FOSCTTM < .25", _of(truth[trusted] < 0.25)))
    for name, rows in (
        ("no pairs, all", free),
        ("no pairs, related", free & related),
        ("10 or 50 pairs, related", (pairs >= 10) & related),
        ("10 or 50 pairs, all", pairs >= 10),
    ):
        both = len(set(good[rows])) == 2
        auc = f"{roc_auc_score(good[rows], chance[rows]):.3f}" if both else "-"
        error = calibration_error(chance[rows], good[rows])
        lines.append((f"{name}: AUC; calibration error of probability", f"{auc}; {error:.3f}"))
        lines.append(
            (
                f"{name}: mean error of expected rank; interval holds",
                f"{np.abs(rank - truth)[rows].mean():.3f}; {held[rows].mean():.2f}",
            )
        )
    for name, chosen in (("no pairs", free), ("pairs", pairs > 0)):
        bins = [(c.bins, conf) for (c, _, conf), take in zip(judged, chosen, strict=True) if take]
        lines.append((f"confidence, {name}: calibration error", f"{_rows_error(bins):.3f}"))
        sure = _surest([j for j, take in zip(judged, chosen, strict=True) if take])
        told = f"{min(sure.values()):.2f} of {len(sure)} sources" if sure else "-"
        lines.append((f"confidence, {name}: rows at >= .9, least share right", told))
    return lines


def calibration_error(chance: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> float:
    """Expected calibration error in equal bins."""
    place = np.minimum((chance * n_bins).astype(int), n_bins - 1)
    gaps = [
        (place == b).sum() * abs(chance[place == b].mean() - truth[place == b].mean())
        for b in np.unique(place)
    ]
    return float(sum(gaps) / len(chance))


def _rows_error(bins: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Expected calibration error of rows, by bins of shares; every row counts alike."""
    chance = np.concatenate([conf for _, conf in bins])
    counts = np.concatenate([b[:, 0] for b, _ in bins])
    hits = np.concatenate([b[:, 1] for b, _ in bins])
    place = np.minimum((chance * 10).astype(int), 9)
    gaps = [abs((counts * chance)[place == b].sum() - hits[place == b].sum()) for b in range(10)]
    return float(sum(gaps) / counts.sum())


def _sure_rows(judged: Sequence[Judged], kind: str) -> float:
    chosen = [(c.bins[:, 0], conf) for c, _, conf in judged if c.kind == kind]
    sure = sum(counts[conf >= 0.5].sum() for counts, conf in chosen)
    return float(sure / sum(counts.sum() for counts, _ in chosen))


def _surest(judged: Sequence[Judged]) -> dict[str, float]:
    """Share of right rows at a confidence of .9 or more, of sources with 20 such rows or more."""
    rows: dict[str, np.ndarray] = {}
    for case, _, confidence in judged:
        own = case.bins[confidence >= 0.9].sum(axis=0)
        rows[case.source] = rows.get(case.source, np.zeros(2)) + own
    return {s: float(right / count) for s, (count, right) in rows.items() if count >= 20}


def middles() -> np.ndarray:
    return (np.arange(20) + 0.5) / 20


def _of(values: np.ndarray) -> str:
    return f"{int(values.sum())} of {len(values)}"
