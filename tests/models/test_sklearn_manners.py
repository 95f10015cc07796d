"""scikit-learn's own checks of estimators: those that make sense pass, the others say why not.

The checks call ``fit(X, y)`` with labels or targets as y. Ours take a second collection there, so
each estimator is checked behind a face that gives it one.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import unpaired

OWN_WORDS = "refused, in a sentence of our own: argument, rule, what came, what to do"
SECOND_SIDE = "score takes rows of both sides, and the check gives labels"
NO_OBJECTS = "a column of objects is never taken for numbers"
NO_LABELS = "fit takes one vector per class where the check gives labels"
REFUSED = "n_components has no effect without pairs, and is refused there"
EVERYWHERE = {
    "check_n_features_in_after_fitting": OWN_WORDS,
    "check_complex_data": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
    "check_fit2d_1sample": OWN_WORDS,
    "check_dtype_object": NO_OBJECTS,
}
TWO_SIDED = EVERYWHERE | {
    "check_fit_score_takes_y": SECOND_SIDE,
    "check_pipeline_consistency": SECOND_SIDE,
}


class Dmae(unpaired.DMAE):
    def fit(self, X, y=None):
        return super().fit(X, X)


class Published(unpaired.PublishedDMAE):
    def fit(self, X, y=None):
        return super().fit(X, X)


class Classifier(unpaired.UnsupervisedClassifier):
    def fit(self, X, y=None):
        return super().fit(X, np.eye(3))


CASES = {
    "DMAE": (
        Dmae(),
        TWO_SIDED
        | dict.fromkeys(
            [
                "check_dont_overwrite_parameters",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
                "check_fit2d_1feature",
                "check_fit2d_predict1d",
            ],
            REFUSED,
        ),
    ),
    "PublishedDMAE": (
        Published(n_rounds=1, n_epochs=1, n_pretrain_epochs=1, n_pi_steps=3),
        TWO_SIDED,
    ),
    "UnsupervisedClassifier": (
        Classifier(n_rounds=1),
        EVERYWHERE
        | {
            "check_fit2d_predict1d": OWN_WORDS,
            "check_estimator_sparse_array": "it has predict_proba, and learns from no labels",
            "check_estimator_sparse_matrix": "it has predict_proba, and learns from no labels",
            "check_transformer_preserve_dtypes": "rows come back in single precision",
            "check_fit_score_takes_y": "what score compares with is called truth",
        }
        | dict.fromkeys(
            [
                "check_classifiers_one_label",
                "check_classifiers_classes",
                "check_classifiers_train",
                "check_classifiers_regression_target",
                "check_supervised_y_no_nan",
                "check_supervised_y_2d",
            ],
            NO_LABELS,
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_checks_pass_but_for_those_that_are_named(name):
    estimator, reasons = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks' data collapse, and skips warn
        told = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {entry["check_name"]: entry["exception"] for entry in told}
    failed = {k: e for k, e in failed.items() if e is not None and "SkipTest" not in repr(e)}
    assert {k: repr(e)[:200] for k, e in failed.items() if k not in reasons} == {}
    assert set(reasons) - set(failed) == set(), "named, but it passes now: take it off the list"
    assert sum(entry["status"] == "passed" for entry in told) >= 25


@pytest.fixture
def frames(rng):
    factors = rng.standard_normal((20, 3))
    x, y = (factors @ rng.standard_normal((3, width)) for width in (4, 5))
    return pd.DataFrame(x, columns=list("abcd")), pd.DataFrame(y, columns=list("pqrst"))


@pytest.mark.parametrize(
    "model",
    [
        unpaired.DMAE(random_state=0),
        unpaired.PublishedDMAE(n_rounds=1, n_epochs=1, n_pretrain_epochs=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_columns_of_both_sides_are_told_checked_and_saved(model, frames, tmp_path):
    x, y = frames
    assert not hasattr(model, "n_features_in_")
    model.fit(x, y, "aligned" if isinstance(model, unpaired.PublishedDMAE) else None)
    model.save(tmp_path / "model")
    for fitted in (model, unpaired.load(tmp_path / "model")):
        assert (fitted.n_features_in_, fitted.n_features_in_y_) == (4, 5)
        assert fitted.feature_names_in_.tolist() == list("abcd")
        assert fitted.feature_names_in_y_.tolist() == list("pqrst")
        with pytest.raises(unpaired.InputError, match="in the order of fit"):
            fitted.transform_y(y[list("qprst")])
        with pytest.raises(unpaired.InputError, match="must have the 4 columns seen in fit"):
            fitted.transform_x(x[["a", "b"]])


@pytest.mark.parametrize(
    "model",
    [
        unpaired.DMAE(random_state=0),
        unpaired.PublishedDMAE(n_rounds=1, n_epochs=1, n_pretrain_epochs=1, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_two_sides_give_frames_when_asked(model, frames):
    x, y = frames
    y.index = [f"row {k}" for k in range(len(y))]
    name = type(model).__name__.lower()
    model.fit(x, y, "aligned" if isinstance(model, unpaired.PublishedDMAE) else None)
    plain = model.transform_y(y)
    assert isinstance(plain, np.ndarray)
    frame = model.set_output(transform="pandas").transform_y(y)
    assert frame.index.equals(y.index)
    assert frame.columns[0] == f"{name}0"
    np.testing.assert_array_equal(frame.to_numpy(), plain)
    assert isinstance(clone(model).fit(x, y, "aligned").transform_x(x), pd.DataFrame)
    table = model.set_output(transform="polars").transform_x(pl.from_pandas(x))
    assert table.columns[0] == f"{name}0"
    assert model.set_output() is model
    np.testing.assert_array_equal(model.set_output(transform="default").transform_y(y), plain)
    with pytest.raises(
        unpaired.InputError, match='Unknown transform "panda". Did you mean "pandas"'
    ):
        model.set_output(transform="panda")


def test_translated_rows_have_the_other_sides_names_and_settings_of_scikit_learn_count(frames):
    x, y = frames
    model = unpaired.DMAE(random_state=0).fit(x, y)
    with config_context(transform_output="pandas"):
        moved = model.translate_x(x)
        assert moved.columns.tolist() == list("pqrst")
        assert isinstance(model.set_output(transform="default").translate_x(x), np.ndarray)
    np.testing.assert_array_equal(model.translate_x(x), moved.to_numpy())


@pytest.mark.parametrize("labels", [None, [0, 1, 2] + 17 * [-1]], ids=["groups", "kernel"])
def test_the_classifier_gives_frames_when_asked(frames, labels):
    x, _ = frames
    x = x.set_index(pd.Index([f"photo-{i}" for i in range(len(x))]))
    model = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=0)
    model.fit(x, np.eye(3), labels)
    rows = model.transform(x)
    frame = model.set_output(transform="pandas").transform(x)
    assert frame.index.equals(x.index)
    assert frame.columns[0] == "unsupervisedclassifier0"
    np.testing.assert_array_equal(frame.to_numpy(), rows)


def test_a_grid_is_searched_without_labels(rng):
    centres = 5 * rng.standard_normal((4, 6))
    images = centres[np.arange(160) % 4] + rng.standard_normal((160, 6))
    search = GridSearchCV(
        unpaired.UnsupervisedClassifier(random_state=0), {"n_rounds": [0, 1]}, cv=2
    )
    search.fit(images, class_vectors=centres)
    assert 0.7 < search.best_score_ <= 1.0
    model = search.best_estimator_
    noise = rng.standard_normal((160, 6))
    assert model.score(noise) < model.score(images)
    assert model.score(images) == pytest.approx(model.score(images[::-1]))


def test_a_grid_over_a_model_of_two_sides_is_searched_without_pairs(frames):
    x, y = frames
    search = GridSearchCV(unpaired.DMAE(random_state=0), {"relation": ["one-to-one"]}, cv=2)
    search.fit(x.to_numpy(), y.to_numpy())
    assert 0.0 <= search.best_score_ <= 1.0


def test_the_classifier_fits_and_transforms_at_once(frames):
    x, _ = frames
    model = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=0)
    both = model.fit_transform(x, np.eye(3))
    np.testing.assert_array_equal(both, model.transform(x))
    assert model.n_features_in_ == 4
    assert not hasattr(model, "n_features_in_y_")
