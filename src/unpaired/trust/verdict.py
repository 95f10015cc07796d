"""What may be claimed of a solution: a level, a probability, an expected rank, and why."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm

from unpaired.spaces.readout import Claim
from unpaired.spaces.solution import Evidence, Solution
from unpaired.trust.calibration import CALIBRATION, Calibration
from unpaired.trust.evidence import Shape
from unpaired.types import FloatArray, Verdict

GOOD = 0.2
"""FOSCTTM below which a match is right for groups of rows."""
REPEATED = 0.25
"""Share of single partners that two fits on halves must have in common to be relied on."""
COARSE = 0.5
"""Probability from which on a match is called coarse."""
LEAST_HELD = 4
"""Known pairs that must have been held out for their ranks to count."""
SPREAD = 0.15
"""Least standard deviation of the ranks of held-out pairs that is believed."""
HALVES = 0.04
"""How far FOSCTTM of a fit on half of the rows and pairs is from that of the whole, roughly."""
NINETY = 1.645
"""Standard deviations on each side of an interval that holds nine of ten."""
FEW_ROWS = 100
MANY_REPEATS = 0.05


def judge(solution: Solution, shape: Shape, calibration: Calibration = CALIBRATION) -> Verdict:
    """The verdict on a solution, from its evidence and the shape of the data."""
    evidence = solution.evidence
    score = log_odds(evidence, shape, calibration)
    expected, low, high = (
        float(np.interp(score, calibration.knots, values))
        for values in (calibration.rank, calibration.low, calibration.high)
    )
    probability = float(expit(score))
    relied = repeats_itself(evidence)
    if relied:
        right, total = calibration.repeated
        probability = (right + 1) / (total + 2)
        expected, low, high = calibration.repeated_rank
    held = evidence.replication.held_out
    if len(held) >= LEAST_HELD:
        prior = expected, max((high - low) / (2 * NINETY), 1e-3)
        expected, deviation = with_held_out(prior, held)
        probability = float(norm.cdf((GOOD - expected) / deviation))
        low, high = expected - NINETY * deviation, expected + NINETY * deviation
    level = "coarse" if probability >= COARSE else "unreliable"
    level = "reliable" if relied and probability >= COARSE else level
    bounds = float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
    reasons = reasons_for(evidence, shape, level)
    return Verdict(level, probability, float(np.clip(expected, 0.0, 1.0)), bounds, reasons)


def repeats_itself(evidence: Evidence) -> bool:
    """Whether independent fits name the same single partners."""
    return evidence.replication.single >= REPEATED


def features(evidence: Evidence, shape: Shape) -> dict[str, float]:
    """What enters the log odds, each the larger the better; what was not measured is 0."""
    single, ranks = evidence.replication.single, evidence.replication.ranks
    room = np.log(max(shape.rank, 1.0))  # in few dimensions all maps agree
    values = {
        "ranks": max(ranks, 0.0) * room if ranks == ranks else 0.0,
        "single": np.sqrt(single),
        "agreement": evidence.agreement,
        "gap": max(evidence.gap, 0.0) if evidence.gap == evidence.gap else 0.0,
        "confirmed": evidence.confirmed,
    }
    return {name: 0.0 if value != value else float(value) for name, value in values.items()}


def log_odds(evidence: Evidence, shape: Shape, calibration: Calibration = CALIBRATION) -> float:
    """The log odds that FOSCTTM is below GOOD, known pairs apart."""
    values = features(evidence, shape)
    weighed = [weight * values[name] for name, weight in calibration.weights.items()]
    return calibration.intercept + float(sum(weighed))


def with_held_out(prior: tuple[float, float], ranks: tuple[float, ...]) -> tuple[float, float]:
    """Mean and deviation of FOSCTTM once ranks of held-out known partners are seen.

    ``prior`` is its mean and deviation before; both are taken as normal.
    """
    spread = max(float(np.std(ranks, ddof=1)), SPREAD)
    error = spread**2 / len(ranks) + HALVES**2
    weight = prior[1] ** 2 / (prior[1] ** 2 + error)
    mean = prior[0] + weight * (float(np.mean(ranks)) - prior[0])
    return mean, float(np.sqrt((1.0 - weight) * prior[1] ** 2))


def claims(solution: Solution, verdict: Verdict, calibration: Calibration = CALIBRATION) -> Claim:
    """How confidence of rows becomes a probability, given the verdict on the whole."""
    if solution.evident:
        factor = verdict.probability * solution.evidence.replication.single
        return lambda share: factor * share
    whole = float(logit(np.clip(verdict.probability, 1e-6, 1 - 1e-6)))
    intercept, own, of_whole = calibration.row

    def claim(share: FloatArray) -> FloatArray:
        odds = logit(np.clip(share, 1e-9, 1 - 1e-9))
        return np.asarray(expit(intercept + own * odds + of_whole * whole))

    return claim


def reasons_for(evidence: Evidence, shape: Shape, level: str) -> tuple[str, ...]:
    """Sentences on what speaks for and against the solution."""
    replication, found = evidence.replication, []
    if len(replication.held_out) >= LEAST_HELD:
        mean = float(np.mean(replication.held_out))
        count = len(replication.held_out)
        found.append(f"{count} known pairs, held out, were placed at a mean rank of {mean:.2f}")
    if level == "reliable":
        found.append(
            f"two fits on halves of the rows name the same partner for {replication.single:.0%} "
            "of the rows"
        )
    elif replication.single == replication.single:
        found.append("two fits on halves of the rows name other partners")
    if evidence.agreement < 0.6:
        found.append("starts disagree")
    if evidence.gap < 0.1:
        found.append("hardly better than unrelated data of the same shape")
    if shape.n < FEW_ROWS:
        found.append(f"few rows ({shape.n})")
    if shape.repeats > MANY_REPEATS:
        found.append(f"many repeated rows ({shape.repeats:.0%})")
    if shape.rank < 3.0:
        found.append("few directions: many matchings look alike")
    return tuple(found)
