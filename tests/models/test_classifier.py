import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone, is_classifier

import unpaired


def named_blobs(rng, n_classes=6, n_per_class=40, spread=0.4):
    """Images around class centres, and class vectors with the same geometry, rotated."""
    centres = rng.standard_normal((n_classes, 12)) * np.linspace(3.0, 1.5, n_classes)[:, None]
    truth = rng.permutation(np.repeat(np.arange(n_classes), n_per_class))
    images = centres[truth] + spread * rng.standard_normal((len(truth), 12))
    rotation = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    return images, centres @ rotation, truth


def test_no_labels_names_the_blobs_and_new_images(seed):
    rng = np.random.default_rng(seed)
    images, vectors, truth = named_blobs(rng)
    clf = unpaired.UnsupervisedClassifier(n_rounds=2, random_state=seed).fit(images[:180], vectors)
    assert (clf.labels_ == truth[:180]).mean() >= 0.95
    assert (clf.predict(images[180:]) == truth[180:]).mean() >= 0.95
    probabilities = clf.predict_proba(images[180:])
    assert probabilities.shape == (60, 6)
    np.testing.assert_allclose(probabilities.sum(1), 1.0, rtol=1e-6)
    assert ((clf.confidence_ >= 0) & (clf.confidence_ <= 1)).all()
    by_class = clf.score_classes(images[180:], truth[180:])
    assert len(by_class["precision"]) == len(by_class["recall"]) == 6


def test_given_labels_are_kept_and_decide_the_names(seed):
    rng = np.random.default_rng(seed)
    images, _, truth = named_blobs(rng)
    meaningless = rng.standard_normal((6, 5))  # names whose geometry says nothing
    labels = np.full(len(truth), -1)
    for cls in range(6):
        labels[np.flatnonzero(truth == cls)[:3]] = cls
    clf = unpaired.UnsupervisedClassifier(n_rounds=2, random_state=seed)
    clf.fit(images, meaningless, labels)
    np.testing.assert_array_equal(clf.labels_[labels >= 0], labels[labels >= 0])
    assert (clf.labels_ == truth).mean() >= 0.95


def test_labels_of_one_class_do_not_vouch_for_the_others(seed):
    images, vectors, truth = named_blobs(np.random.default_rng(seed))
    labels = np.where((truth == 0) & (np.arange(len(truth)) < 120), 0, -1)
    clf = unpaired.UnsupervisedClassifier(n_rounds=2, random_state=seed)
    pairs = np.column_stack([np.flatnonzero(labels == 0), np.zeros((labels == 0).sum(), int)])
    match = unpaired.match(images, vectors, pairs, relation="many-to-one", random_state=seed)
    for verdict in (clf.fit(images, vectors, labels).verdict_, match.verdict):
        assert not verdict.trusted
        assert any("named as classes without any label" in reason for reason in verdict.reasons)
    assert clf.name_certainty_.max() < 0.5


def test_a_second_fit_with_labels_is_judged_by_them(seed):
    rng = np.random.default_rng(seed)
    images, vectors, truth = named_blobs(rng)
    labels = np.where(np.arange(len(truth)) < 60, truth, -1)
    mixed = np.concatenate([rng.permutation(labels[:60]), labels[60:]])
    clf = unpaired.UnsupervisedClassifier(n_rounds=2, random_state=seed)
    verdicts = [clf.fit(images, vectors, given).verdict_ for given in (None, labels, mixed)]
    fresh = unpaired.UnsupervisedClassifier(n_rounds=2, random_state=seed)
    assert verdicts[1] == fresh.fit(images, vectors, labels).verdict_
    told = ["labels, held out" in " ".join(verdict.reasons) for verdict in verdicts]
    assert told == [False, True, True]
    assert [verdict.trusted for verdict in verdicts[1:]] == [True, False]


def test_a_linear_svm_on_top(seed):
    images, vectors, truth = named_blobs(np.random.default_rng(seed))
    clf = unpaired.UnsupervisedClassifier(classifier="svm", random_state=seed)
    clf.fit(images[:180], vectors)
    assert (clf.predict(images[180:]) == truth[180:]).mean() >= 0.95


