"""The three tasks on data whose answer is known, and the protocols they promise."""

import numpy as np
import pytest

from unpaired.bench.config import MethodSpec
from unpaired.bench.matching import run_matching
from unpaired.bench.namers import linear_svm
from unpaired.bench.outcome import amount
from unpaired.bench.retrieval import build_training, first_captions, mean_captions, run_retrieval
from unpaired.bench.ucl import draw_piles, run_ucl, unseen_classes
from unpaired.datasets.prepared import load_caption_features, load_class_features
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import InputError


def by(name, fit=None, **params):
    """The method of that name, as a configuration gives it."""
    return MethodSpec(name, name, params, fit or {})


RIDGE = by("toy_method:Ridge")


@pytest.fixture
def captions(captions_folder):
    return load_caption_features(captions_folder / "flickr")


@pytest.fixture
def classes(classes_folder):
    return load_class_features(classes_folder / "classes")


def test_amounts():
    assert amount("0%", 10) == 0
    assert amount("25 pairs", 30) == 25
    assert amount("0.5%", 1000) == 5
    for row in ("half", "-1%", "50 pairs"):
        with pytest.raises(InputError):
            amount(row, 30)


def test_a_known_pair_brings_all_captions_and_unpaired_texts_are_means(captions):
    rng = np.random.default_rng(0)
    known, rest = np.array([3, 5]), np.array([7, 9, 11])
    x_rows, texts, pairs, truth = build_training(captions, known, rest, rest, rng)
    assert sorted(x_rows) == [3, 5, 7, 9, 11]
    assert len(texts) == 2 * 3 + 3
    assert len(pairs) == 6
    for row, column in pairs:
        owner = x_rows[row]
        assert owner in known
        own = captions.y[captions.owner == owner]
        assert (texts[column] == own).all(1).any()
    for row in np.flatnonzero(np.isin(x_rows, rest)):
        mean = captions.y[captions.owner == x_rows[row]].mean(0)
        np.testing.assert_allclose(texts[truth[row]], mean, rtol=1e-5)
    assert np.array_equal(mean_captions(captions.y, captions.owner, known[:0]).shape, (0, 5))


def test_disjoint_halves_have_no_partner(captions):
    rng = np.random.default_rng(0)
    *_, pairs, truth = build_training(
        captions, np.array([1]), np.array([2, 3]), np.array([4, 5]), rng
    )
    assert len(pairs) == 3
    assert sorted(truth >= 0) == [False, False, True]


def test_first_captions(captions):
    owner = np.array([1, 0, 1, 0, 1, 2])
    np.testing.assert_array_equal(first_captions(owner, np.array([0, 1]), 2), [0, 1, 2, 3])
    np.testing.assert_array_equal(first_captions(owner, np.array([1]), None), [0, 2, 4])


def test_retrieval_with_all_pairs_finds_nearly_all(captions, place):
    found = run_retrieval(captions, RIDGE, "sup", "100%", 0, {})
    assert found.metrics["x->y R@1"] > 0.9
    assert found.metrics["csls y->x R@1"] > 0.8
    assert found.sizes == {
        "known images": 40,
        "pairs": 120,
        "unpaired images": 0,
        "unpaired texts": 0,
        "test images": 15,
        "test captions": 45,
    }
    assert "precision" not in found.metrics
    again = run_retrieval(captions, RIDGE, "sup", "100%", 0, {"test_captions": 1, "max_train": 20})
    assert again.sizes["test captions"] == 15
    assert again.sizes["known images"] == 20


def test_retrieval_semi_adds_the_unpaired_rest(captions, place):
    found = run_retrieval(captions, by("match"), "semi", "0%", 0, {})
    assert found.sizes["unpaired texts"] == 40
    assert 0 <= found.metrics["precision"] <= 1
    half = run_retrieval(captions, RIDGE, "semi", "50%", 0, {"disjoint": True})
    assert half.sizes["unpaired images"] + half.sizes["unpaired texts"] == 20
    with pytest.raises(InputError, match="needs data with splits"):
        run_retrieval(TwoViews(captions.x, captions.y, captions.truth), RIDGE, "sup", "9%", 0, {})


def test_matching_measures_only_what_was_not_told(place, rng):
    x = rng.normal(size=(50, 4))
    order = rng.permutation(50)
    truth = np.argsort(order)
    data = TwoViews(x, (x @ rng.normal(size=(4, 6)))[order], truth)
    found = run_matching(data, RIDGE, "sup", "20 pairs", 0, {})
    assert found.metrics["x->y R@1"] == 1.0
    assert found.metrics["foscttm"] == 0.0
    assert found.sizes == {"x": 50, "y": 50, "pairs": 20, "tested": 30}
    some = run_matching(data, RIDGE, "sup", "20 pairs", 0, {"max_rows": 30})
    assert some.sizes == {"x": 30, "y": 30, "pairs": 20, "tested": 10}
    assert some.metrics["x->y R@1"] == 1.0
    with pytest.raises(InputError, match="leaves 0 rows"):
        run_matching(data, RIDGE, "sup", "100%", 0, {})
    blind = TwoViews(x, rng.normal(size=(50, 6)), truth)  # nothing to find: no better than chance
    assert run_matching(blind, RIDGE, "sup", "40%", 0, {}).metrics["foscttm"] > 0.3


