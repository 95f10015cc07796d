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
CONFIRMED = 0.9
"""Or share of rows whose partner self-learning finds again without them; unrelated Gaussians have
reached 0.63."""
COARSE = 0.5
"""Probability from which on a match is called coarse."""
LEAST_HELD = 4
"""Known pairs that must have been held out for their ranks to count."""
SPREAD = 0.15
"""Least standard deviation of the ranks of held-out pairs that is believed."""
NINETY = 1.645
"""Standard deviations on each side of an interval that holds nine of ten."""
BY_ACCIDENT = 0.65
"""Confirmed share that is no evidence yet."""
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
        halved = evidence.replication.single == evidence.replication.single
        expected, deviation = with_held_out(
            prior, held, calibration.halving if halved else (1.0, calibration.halving[1])
        )
        probability = float(norm.cdf((GOOD - expected) / deviation))
        low, high = expected - NINETY * deviation, expected + NINETY * deviation
    level = "coarse" if probability >= COARSE else "unreliable"
    level = "reliable" if relied and probability >= COARSE else level
    bounds = float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
    reasons = reasons_for(evidence, shape)
    return Verdict(level, probability, float(np.clip(expected, 0.0, 1.0)), bounds, reasons)


def repeats_itself(evidence: Evidence) -> bool:
    """Whether single partners are named again by fits that did not see them."""
    return evidence.replication.single >= REPEATED or evidence.confirmed >= CONFIRMED


def features(evidence: Evidence, shape: Shape) -> dict[str, float]:
    """What enters the log odds, each the larger the better; what was not measured is 0.

    In few directions unrelated data agree as well, so agreement counts by the log of their number.
    """
    room = np.log(max(shape.rank, 1.0))
    values = {
        "ranks": room * max(_measured(evidence.replication.ranks), 0.0),
        "single": np.sqrt(max(_measured(evidence.replication.single), 0.0)),
        "agreement": room * _measured(evidence.agreement),
        "gap": room * max(_measured(evidence.gap), 0.0),
        "confirmed": max(_measured(evidence.confirmed) - BY_ACCIDENT, 0.0),
    }
    return {name: float(value) for name, value in values.items()}


def _measured(value: float) -> float:
    return 0.0 if np.isnan(value) else value


def log_odds(evidence: Evidence, shape: Shape, calibration: Calibration = CALIBRATION) -> float:
    """The log odds that FOSCTTM is below GOOD, known pairs apart."""
    values = features(evidence, shape)
    weighed = [weight * values[name] for name, weight in calibration.weights.items()]
    return calibration.intercept + float(sum(weighed))


def with_held_out(
    prior: tuple[float, float], ranks: tuple[float, ...], halving: tuple[float, float]
) -> tuple[float, float]:
    """Mean and deviation of FOSCTTM once ranks of held-out known partners are seen.

    ``prior`` is its mean and deviation before; both are taken as normal. ``halving`` tells how
    FOSCTTM of the whole follows from that of a fit on half of the rows and pairs: its power, in
    units of chance, and the deviation from that.
    """
    power, deviation = halving
    mean = 2.0 * float(np.mean(ranks))
    seen = 0.5 * mean**power
    slope = power * max(mean, 0.1) ** (power - 1.0)
    spread = max(float(np.std(ranks, ddof=1)), SPREAD)
    error = (slope * spread) ** 2 / len(ranks) + deviation**2
    weight = prior[1] ** 2 / (prior[1] ** 2 + error)
    posterior = prior[0] + weight * (seen - prior[0])
    return posterior, float(np.sqrt((1.0 - weight) * prior[1] ** 2))


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


def reasons_for(evidence: Evidence, shape: Shape) -> tuple[str, ...]:
    """Sentences on what speaks for and against the solution."""
    replication, found = evidence.replication, []
    if len(replication.held_out) >= LEAST_HELD:
        mean = float(np.mean(replication.held_out))
        count = len(replication.held_out)
        found.append(f"{count} known pairs, held out, were placed at a mean rank of {mean:.2f}")
    if replication.single >= REPEATED:
        found.append(
            f"two fits on halves of the rows name the same partner for {replication.single:.0%} "
            "of the rows"
        )
    elif evidence.confirmed >= CONFIRMED:
        found.append(f"{evidence.confirmed:.0%} of the rows find their partner without themselves")
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