def test_a_kernel_classifier_is_saved_with_its_labels(tmp_path):
    images, vectors, truth = named_blobs(np.random.default_rng(1), n_per_class=20)
    labels = np.where(np.arange(len(truth)) < 60, truth, -1)
    clf = unpaired.UnsupervisedClassifier(random_state=0).fit(images, vectors, labels)
    assert clf.notes_ == []
    assert clf.transform(images).shape == (120, 120)
    clf.save(tmp_path)
    loaded = unpaired.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(images), clf.predict_proba(images))
    assert (loaded.predict(images) == truth).mean() >= 0.95


def test_a_logistic_classifier_on_top(seed):
    images, vectors, truth = named_blobs(np.random.default_rng(seed))
    labels = np.where(np.arange(len(truth)) < 60, truth, -1)
    clf = unpaired.UnsupervisedClassifier(classifier="logistic", random_state=seed)
    clf.fit(images[:180], vectors, labels[:180])
    assert (clf.predict(images[180:]) == truth[180:]).mean() >= 0.95


def test_the_match_is_read_from_the_probabilities(seed):
    images, vectors, _ = named_blobs(np.random.default_rng(seed))
    told = []
    clf = unpaired.UnsupervisedClassifier(n_rounds=3, random_state=seed)
    clf.fit(images, vectors, on_step=told.append)
    scores = np.log(clf.predict_proba(images))
    np.testing.assert_array_equal(clf.match_.partner, clf.labels_)
    np.testing.assert_array_equal(clf.labels_, scores.argmax(1))
    ordered = np.sort(scores, axis=1)
    np.testing.assert_allclose(clf.match_.margin, ordered[:, -1] - ordered[:, -2], atol=1e-3)
    np.testing.assert_array_equal(clf.match_.runner_up, np.argsort(scores, axis=1)[:, -2])
    assert (clf.confidence_ <= np.exp(ordered[:, -1]) + 1e-9).all()
    assert told == clf.history_
    assert [step["round"] for step in clf.history_] == [1, 2, 3]
    changed = [(a != b).mean() for a, b in zip(clf.trace_, clf.trace_[1:], strict=False)]
    assert [step["changed"] for step in clf.history_] == pytest.approx(changed)


def test_same_seed_same_bits_and_save_load(tmp_path):
    images, vectors, _ = named_blobs(np.random.default_rng(0))
    descriptions = [torch.as_tensor(vectors), vectors[:, :4] ** 3]
    clf = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=7).fit(images, descriptions)
    again = clone(clf).fit(images, descriptions)
    np.testing.assert_array_equal(clf.predict_proba(images), again.predict_proba(images))
    clf.save(tmp_path)
    loaded = unpaired.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(images), clf.predict_proba(images))
    np.testing.assert_array_equal(loaded.labels_, clf.labels_)
    assert len(loaded.trace_) == len(clf.trace_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_vectors": [np.eye(6), np.eye(5)]}, "class_vectors must describe the same classes"),
        ({"labels": np.zeros(3, dtype=int)}, "labels must be 240 whole numbers"),
        ({"labels": np.full(240, 6)}, "labels must lie between -1 (unknown) and 5"),
        ({"images": np.full((240, 3), np.nan)}, "images must be finite: 720 values"),
        ({"n_rounds": -1}, "n_rounds must be a whole number of at least 0: got -1."),
        ({"classifier": "forest"}, 'Unknown classifier "forest"'),
    ],
)
def test_wrong_input_is_named(change, message):
    images, vectors, _ = named_blobs(np.random.default_rng(0))
    params = {name: change[name] for name in change if name in ("n_rounds", "classifier")}
    given = {name: change[name] for name in change if name not in params}
    with pytest.raises(unpaired.InputError) as caught:
        unpaired.UnsupervisedClassifier(**params).fit(
            **{"images": images, "class_vectors": vectors, **given}
        )
    assert message in str(caught.value)


def test_columns_in_another_order_are_refused():
    images, classes, _ = named_blobs(np.random.default_rng(0))
    frame = pd.DataFrame(images, columns=[f"f{i}" for i in range(images.shape[1])])
    clf = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=0).fit(frame, classes)
    np.testing.assert_array_equal(clf.predict(frame), clf.predict(images))
    with pytest.raises(unpaired.InputError, match="images must have its columns in the order"):
        clf.predict(frame[frame.columns[::-1]])
    with pytest.raises(unpaired.InputError, match="columns seen in fit"):
        clf.transform(images[:, :2])


CALLED = ["ant", "bee", "cat", "dog", "eel", "fox"]


