"""What may be claimed of names: little without labels, nothing of few classes."""

from __future__ import annotations

import numpy as np
import pytest

from unpaired.spaces.solution import Evidence, HeldPair
from unpaired.trust.calibration import Regime
from unpaired.trust.names import (
    LEAST_CLASSES,
    LEAST_ROWS,
    covered_share,
    judge_names,
    name_certainty,
    name_features,
)

REGIME = Regime(
    intercept=-3.0,
    weights={"agreement": 1.0, "gap": 2.0, "agreement and gap": 4.0},
    knots=(-3.0, 3.0),
    rank=(0.5, 0.1),
    low=(0.3, 0.0),
    high=(0.6, 0.3),
    row=0.5,
)
GOOD = Evidence({}, agreement=1.0, gap=1.0)


def held(n_right, n_wrong, share=0.9):
    right = (HeldPair(0.0, share, True),) * n_right
    return Evidence({}, held_out=right + (HeldPair(0.4, share, False),) * n_wrong)


def test_more_evidence_never_lowers_the_odds():
    for name in ("agreement", "gap"):
        values = {"agreement": 0.5, "gap": 0.5}
        chances = [
            judge_names(Evidence({}, **{**values, name: v}), 1000, 10, REGIME).probability
            for v in (float("nan"), 0.0, 0.3, 0.9)
        ]
        assert chances[0] == chances[1] < chances[2] < chances[3]


def test_geometry_alone_is_never_relied_on():
    verdict = judge_names(GOOD, 1000, 10, REGIME)
    assert verdict.level == "coarse"
    assert verdict.probability == pytest.approx(1 / (1 + np.exp(-3.0)))  # the last knot, not 4
    assert verdict.expected_rank == pytest.approx(0.1)
    assert verdict.interval == (0.0, 0.3)


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "words"),
    [
        (1000, LEAST_CLASSES - 1, "few classes (4)"),
        (10 * LEAST_ROWS - 1, 10, "few rows (199) for 10 classes"),
    ],
)
def test_few_classes_and_few_rows_claim_nothing(n_rows, n_classes, words):
    verdict = judge_names(GOOD, n_rows, n_classes, REGIME)
    assert verdict.level == "unreliable"
    assert verdict.probability == pytest.approx(1 / (1 + np.exp(3.0)))
    assert words in "; ".join(verdict.reasons)


@pytest.mark.parametrize(
    ("evidence", "level"),
    [
        (held(18, 2), "reliable"),
        (held(14, 6), "coarse"),
        (held(6, 0), "coarse"),  # too few to rely on single rows
        (held(2, 18), "unreliable"),
    ],
)
def test_labels_that_were_held_out_decide(evidence, level):
    verdict = judge_names(evidence, 50, 3, REGIME)
    assert verdict.level == level
    assert "labels, held out" in verdict.reasons[0]


def test_labels_of_some_classes_do_not_vouch_for_the_others():
    evidence, n_right = held(20, 0), name_certainty
    assert judge_names(evidence, 500, 10, REGIME).level == "reliable"
    verdict = judge_names(evidence, 500, 10, REGIME, covered=0.4)
    assert verdict.level == "unreliable"
    assert "60% of the rows are named as classes without any label" in verdict.reasons
    assert verdict.expected_rank > 0.3
    assert n_right(evidence, verdict, 10, REGIME, covered=0.4) == pytest.approx(
        0.4 * n_right(evidence, verdict, 10, REGIME) + 0.06
    )
    assert covered_share(np.array([0, 1, 2, 1]), np.array([1, 1, 3])) == 0.5


def test_certainty_follows_labels_then_the_verdict_then_chance():
    verdict = judge_names(GOOD, 1000, 10, REGIME)
    assert name_certainty(held(9, 11), verdict, 10, REGIME) == pytest.approx(9 / 18.5)
    assert name_certainty(held(20, 0, 0.5), verdict, 10, REGIME) == 1.0
    assert name_certainty(GOOD, verdict, 10, REGIME) == pytest.approx(0.5 * verdict.probability)
    nothing = judge_names(Evidence({}), 1000, 10, REGIME)
    assert name_certainty(Evidence({}), nothing, 10, REGIME) == pytest.approx(0.1)


def test_reasons_are_told_in_words():
    poor = judge_names(Evidence({}, 0.3, 0.02), 1000, 10, REGIME).reasons
    told = "; ".join(poor)
    for words in ("descriptions of the classes disagree", "hardly better than class vectors"):
        assert words in told
    assert judge_names(GOOD, 1000, 10, REGIME).reasons == ()
    assert set(name_features(GOOD)) == set(REGIME.weights)
