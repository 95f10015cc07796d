import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import unpaired
from unpaired.spaces.solution import Evidence, HeldPair, Solution
from unpaired.trust.calibration import CALIBRATION
from unpaired.trust.evidence import Shape
from unpaired.trust.verdict import (
    MOST_ALONE,
    claims,
    features,
    judge,
    log_odds,
    with_held_out,
)
from unpaired.types import Verdict

NOTHING = Evidence({}, 0.0, 0.0, 0.0, 0.0, 0.0)
SHAPE = Shape(300, 20.0, 0.0)


def solution(evidence, kind="profiles"):
    return Solution(None, evidence, kind)


def test_more_evidence_never_lowers_the_odds():
    regime = CALIBRATION.alone
    more = {
        "agreement": (replace(NOTHING, agreement=0.9), SHAPE),
        "gap": (replace(NOTHING, gap=0.4), SHAPE),
        "flips": (replace(NOTHING, flips=0.4), SHAPE),
        "confirmed": (replace(NOTHING, confirmed=0.2), SHAPE),
        "directions": (NOTHING, replace(SHAPE, rank=40.0)),
    }
    assert set(regime.weights) == set(more)
    for name, weight in regime.weights.items():
        assert weight >= 0
        assert features(*more[name])[name] > features(NOTHING, SHAPE)[name]
        assert log_odds(*more[name], regime) >= log_odds(NOTHING, SHAPE, regime)


def test_expected_rank_falls_and_stays_inside_its_interval():
    regime = CALIBRATION.alone
    assert (np.diff(regime.knots) > 0).all()
    for values in (regime.rank, regime.low, regime.high):
        assert (np.diff(values) <= 1e-9).all()
    for low, rank, high in zip(regime.low, regime.rank, regime.high, strict=True):
        assert low <= rank <= high


def test_without_evidence_nothing_is_claimed():
    for evidence in (NOTHING, Evidence({})):
        verdict = judge(solution(evidence), SHAPE)
        assert verdict.level == "unreliable"
        assert not verdict.trusted
        share = claims(solution(evidence), verdict)(np.array([0.3, 0.85]))
        assert share.max() < 0.1


def test_repeated_single_partners_are_reliable():
    found = replace(NOTHING, gap=0.8, repeated=0.97)
    verdict = judge(solution(found, "evident"), SHAPE)
    assert verdict.level == "reliable"
    assert verdict.trusted
    assert verdict.expected_rank < 0.05
    assert "97%" in " ".join(verdict.reasons)
    share = claims(solution(found, "evident"), verdict)(np.array([1.0]))
    assert share == pytest.approx(0.97**0.5 * verdict.probability)


def test_repeated_partners_in_few_directions_are_not_relied_on():
    """In the plane the nearest rows of two unrelated samples are named again and again."""
    found = solution(replace(NOTHING, gap=0.8, repeated=0.97), "evident")
    narrow = judge(found, replace(SHAPE, rank=2.0))
    assert narrow.level != "reliable"
    assert not narrow.trusted
    assert "few directions" in " ".join(narrow.reasons)
    sure = judge(found, SHAPE)
    share = np.array([1.0])
    assert claims(found, narrow)(share) < 0.5 * claims(found, sure)(share)


def held(ranks, share=0.5, right=False):
    return tuple(HeldPair(float(rank), share, right) for rank in ranks)


def test_held_out_pairs_decide():
    near, far = np.linspace(0.0, 0.1, 40), np.linspace(0.0, 1.0, 40)
    fine, poor = (judge(solution(Evidence({}, held_out=held(r))), SHAPE) for r in (near, far))
    assert (fine.level, fine.trusted) == ("coarse", True)
    assert poor.level == "unreliable"
    assert poor.probability < 0.01 < 0.99 < fine.probability
    assert "40 known pairs" in fine.reasons[0]
    assert fine.interval[0] <= np.mean(near) <= fine.interval[1]
    repeated = replace(NOTHING, repeated=0.9, held_out=held(far))
    assert judge(solution(repeated), SHAPE).level == "unreliable"  # however well halves agree
    named = Evidence({}, held_out=held(np.zeros(40), right=True))
    assert judge(solution(named), SHAPE).level == "reliable"
    few = Evidence({}, held_out=held(np.zeros(6), right=True))
    assert judge(solution(few), SHAPE).level == "coarse"


@pytest.mark.parametrize("n_right", [30, 20, 10, 0])
def test_held_out_pairs_tell_how_many_shares_come_true(n_right):
    pairs = held(np.zeros(n_right), 0.5, True) + held(np.zeros(40 - n_right), 0.5, False)
    found = solution(Evidence({}, held_out=pairs))
    claim = claims(found, judge(found, SHAPE))
    expected = min(0.4 * (n_right + 1) / 21, (min(n_right, 20) + 1) / 22)  # 20 were claimed
    assert claim(np.array([0.4])) == pytest.approx(expected)
    surest = min(n_right, 20)  # of the larger half of the shares
    assert claim(np.array([0.85])) <= (surest + 1) / 22


def test_shares_whose_temperature_pairs_chose_stay_as_they_are():
    found = solution(Evidence({}, held_out=held([0.1] * 10, float("nan"))))
    assert claims(found, judge(found, SHAPE))(np.array([0.4])) == 0.4


