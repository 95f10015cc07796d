"""What may be claimed of a solution: a level, a probability, an expected rank, and why."""

from __future__ import annotations

from collections.abc import Sequence

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
REPEATED = 0.6
"""Share of evident partners that a fit without their rows must name again: noise of 50 to 130 rows
has reached .53, right ones .76 and more."""
SURE = 0.6
"""Share of rows whose partner refinement must find without them (wrong maps have reached .50),"""
CONFIRMED, FINER = 0.25, 4.0
"""or this share, and partners told apart by components that were not searched, in standard
deviations above chance. Wrong maps have reached 2.4, and up to 7.9 where the data have a symmetry
of their own (left halves of digits are the mirror images of right ones)."""
NAMED = 0.5
"""Or share of held-out known partners that must have been named,"""
ENOUGH = 8
"""if there were so many."""
COARSE = 0.5
"""Probability from which on a match is called coarse."""
MOST_ALONE = 0.7
"""Probability that agreement, gaps and directions can lend, at most: of runs that were given more,
half were right; noise in uneven clusters was given .92."""
LEAST_HELD = 4
"""Known pairs that must have been held out for their ranks to count."""
SPREAD = 0.2
"""Least standard deviation of the ranks of held-out pairs that is believed."""
SHARED = 1.5
"""Times as large as that of independent ranks is the variance of their mean: fits that hold out
some pairs share the others (Nadeau and Bengio 2003 put it at up to 2.25 for five parts)."""
BELIEVED = 1.0
"""Sum of shares that counts as if it had been held out and come true as it claimed."""
PRIOR = 0.3, 0.2
"""Mean and standard deviation of FOSCTTM before anything is seen."""
CHANCE = 0.5
"""FOSCTTM of rows of which nothing is known."""
NINETY = 1.645
"""Standard deviations on each side of an interval that holds nine of ten."""
NO_SURPRISE = 3.0
"""Standard deviations below which nothing speaks for a refined map; noise has reached more."""
NO_FLIPS = 0.02
"""Gap above flipped starts below which they do as well; half of unrelated data stays below."""
LEAST_RANK = 3.0
"""In fewer directions the nearest rows of two unrelated samples are named again and again."""
FEW_ROWS = 100
MANY_REPEATS = 0.05


def judge(solution: Solution, shape: Shape, calibration: Calibration = CALIBRATION) -> Verdict:
    """The verdict on a solution, from its evidence and the shape of the data."""
    evidence = solution.evidence
    relied = repeats_itself(solution) and shape.rank >= LEAST_RANK
    if len(evidence.held_out) >= LEAST_HELD:
        probability, (expected, low, high) = by_held_out(evidence)
    elif relied:
        right, total = calibration.repeated
        probability = (right + 0.5) / (total + 1.0)  # Jeffreys
        expected, low, high = calibration.repeated_rank
    else:
        score = log_odds(evidence, shape, calibration.alone)
        probability, (expected, low, high) = by_score(score, calibration.alone)
        probability = min(probability, MOST_ALONE)
    return put_in_words(probability, (expected, low, high), relied, reasons_for(solution, shape))


def by_held_out(
    evidence: Evidence, covered: float = 1.0
) -> tuple[float, tuple[float, float, float]]:
    """The probability of a good match, and its rank with an interval, by pairs held out.

    They tell of the share ``covered`` of the rows; of the others nothing is known.
    """
    expected, deviation = with_held_out([pair.rank for pair in evidence.held_out])
    expected = covered * expected + (1.0 - covered) * CHANCE
    probability = float(norm.cdf((GOOD - expected) / deviation))
    return probability, (expected, expected - NINETY * deviation, expected + NINETY * deviation)


def by_score(score: float, regime: Regime) -> tuple[float, tuple[float, float, float]]:
    """Probability, and rank with its interval, by log odds.

    Beyond what the calibration saw, more of the same proves no more.
    """
    score = min(score, regime.knots[-1])
    expected, low, high = (
        float(np.interp(score, regime.knots, values))
        for values in (regime.rank, regime.low, regime.high)
    )
    return float(expit(score)), (expected, low, high)


def put_in_words(
    probability: float, rank: tuple[float, float, float], relied: bool, reasons: tuple[str, ...]
) -> Verdict:
    """The verdict that a probability and a rank with its interval amount to."""
    level = "coarse" if probability >= COARSE else "unreliable"
    level = "reliable" if relied and probability >= COARSE else level
    expected, low, high = (float(np.clip(value, 0.0, 1.0)) for value in rank)
    return Verdict(level, probability, expected, (low, high), reasons)