def test_answers_mend_names_that_the_vectors_cannot_give(seed):
    rng = np.random.default_rng(seed)
    images, _, truth = named_blobs(rng)
    meaningless = rng.standard_normal((6, 5))
    clf = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=seed)
    clf.fit(images, meaningless, classes=CALLED)
    names = {}
    for _ in range(6):
        (question,) = clf.suggest(1, n_examples=5)
        assert question.group not in names
        assert (clf.groups_[question.rows] == question.group).all()
        names[question.group] = CALLED[np.bincount(truth[question.rows]).argmax()]
        before = clf.groups_
        clf.fit(images, meaningless, classes=CALLED, names=names)
        np.testing.assert_array_equal(clf.groups_, before)
    assert clf.suggest(3) == []
    assert clf.score(images, np.array(CALLED)[truth]) >= 0.95
    assert (clf.confidence_ > 0.5).mean() > 0.9
    fresh = clone(clf).fit(images, meaningless, classes=CALLED, names=names)
    np.testing.assert_array_equal(fresh.predict_proba(images), clf.predict_proba(images))


def test_answers_outlive_saving_and_belong_to_their_images(tmp_path):
    rng = np.random.default_rng(0)
    images, vectors, _ = named_blobs(rng)
    clf = unpaired.UnsupervisedClassifier(n_rounds=1)
    with pytest.raises(unpaired.InputError, match="names must speak of groups that exist"):
        clf.fit(images, vectors, names={0: 1})
    clf.fit(images, vectors)
    clf.save(tmp_path)
    loaded = unpaired.load(tmp_path)
    asked, asked_again = clf.suggest(2), loaded.suggest(2)
    assert [q.group for q in asked] == [q.group for q in asked_again]
    group = asked[0].group
    told = int(asked[0].classes[-1])
    for model in (clf, loaded):
        model.fit(images, vectors, names={group: told})
        assert (model.labels_[model.groups_ == group] == told).all()
    with pytest.raises(unpaired.InputError, match="names must speak of the groups of the last fit"):
        clf.fit(images[:-1], vectors, names={group: told})


def test_classes_have_names_as_scikit_learn_users_expect(tmp_path, seed):
    rng = np.random.default_rng(seed)
    images, vectors, truth = named_blobs(rng)
    told = np.array(CALLED, dtype=object)[truth]
    labels = told.copy()
    labels[60:] = None
    clf = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=seed)
    assert is_classifier(clf)
    clf.fit(images, vectors, labels, classes=CALLED)
    assert clf.classes_.tolist() == CALLED
    np.testing.assert_array_equal(clf.labels_[:60], told[:60].astype(str))
    predicted = clf.predict(images)
    assert set(predicted.tolist()) <= set(CALLED)
    np.testing.assert_array_equal(predicted, clf.classes_[clf.predict_proba(images).argmax(1)])
    assert clf.score(images, told) == pytest.approx((predicted == told).mean())
    assert clf.score(images, labels) == pytest.approx((predicted == told)[:60].mean())
    by_class = clf.score_classes(images, told)
    assert by_class["recall"][0] == pytest.approx((predicted == told)[told == "ant"].mean())
    clf.save(tmp_path)
    loaded = unpaired.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict(images), predicted)
    np.testing.assert_array_equal(loaded.labels_, clf.labels_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": CALLED[:5]}, "classes must be 6 names"),
        ({"classes": [*CALLED[:5], "ant"]}, "classes must be names that differ"),
        (
            {"labels": ["ant"] * 239 + ["antt"]},
            'Unknown class in labels "antt". Did you mean "ant"?',
        ),
        ({"names": {9: "ant"}}, "names must have groups as keys, 0 to 5: got 9"),
        ({"names": {0: "wasp"}}, "names must give classes of this classifier: got 'wasp'"),
        ({"names": {0: "ant", 1: "ant"}}, "names must give each class to one group: 'ant'"),
        ({"names": ["ant"]}, "names must map groups to classes, such as {3: 'ant'}: got list"),
    ],
)
def test_wrong_names_are_told(change, message):
    images, vectors, _ = named_blobs(np.random.default_rng(0))
    with pytest.raises(unpaired.InputError) as caught:
        unpaired.UnsupervisedClassifier(random_state=0).fit(
            images, vectors, **{"classes": CALLED, **change}
        )
    assert message in str(caught.value)
