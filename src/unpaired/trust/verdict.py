"""What may be claimed of a solution: a level, a probability, an expected rank, and why."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from scipy.stats import norm

from unpaired.spaces.readout import Claim
from unpaired.spaces.solution import Evidence, Solution
from unpaired.trust.calibration import CALIBRATION, Calibration, Regime
from unpaired.trust.evidence import Shape
from unpaired.types import Verdict

GOOD = 0.2
"""FOSCTTM below which a match is right for groups of rows."""
REPEATED = 0.25
"""Share of single partners that two fits on halves must have in common to be relied on."""
CONFIRMED = 0.75
"""Or share of rows whose partner is found again without them, where refinement on random samples
ended at one answer; unrelated Gaussians have reached 0.64, and their runs did not agree."""
COARSE = 0.5
"""Probability from which on a match is called coarse."""
LEAST_HELD = 4
"""Known pairs that must have been held out for their ranks to count."""
SPREAD = 0.15
"""Least standard deviation of the ranks of held-out pairs that is believed."""
PRIOR = 0.3, 0.2
"""Mean and standard deviation of FOSCTTM before anything is seen."""
LEAST_ROWS, MOST_ROWS = 50, 500
"""More rows than these, on the smaller side, count no further: the calibration saw no more."""
NINETY = 1.645
"""Standard deviations on each side of an interval that holds nine of ten."""
FEW_ROWS = 100
MANY_REPEATS = 0.05


def judge(solution: Solution, shape: Shape, calibration: Calibration = CALIBRATION) -> Verdict:
    """The verdict on a solution, from its evidence and the shape of the data."""
    evidence = solution.evidence
    held = evidence.replication.held_out if len(evidence.replication.held_out) >= LEAST_HELD else ()
    relied = repeats_itself(solution)
    if relied and not held:
        right, total = calibration.repeated
        probability = (right + 0.5) / (total + 1.0)  # Jeffreys
        expected, low, high = calibration.repeated_rank
    elif held and np.isnan(evidence.replication.single):  # held out of the fit on all rows
        expected, deviation = with_held_out(held)
        probability = float(norm.cdf((GOOD - expected) / deviation))
        low, high = expected - NINETY * deviation, expected + NINETY * deviation
    else:
        regime = calibration.helped if held else calibration.alone
        score = log_odds(evidence, shape, regime)
        probability = float(expit(score))
        expected, low, high = (
            float(np.interp(score, regime.knots, values))
            for values in (regime.rank, regime.low, regime.high)
        )
    level = "coarse" if probability >= COARSE else "unreliable"
    level = "reliable" if relied and probability >= COARSE else level
    bounds = float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))
    return Verdict(
        level,
        probability,
        float(np.clip(expected, 0.0, 1.0)),
        bounds,
        reasons_for(solution, shape),
    )


def repeats_itself(solution: Solution) -> bool:
    """Whether single partners are named again by fits that did not see them.

    On the soft path halves of the rows prove little: in few directions they repeat a wrong answer.
    """
    evidence = solution.evidence
    found_again = solution.evident and evidence.replication.single >= REPEATED
    return found_again or evidence.confirmed >= CONFIRMED


def features(evidence: Evidence, shape: Shape) -> dict[str, float]:
    """What enters the log odds, each the larger the better; what was not measured is 0.

    In few directions unrelated data agree as well, so agreement counts by the log of their number.
    """
    room = np.log(max(shape.rank, 1.0))
    held = evidence.replication.held_out
    placed = 0.0 if len(held) < LEAST_HELD else max(1.0 - 2.0 * _bound(held), 0.0)
    ranks = room * max(_measured(evidence.replication.ranks), 0.0)
    values = {
        "ranks": ranks,
        "agreement": room * _measured(evidence.agreement),
        "gap": room * max(_measured(evidence.gap), 0.0),
        "rows": np.log(np.clip(shape.n / LEAST_ROWS, 1.0, MOST_ROWS / LEAST_ROWS)),
        "placed": placed,
        "ranks and placed": ranks * placed,
    }
    return {name: float(value) for name, value in values.items()}


def _bound(ranks: tuple[float, ...]) -> float:
    """The mean of held-out ranks and one standard error of it."""
    return float(np.mean(ranks) + max(np.std(ranks, ddof=1), SPREAD) / np.sqrt(len(ranks)))


def _measured(value: float) -> float:
    return 0.0 if np.isnan(value) else value


def log_odds(evidence: Evidence, shape: Shape, regime: Regime) -> float:
    """The log odds that FOSCTTM is below GOOD."""
    values = features(evidence, shape)
    weighed = [weight * values[name] for name, weight in regime.weights.items()]
    return regime.intercept + float(sum(weighed))


def with_held_out(ranks: tuple[float, ...]) -> tuple[float, float]:
    """Mean and standard deviation of FOSCTTM once ranks of held-out known partners are seen.

    Before, little is known (PRIOR); all is taken as normal.
    """
    mean, deviation = PRIOR
    error = max(float(np.std(ranks, ddof=1)), SPREAD) ** 2 / len(ranks)
    weight = deviation**2 / (deviation**2 + error)
    posterior = mean + weight * (float(np.mean(ranks)) - mean)
    return posterior, float(np.sqrt(weight * error))


def claims(solution: Solution, verdict: Verdict, calibration: Calibration = CALIBRATION) -> Claim:
    """How confidence of rows becomes a probability, given the verdict on the whole."""
    evidence = solution.evidence
    if verdict.level == "reliable":
        factor = evidence.replication.single if solution.evident else evidence.confirmed
    else:
        held = len(evidence.replication.held_out) >= LEAST_HELD
        factor = (calibration.helped if held else calibration.alone).row
    return lambda share: verdict.probability * factor * share


def reasons_for(solution: Solution, shape: Shape) -> tuple[str, ...]:
    """Sentences on what speaks for and against the solution."""
    evidence, found = solution.evidence, []
    replication = evidence.replication
    if len(replication.held_out) >= LEAST_HELD:
        mean = float(np.mean(replication.held_out))
        count = len(replication.held_out)
        found.append(f"{count} known pairs, held out, were placed at a mean rank of {mean:.2f}")
    if solution.evident and replication.single >= REPEATED:
        found.append(
            f"two fits on halves of the rows name the same partner for {replication.single:.0%} "
            "of the rows"
        )
    elif evidence.confirmed >= CONFIRMED:
        found.append(f"{evidence.confirmed:.0%} of the rows find their partner without themselves")
    elif replication.single < REPEATED:
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
