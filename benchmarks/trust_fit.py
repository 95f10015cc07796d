"""Coefficients of the verdict from collected runs, and how good it is on sources it never saw."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from benchmarks.trust_runs import SOURCE_OF
from unpaired.spaces.solution import Evidence, Replication, Solution
from unpaired.trust.calibration import Calibration
from unpaired.trust.evidence import Shape
from unpaired.trust.verdict import GOOD, claims, features, judge, repeats_itself
from unpaired.types import Verdict

PENALTY = 0.02
"""Of squared weights, per run: few runs must not buy certainty."""
N_KNOTS = 6


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
    def good(self) -> bool:
        """Whether the match is right for groups of rows."""
        return self.foscttm < GOOD


def case_of(row: dict[str, str]) -> Case:
    """A line of the file of results."""
    number = {k: float(row[k]) for k in ("single", "ranks", "agreement", "gap", "confirmed")}
    replication = Replication(number["single"], number["ranks"], tuple(json.loads(row["held_out"])))
    evidence = Evidence({}, number["agreement"], number["gap"], number["confirmed"], replication)
    parts = row["name"].split(" + ") if row["kind"] == "unrelated" else []
    others = {SOURCE_OF.get(name, name.split()[0]) for name in parts}
    return Case(
        Solution(None, evidence, row["way"]),  # type: ignore[arg-type]  # no space is needed
        Shape(int(row["n"]), float(row["rank"]), float(row["repeats"])),
        row["kind"],
        frozenset({row["source"], *others}),
        row["source"],
        int(row["pairs"]),
        float(row["foscttm"]),
        float(row["right"]),
        np.array(json.loads(row["bins"])),
    )


def fit(cases: Sequence[Case], made: str) -> Calibration:
    """The calibration that these runs ask for."""
    soft = [c for c in cases if not c.n_pairs and not repeats_itself(c.solution.evidence)]
    names = list(features(soft[0].solution.evidence, soft[0].shape))
    values = np.array([[features(c.solution.evidence, c.shape)[n] for n in names] for c in soft])
    beta = monotone_logistic(values, np.array([float(c.good) for c in soft]), PENALTY)
    weights = dict(zip(names, beta[1:].tolist(), strict=True))
    score = beta[0] + values @ beta[1:]
    truth = np.array([c.foscttm for c in soft])
    isotonic = IsotonicRegression(increasing=False).fit(score, truth)
    knots = np.unique(np.quantile(score, np.linspace(0.03, 0.97, N_KNOTS)))
    near = [np.argsort(np.abs(score - knot))[: max(20, len(score) // 4)] for knot in knots]
    sure = [c for c in cases if not c.n_pairs and repeats_itself(c.solution.evidence)]
    ranks = np.array([c.foscttm for c in sure] or [0.1])
    found = Calibration(
        made,
        float(beta[0]),
        weights,
        tuple(knots.tolist()),
        tuple(isotonic.predict(knots).tolist()),
        tuple(float(np.quantile(truth[rows], 0.05)) for rows in near),
        tuple(float(np.quantile(truth[rows], 0.95)) for rows in near),
        (sum(c.good for c in sure), len(sure)),
        (float(ranks.mean()), 0.0, float(max(0.05, np.quantile(ranks, 0.95)))),
        halving(cases),
        (0.0, 1.0, 1.0),
    )
    return _with_rows(found, cases)


def _with_rows(found: Calibration, cases: Sequence[Case]) -> Calibration:
    """The calibration with the weights of row confidence; every run counts alike."""
    inputs, right, weight = [], [], []
    for case in cases:
        if case.solution.evident:
            continue
        whole = logit(np.clip(judge(case.solution, case.shape, found).probability, 1e-6, 1 - 1e-6))
        for middle, (count, hits) in zip(_middles(), case.bins, strict=True):
            for value, times in ((1.0, hits), (0.0, count - hits)):
                if times:
                    inputs.append([logit(middle), whole])
                    right.append(value)
                    weight.append(times / case.bins[:, 0].sum())
    beta = monotone_logistic(np.array(inputs), np.array(right), 1e-3, np.array(weight))
    return replace(found, row=tuple(beta.tolist()))


def halving(cases: Sequence[Case]) -> tuple[float, float]:
    """The power that takes FOSCTTM of held-out pairs to that of the whole, and the deviation."""
    held = [(c.solution.evidence.replication.held_out, c.foscttm) for c in cases]
    pairs = np.array([(np.mean(ranks), truth) for ranks, truth in held if len(ranks) >= 4])
    if len(pairs) < 5:
        return 1.0, 0.1
    powers = np.linspace(1.0, 4.0, 61)
    errors = [np.square(0.5 * (2 * pairs[:, 0]) ** p - pairs[:, 1]).mean() for p in powers]
    best = int(np.argmin(errors))
    return float(powers[best]), float(np.sqrt(errors[best]))


def monotone_logistic(
    values: np.ndarray, truth: np.ndarray, penalty: float, weight: np.ndarray | None = None
) -> np.ndarray:
    """Intercept and weights >= 0 of the logistic regression of truth on values."""
    weight = np.ones(len(truth)) if weight is None else weight

    def loss(beta: np.ndarray) -> tuple[float, np.ndarray]:
        odds = beta[0] + values @ beta[1:]
        wrong = weight * (expit(odds) - truth)
        slope = np.concatenate([[wrong.sum()], wrong @ values]) / weight.sum()
        slope[1:] += 2 * penalty * beta[1:] / values.shape[1]
        value = float((weight * (np.logaddexp(0, odds) - truth * odds)).sum() / weight.sum())
        return value + penalty * float(np.square(beta[1:]).sum()) / values.shape[1], slope

    bounds = [(None, None)] + [(0.0, None)] * values.shape[1]
    return minimize(loss, np.zeros(values.shape[1] + 1), jac=True, bounds=bounds).x


def leave_sources_out(cases: Sequence[Case]) -> list[tuple[Case, Verdict, np.ndarray]]:
    """Each run with its verdict and the confidence of its bins, by runs of other sources only."""
    found = []
    for source in sorted({c.source for c in cases}):
        others = [c for c in cases if source not in c.sources]
        calibration = fit(others, "")
        for case in (c for c in cases if c.source == source):
            verdict = judge(case.solution, case.shape, calibration)
            claim = claims(case.solution, verdict, calibration)
            found.append((case, verdict, claim(_middles())))
    return found


def report(judged: Sequence[tuple[Case, Verdict, np.ndarray]]) -> list[tuple[str, str]]:
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


def _sure_rows(judged: Sequence[tuple[Case, Verdict, np.ndarray]], kind: str) -> float:
    chosen = [(c.bins[:, 0], conf) for c, _, conf in judged if c.kind == kind]
    sure = sum(counts[conf >= 0.5].sum() for counts, conf in chosen)
    return float(sure / sum(counts.sum() for counts, _ in chosen))


def _middles() -> np.ndarray:
    return (np.arange(20) + 0.5) / 20


def _of(values: np.ndarray) -> str:
    return f"{int(values.sum())} of {len(values)}"