def test_matching_without_a_pair_and_its_curve(place, rng):
    x = rng.normal(size=(80, 5)) * np.linspace(3, 1, 5)
    rotation = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    data = TwoViews(x, x @ rotation, np.arange(80))
    found = run_matching(data, by("match"), "semi", "0 pairs", 0, {})
    assert found.metrics["precision"] == 1.0
    traced = run_matching(
        data, by("dmae", n_rounds=2), "semi", "85%", 0, {}
    )  # with fewer pairs the engine finds all partners at once, and there are no rounds
    assert len(traced.history) >= 2
    assert set(traced.history[0]) == {"step", "precision", "recall"}


def test_piles_of_an_lut_row(classes):
    rng = np.random.default_rng(0)
    piles = draw_piles(classes, "0.02-0.1-0.05", rng, {})
    assert [len(p) for p in (piles.labelled, piles.unlabelled, piles.test)] == [20, 100, 50]
    assert set(classes.split[piles.test]) == {"test"}
    assert set(classes.split[np.r_[piles.labelled, piles.unlabelled]]) == {"train"}
    assert not set(piles.labelled) & set(piles.unlabelled)
    percent = draw_piles(classes, "20-20-60", rng, {"unit": "percent"})
    assert [len(p) for p in (percent.labelled, percent.unlabelled, percent.test)] == [48, 48, 144]
    fewer = draw_piles(classes, "20-20-60", rng, {"unit": "percent", "max_test": 30})
    assert [len(p) for p in (fewer.labelled, fewer.unlabelled, fewer.test)] == [48, 48, 30]
    half = draw_piles(classes, "0.02-0.1-0.05", rng, {"scale": 0.5})
    assert len(half.unlabelled) == 50
    for row, options in (("1-0-1", {}), ("ten", {}), ("1-0-1", {"unit": "dozen"})):
        with pytest.raises(InputError):
            draw_piles(classes, row, rng, options)


@pytest.mark.parametrize("setting", ["inductive", "transductive"])
def test_naming_by_a_method_of_two_views(classes, place, setting):
    found = run_ucl(classes, RIDGE, setting, "0.04-0.1-0.08", 0, {})
    assert found.sizes["pile"] == (140 if setting == "inductive" else 220)
    assert found.metrics["nearest accuracy"] > 0.9
    assert found.metrics["svm embedding accuracy"] > 0.9
    assert found.metrics["svm accuracy"] > 0.9
    assert found.metrics["precision"] > 0.9


def test_naming_by_a_method_that_takes_many_images_to_one_class(classes, place):
    options = {"svm": ["embedding"], "max_test": 50}
    found = run_ucl(classes, by("mcca"), "inductive", "0.04-0.1-0.08", 0, options)
    assert found.sizes["test"] == 50
    assert found.metrics["nearest accuracy"] > 0.9
    assert found.metrics["precision"] > 0.9


def test_naming_by_the_classifier_traces_its_rounds(classes, place):
    found = run_ucl(
        classes,
        by("classifier", n_rounds=1),
        "inductive",
        "0.04-0.1-0.08",
        0,
        {"svm": ["embedding"]},
    )
    assert found.metrics["svm embedding accuracy"] > 0.9
    assert "svm accuracy" not in found.metrics
    assert {"step", "precision", "recall"} <= set(found.history[0])


def test_zero_shot_tests_on_classes_that_were_not_seen(classes, place):
    found = run_ucl(classes, RIDGE, "zero-shot", "2 unseen", 0, {})
    assert found.sizes == {"train": 80, "test": 40, "seen": 2, "unseen": 2}
    assert found.metrics["chance"] == 0.5
    assert 0 <= found.metrics["zero-shot accuracy"] <= 1
    deep = run_ucl(classes, by("dmae"), "zero-shot", "1 unseen", 0, {})
    assert deep.metrics["zero-shot accuracy"] == 1.0  # one class to choose from
    official = TwoViews(
        classes.x, classes.y, classes.truth, split=np.where(classes.truth < 2, "train", "test")
    )
    rng = np.random.default_rng(0)
    assert unseen_classes(official, "official", rng).tolist() == [2, 3]
    assert run_ucl(official, RIDGE, "zero-shot", "official", 0, {}).sizes["test"] == 120
    with pytest.raises(InputError, match="K below 4"):
        unseen_classes(classes, "4 unseen", rng)


def test_svm_on_inferred_names(rng):
    rows = np.concatenate([rng.normal(size=(30, 3)) + 4, rng.normal(size=(30, 3)) - 4])
    labels = np.repeat([2, 0], 30)
    labels[0] = -1
    np.testing.assert_array_equal(linear_svm(rows, labels, rows), np.repeat([2, 0], 30))
    assert linear_svm(rows, np.full(60, 1), rows).tolist() == [1] * 60
    with pytest.raises(InputError, match="at least one named row"):
        linear_svm(rows[:0], labels[:0], rows)