def test_halves_that_repeat_a_soft_answer_prove_nothing():
    found = replace(NOTHING, repeated=0.9, confirmed=0.9)
    assert judge(solution(found), replace(SHAPE, rank=1.1)).level == "unreliable"
    assert judge(solution(replace(found, confirmed=0.95)), SHAPE).level == "unreliable"
    assert judge(solution(replace(found, surprise=20.0), "refined"), SHAPE).level == "reliable"


def test_a_soft_alignment_is_never_trusted_without_pairs():
    best = replace(NOTHING, agreement=1.0, gap=1.0, flips=1.0)
    verdict = judge(solution(best), replace(SHAPE, rank=500.0))
    assert (verdict.level, verdict.probability) == ("coarse", MOST_ALONE)
    assert not verdict.trusted


def test_a_refined_map_whose_partners_are_not_found_again_is_not_relied_on():
    found = replace(NOTHING, surprise=50.0, confirmed=0.17)
    assert not judge(solution(found, "refined"), SHAPE).trusted
    for confirmed, finer, relied in ((0.6, -1.0, 1), (0.5, 3.5, 0), (0.25, 4.0, 1), (0.2, 9.0, 0)):
        again = judge(solution(replace(found, confirmed=confirmed, finer=finer), "refined"), SHAPE)
        assert (again.level == "reliable") == bool(relied)
    unknown = judge(solution(replace(found, confirmed=0.5), "refined"), SHAPE)
    assert unknown.level != "reliable"  # no component is left to tell


def test_held_out_pairs_weigh_by_their_number():
    few, many = (with_held_out((0.1,) * k) for k in (4, 400))
    assert 0.1 < many[0] < few[0] < 0.3
    assert many[1] < few[1] < 0.2


@pytest.mark.parametrize(
    ("evidence", "shape", "words"),
    [
        (replace(NOTHING, agreement=0.2), SHAPE, "starts disagree"),
        (replace(NOTHING, gap=0.01), SHAPE, "hardly better than unrelated data"),
        (replace(NOTHING, surprise=1.0), SHAPE, "no closer to each other than strangers"),
        (replace(NOTHING, flips=0.0), SHAPE, "hardly better than with directions turned round"),
        (NOTHING, replace(SHAPE, n=60), "few rows (60)"),
        (NOTHING, replace(SHAPE, repeats=0.5), "many repeated rows (50%)"),
        (NOTHING, replace(SHAPE, rank=1.2), "few directions"),
    ],
)
def test_reasons_are_told_in_words(evidence, shape, words):
    good = Evidence({}, 0.9, 0.9, 0.9, 9.0, 0.9)
    assert words in "; ".join(judge(solution(evidence), shape).reasons)
    assert words not in "; ".join(judge(solution(good, "evident"), SHAPE).reasons)


def test_a_coarse_verdict_is_trusted_from_nine_tenths_on():
    verdict = Verdict("coarse", 0.9, 0.1, (0.0, 0.2))
    assert verdict.trusted
    assert not replace(verdict, probability=0.89).trusted
    assert not replace(verdict, level="unreliable").trusted
    assert "coarse" in str(verdict)
    assert json.loads(json.dumps(asdict(verdict)))["interval"] == [0.0, 0.2]


@pytest.mark.parametrize("kind", ["gaussian", "clusters", "student", "duplicates"])
def test_noise_is_not_trusted(kind, rng):
    def side():
        if kind == "clusters":
            return 4 * rng.standard_normal((5, 12))[rng.integers(5, size=70)] + rng.standard_normal(
                (70, 12)
            )
        if kind == "student":
            return rng.standard_t(2, (70, 12))
        if kind == "duplicates":
            return rng.standard_normal((20, 12))[rng.integers(20, size=70)]
        return rng.standard_normal((70, 300))

    found = unpaired.match(side(), side())
    assert found.verdict.level == "unreliable"
    assert not found.trusted
    assert found.summary().startswith("verdict: unreliable")
    assert (found.confidence >= 0.5).mean() == 0


def test_repeated_rows_cost_the_others_little_and_claim_little(rng):
    n, d = 300, 20
    x = rng.standard_normal((n, d))
    y = x @ np.linalg.qr(rng.standard_normal((d, d)))[0] + 0.1 * rng.standard_normal((n, d))
    y[:30] = 0.0
    found = unpaired.match(x, y)
    rest = np.arange(30, n)
    assert (found.partner[rest] == rest).mean() > 0.95
    assert found.verdict.level == "reliable"
    assert found.confidence[rest].mean() > 0.8
    assert found.confidence[found.partner < 30].max() <= 1 / 30
    kept = unpaired.match(x, y, leave_out=True)
    assert (kept.partner[:30] == -1).mean() > 0.9


def test_few_rows_are_told(rng):
    x = rng.standard_normal((20, 4))
    found = unpaired.match(x, x[rng.permutation(20)])
    assert found.verdict.level == "unreliable"
    assert "few rows (20)" in found.verdict.reasons


def test_a_verdict_is_saved_with_the_model(rng, tmp_path):
    x = rng.standard_normal((80, 6))
    y = x @ rng.standard_normal((6, 5)) + 0.1 * rng.standard_normal((80, 5))
    pairs = np.column_stack([np.arange(40)] * 2)
    model = unpaired.DMAE(n_epochs=0, n_rounds=1, random_state=0).fit(x, y, pairs=pairs)
    assert model.match_.verdict.trusted
    assert "40 known pairs" in model.match_.verdict.reasons[0]
    model.save(tmp_path / "model")
    again = unpaired.load(tmp_path / "model")
    assert again.match_.verdict == model.match_.verdict