def repeats_itself(solution: Solution) -> bool:
    """Whether single partners, or the map as a whole, are found again by blind fits.

    A fit on half of the rows tells where partners are evident; on the soft path it would repeat a
    wrong answer in few directions, and refinement, which is kept only where it ends closer than
    strangers do, has to find partners again without the rows themselves (noise did the first), or
    some of them, where components that were not searched tell these apart as well.
    Held-out known pairs tell by how many of them were named.
    """
    evidence = solution.evidence
    if evidence.held_out:
        return len(evidence.held_out) >= ENOUGH and _named(evidence) >= NAMED
    if solution.evident:
        return evidence.repeated >= REPEATED
    finer = evidence.confirmed >= CONFIRMED and evidence.finer >= FINER
    return solution.kind == "refined" and (evidence.confirmed >= SURE or finer)


def features(evidence: Evidence, shape: Shape) -> dict[str, float]:
    """What enters the log odds, each the larger the better; what was not measured is 0.

    In few directions unrelated data agree as well, so the log of their number counts too.
    """
    return {
        "agreement": _measured(evidence.agreement),
        "gap": _measured(evidence.gap),
        "flips": _measured(evidence.flips) ** 0.5,
        "confirmed": _measured(evidence.confirmed),
        "directions": float(np.log(max(shape.rank, 1.0))),
    }


def _measured(value: float) -> float:
    return 0.0 if np.isnan(value) else max(value, 0.0)


def log_odds(evidence: Evidence, shape: Shape, regime: Regime) -> float:
    """The log odds that FOSCTTM is below GOOD."""
    values = features(evidence, shape)
    weighed = [weight * values[name] for name, weight in regime.weights.items()]
    return regime.intercept + float(sum(weighed))


def with_held_out(ranks: Sequence[float]) -> tuple[float, float]:
    """Mean and standard deviation of FOSCTTM once ranks of held-out known partners are seen.

    Before, little is known (PRIOR); all is taken as normal.
    """
    mean, deviation = PRIOR
    error = SHARED * max(float(np.std(ranks, ddof=1)), SPREAD) ** 2 / len(ranks)
    weight = deviation**2 / (deviation**2 + error)
    posterior = mean + weight * (float(np.mean(ranks)) - mean)
    return posterior, float(np.sqrt(weight * error))


def claims(solution: Solution, verdict: Verdict, calibration: Calibration = CALIBRATION) -> Claim:
    """How confidence of rows becomes a probability, given the verdict on the whole.

    Known pairs that were held out tell how many of the shares come true, more or fewer than they
    claim. No row claims more than those with the larger shares among them bore out (Laplace).
    """
    evidence = solution.evidence
    measured = [pair for pair in evidence.held_out if np.isfinite(pair.share)]
    if measured:
        claimed = sum(pair.share for pair in measured)
        right = sum(pair.right for pair in measured)
        factor = (right + BELIEVED) / (claimed + BELIEVED)
        surest = sorted(measured, key=lambda pair: -pair.share)[: (len(measured) + 1) // 2]
        most = (sum(pair.right for pair in surest) + 1.0) / (len(surest) + 2.0)
        return lambda share: np.minimum(factor * share, most)
    if evidence.held_out:
        return lambda share: share  # their temperature was chosen by held-out pairs
    if verdict.level == "reliable":
        # Two fits name the same partner where both are right: each is so often.
        found = evidence.repeated**0.5 if solution.evident else evidence.confirmed
        return lambda share: verdict.probability * found * share
    return lambda share: verdict.probability * calibration.alone.row * share


def _named(evidence: Evidence) -> float:
    return float(np.mean([pair.right for pair in evidence.held_out]))


def reasons_for(solution: Solution, shape: Shape) -> tuple[str, ...]:
    """Sentences on what speaks for and against the solution."""
    evidence, found = solution.evidence, []
    if len(evidence.held_out) >= LEAST_HELD:
        mean = float(np.mean([pair.rank for pair in evidence.held_out]))
        count = len(evidence.held_out)
        found.append(f"{count} known pairs, held out, were placed at a mean rank of {mean:.2f}")
    elif solution.kind == "refined":
        found.append(
            f"both sides end {evidence.surprise:.0f} standard deviations closer than strangers do"
        )
        found.append(f"{evidence.confirmed:.0%} of the rows find their partner without themselves")
        if np.isfinite(evidence.finer):
            found.append(
                "components that were not searched tell partners apart, "
                f"{evidence.finer:.0f} standard deviations above chance"
            )
    elif solution.evident and evidence.repeated >= REPEATED:
        found.append(
            f"a fit on half of the rows names {evidence.repeated:.0%} of the others' partners again"
        )
    elif evidence.surprise < NO_SURPRISE:
        found.append("both sides end no closer to each other than strangers do")
    if evidence.agreement < 0.6:
        found.append("starts disagree")
    if evidence.gap < 0.1:
        found.append("hardly better than unrelated data of the same shape")
    if evidence.flips < NO_FLIPS:
        found.append("hardly better than with directions turned round")
    if shape.n < FEW_ROWS:
        found.append(f"few rows ({shape.n})")
    if shape.repeats > MANY_REPEATS:
        found.append(f"many repeated rows ({shape.repeats:.0%})")
    if shape.rank < LEAST_RANK:
        found.append("few directions: many matchings look alike")
    return tuple(found)
