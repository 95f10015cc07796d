"""What may be claimed of a solution as a whole."""

from __future__ import annotations

from unpaired.spaces.solution import Solution

TRUSTED_GAP = 0.28
TRUSTED_AGREEMENT = 0.8
"""Soft alignments are trusted from this gap and this agreement on."""
CONFIRMED_GAP = 0.15
"""The gap that is enough when refinement found its answer again."""


def trusted(solution: Solution) -> bool:
    """Whether the geometry vouches for the solution."""
    evidence = solution.evidence
    if solution.kind == "evident":
        return True
    if solution.kind == "refined":
        return evidence.gap >= CONFIRMED_GAP
    return evidence.gap >= TRUSTED_GAP and evidence.agreement >= TRUSTED_AGREEMENT
