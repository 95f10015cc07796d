"""What a fit must not see: truths of rows whose label or pair was not told, replaced by garbage.

The same cell is run twice, with the right truths and with garbage where nothing was told. Whatever
the method learned must be the same to the bit.
"""

import numpy as np
import pytest

from unpaired.bench import matching, namers, retrieval, ucl
from unpaired.bench.config import MethodSpec
from unpaired.datasets.prepared import load_class_features
from unpaired.datasets.two_views import TwoViews

ROW = "0.04-0.06-0.04"
METHODS = {
    "classifier": {"n_rounds": 1},
    "dmae": {"n_rounds": 1},
    "mcca": {},
    "deep-mcca": {"n_epochs": 1, "n_rounds": 2},
    "wasserstein-procrustes": {"n_restarts": 2, "n_rounds": 3},
    "toy_method:Ridge": {},
}


@pytest.fixture
def classes(classes_folder):
    return load_class_features(classes_folder / "classes")


@pytest.fixture
def models(monkeypatch):
    """All estimators that the tasks make, in order."""
    made = []

    def keep(make):
        def noted(*arguments, **options):
            made.append(make(*arguments, **options))
            return made[-1]

        return noted

    for module in (ucl, namers, matching, retrieval):
        monkeypatch.setattr(module, "make_method", keep(module.make_method))
    return made


def learned(model, x, y):
    """All that a fitted model can be asked."""
    found = [np.asarray(getattr(model.match_, "partner", None))] if hasattr(model, "match_") else []
    if hasattr(model, "predict"):
        return [*found, model.labels_, model.predict_proba(x)]
    return [*found, model.score_matrix(x, y)]


def same_bits(models, x, y):
    first, second = (learned(model, x, y) for model in models)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("setting", ["inductive", "transductive"])
def test_labels_of_unlabelled_images_do_not_reach_a_fit(classes, place, models, name, setting):
    method = MethodSpec(name, name, METHODS[name])
    piles = ucl.draw_piles(classes, ROW, np.random.default_rng([0, 6]), {})
    truth = np.random.default_rng(9).integers(len(classes.y), size=len(classes.x))
    truth[piles.labelled] = classes.truth[piles.labelled]
    garbage = TwoViews(classes.x, classes.y, truth, split=classes.split)
    right, wrong = (
        ucl.run_ucl(data, method, setting, ROW, 0, {"svm": []}) for data in (classes, garbage)
    )
    assert len(models) == 2
    same_bits(models, classes.x, classes.y)
    assert right.metrics["nearest accuracy"] != wrong.metrics["nearest accuracy"]


def test_classes_of_unseen_images_do_not_reach_a_fit(classes, place, models):
    method = MethodSpec("cca", "cca")
    unseen = ucl.unseen_classes(classes, "2 unseen", np.random.default_rng([0, 8]))
    swapped = classes.truth.copy()
    swapped[classes.truth == unseen[0]], swapped[classes.truth == unseen[1]] = unseen[::-1]
    garbage = TwoViews(classes.x, classes.y, swapped, split=classes.split)
    for data in (classes, garbage):
        ucl.run_ucl(data, method, "zero-shot", "2 unseen", 0, {})
    same_bits(models, classes.x, classes.y)


@pytest.mark.parametrize("name", ["mcca", "match"])
def test_pairs_that_were_not_told_do_not_reach_a_fit(place, models, rng, name):
    x = rng.normal(size=(60, 5)) * np.linspace(3, 1, 5)
    y = x @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.05 * rng.normal(size=(60, 5))
    draw = np.random.default_rng([0, 7])  # as the task draws: both orders, then the known rows
    order_x, _ = draw.permutation(60), draw.permutation(60)
    told = order_x[draw.permutation(60)[:15]]
    truth = np.arange(60)
    rest = np.setdiff1d(truth, told)
    truth[rest] = np.roll(rest, 1)
    for pairing in (np.arange(60), truth):
        data = TwoViews(x, y, pairing)
        matching.run_matching(data, MethodSpec(name, name), "semi", "25%", 0, {})
    same_bits(models, x, y)
