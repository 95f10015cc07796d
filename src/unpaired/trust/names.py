"""What may be claimed of names that groups of rows were given."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpaired.spaces.solution import Evidence
from unpaired.trust.calibration import NAMES, Regime
from unpaired.trust.verdict import (
    ENOUGH,
    LEAST_HELD,
    by_held_out,
    by_score,
    put_in_words,
)
from unpaired.types import Verdict

NAMED = 0.75
"""Share of rows that must have a name which held-out labels bear out, for single rows to be relied
on."""
LEAST_CLASSES = 5
"""With fewer names chance alone orders them rightly too often for a geometry to vouch for it."""
WEIGHT = 0.5
"""Rows that are named wrong, counted beside those whose labels were held out (Jeffreys)."""
LEAST_ROWS = 20
"""Rows for each class without which groups cannot be told."""


def covered_share(names: NDArray[np.integer], labels: NDArray[np.integer]) -> float:
    """The share of rows (n,) named as a class that occurs among the labels (k,); all of none."""
    return float(np.isin(names, labels).mean()) if len(names) else 1.0


def name_features(evidence: Evidence) -> dict[str, float]:
    """What enters the log odds of names, each the larger the better; not measured is 0."""
    agreement, gap = (
        float(np.clip(np.nan_to_num(value, nan=0.0), 0.0, 1.0))
        for value in (evidence.agreement, evidence.gap)
    )
    return {"agreement": agreement, "gap": gap, "agreement and gap": agreement * gap}


def judge_names(
    evidence: Evidence,
    n_rows: int,
    n_classes: int,
    regime: Regime = NAMES,
    *,
    covered: float = 1.0,
) -> Verdict:
    """The verdict on names: as for a match, with classes in the place of the rows of y.

    Only labels that were held out let single rows be relied on. They tell of the share ``covered``
    of the rows, those named as one of their classes.
    """
    relied = False
    if len(evidence.held_out) >= LEAST_HELD:
        probability, rank = by_held_out(evidence, covered)
        right = float(np.mean([pair.right for pair in evidence.held_out]))
        relied = len(evidence.held_out) >= ENOUGH and right * covered >= NAMED
    else:
        score = regime.intercept
        if n_classes >= LEAST_CLASSES and n_rows >= LEAST_ROWS * n_classes:
            values = name_features(evidence)
            score += sum(weight * values[name] for name, weight in regime.weights.items())
        probability, rank = by_score(score, regime)
    told = reasons_for_names(evidence, n_rows, n_classes, covered)
    return put_in_words(probability, rank, relied, told)


def name_certainty(
    evidence: Evidence,
    verdict: Verdict,
    n_classes: int,
    regime: Regime = NAMES,
    *,
    covered: float = 1.0,
) -> float:
    """How many of the rows that are sure of their group have the right name, as far as is known.

    Labels that were held out tell, of the rows named as their classes; without them the verdict
    does, and a name that is drawn at random is right one time in ``n_classes``.
    """
    if len(evidence.held_out) >= LEAST_HELD:
        claimed = sum(pair.share for pair in evidence.held_out)
        named = sum(pair.right for pair in evidence.held_out)
        told = min(named / (claimed + WEIGHT), 1.0)
        return float(covered * told + (1.0 - covered) / n_classes)
    return max(1.0 / n_classes, verdict.probability * regime.row)


def reasons_for_names(
    evidence: Evidence, n_rows: int, n_classes: int, covered: float
) -> tuple[str, ...]:
    """Sentences on what speaks for and against the names."""
    if len(evidence.held_out) >= LEAST_HELD:
        right = float(np.mean([pair.right for pair in evidence.held_out]))
        told = f"{len(evidence.held_out)} labels, held out, were named right in {right:.0%}"
        missing = f"{1.0 - covered:.0%} of the rows are named as classes without any label"
        return (told, missing) if covered < 0.95 else (told,)
    found = []
    if evidence.agreement < 0.6:
        found.append("kernels and descriptions of the classes disagree")
    if evidence.gap < 0.1:
        found.append("hardly better than class vectors that have nothing to do with the rows")
    if n_classes < LEAST_CLASSES:
        found.append(f"few classes ({n_classes}): their geometry cannot tell one from another")
    if n_rows < LEAST_ROWS * n_classes:
        found.append(f"few rows ({n_rows}) for {n_classes} classes")
    return tuple(found)
