"""The demo: name the embedded sample's photos, with no labels and with one per class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from unpaired.datasets.sample import Sample, load_sample
from unpaired.evaluation.classifier import classifier_scores, oracle_accuracy
from unpaired.experiment import package_versions, timed
from unpaired.models.classifier import UnsupervisedClassifier
from unpaired.naming.clustering import mean_by
from unpaired.types import FloatArray, IntArray, Naming, RunResult

Tell = Callable[[str], None]


def run_demo(seed: int = 0, tell: Tell = lambda line: None) -> RunResult:
    """Name the sample's photos with no labels and with one label per class, beside a baseline.

    ``tell`` gets a line per stage. The labels of the sample are used to score, and to draw the
    one label per class of the second run; the first run sees none.
    """
    seconds: dict[str, float] = {}
    with timed(seconds, "load"):
        sample = load_sample()
    n_classes = len(sample.class_names)
    tell(f"{len(sample.labels)} photos, {n_classes} class names, no labels")
    with timed(seconds, "k-means baseline"):
        clusters, baseline = name_by_kmeans(sample.features, sample.glove, seed)
    tell(f"baseline, k-means + one uniform-start FAQ: {_accuracy(baseline, sample):.3f}")
    one_each = one_label_per_class(sample.labels, n_classes, np.random.default_rng(seed))
    namings = []
    for title, labels in (("No labels", None), ("One label per class", one_each)):
        with timed(seconds, title.lower()):
            model = UnsupervisedClassifier(random_state=seed)
            model.fit(sample.features, sample.class_vectors, labels)
        namings.append(describe_naming(title, model, sample, labels))
        tell(f"{title.lower()}: {_accuracy(model.labels_, sample):.3f}")
    headline = {
        "No labels": _accuracy(namings[0].labels, sample),
        "One label per class": _accuracy(namings[1].labels, sample),
        "k-means + FAQ, no labels": _accuracy(baseline, sample),
        "k-means named by an oracle": oracle_accuracy(clusters, sample.labels, n_classes),
        "Chance": 1.0 / n_classes,
    }
    return RunResult(
        title="Naming photos that nobody labelled",
        headline=headline,
        settings={
            "data": f"embedded CIFAR-10 sample, {len(sample.labels)} photos",
            "image features": "EfficientNet-Lite0, 1280 numbers a photo",
            "class vectors": "word vectors and sentence vectors of the ten names",
            **model.get_params(),
        },
        seed=seed,
        versions=package_versions(),
        seconds=seconds,
        namings=tuple(namings),
        images=sample.images,
        notes=demo_notes(headline),
    )


def demo_notes(headline: dict[str, float]) -> tuple[str, ...]:
    """What the numbers say, in sentences."""
    ours, baseline = headline["No labels"], headline["k-means + FAQ, no labels"]
    verdict = "beats" if ours > baseline else "does not beat"
    return (
        f"Without a label, {ours:.1%} of the photos got the right name. This {verdict} the "
        f"baseline, k-means with its centres named by one uniform-start FAQ, at {baseline:.1%}.",
        f"One label per class, ten in all, gives {headline['One label per class']:.1%}. An oracle "
        "that names each k-means cluster by its photos' true classes gets "
        f"{headline['k-means named by an oracle']:.1%}; guessing gets {headline['Chance']:.0%}.",
        "No photo's label and no pair of photo and word was used in the first run. The image "
        "features come from a network that saw ImageNet labels, the word and sentence vectors "
        "from text: unsupervised means no label of these photos.",
        "When a name is wrong it is usually wrong for a whole group. Confidence is the probability "
        "that a photo belongs to its group times the probability of the group's name, as far as "
        "the geometry of photos and words can tell; where words mislead, so does it.",
    )


def describe_naming(
    title: str, model: UnsupervisedClassifier, sample: Sample, labels: IntArray | None
) -> Naming:
    """What the report shows of one fit; the true labels are looked at here and not before."""
    n_classes = len(sample.class_names)
    history = [dict(step) for step in model.history_]
    rounds = [step for step in history if "changed" in step]
    for step, partners in zip(rounds, model.trace_[1:], strict=True):
        scores = classifier_scores(partners, sample.labels, n_classes)
        step.update(precision=scores["precision"], recall=scores["recall"])
    return Naming(
        title=title,
        class_names=sample.class_names,
        labels=model.labels_,
        confidence=model.confidence_,
        truth=sample.labels,
        history=history,
    )


def name_by_kmeans(
    features: FloatArray, class_vectors: FloatArray, seed: int
) -> tuple[IntArray, IntArray]:
    """The baseline: k-means clusters (n,), and their names by one uniform-start FAQ (n,)."""
    from scipy.optimize import quadratic_assignment
    from sklearn.cluster import KMeans

    n_classes = len(class_vectors)
    clusters = KMeans(n_classes, n_init=10, random_state=seed).fit_predict(features)
    centres = mean_by(features, clusters, n_classes)
    grams = [_centred_cosine(rows) for rows in (centres, class_vectors)]
    found = quadratic_assignment(grams[0], grams[1], method="faq", options={"maximize": True})
    return clusters.astype(np.int64), np.asarray(found.col_ind[clusters], dtype=np.int64)


def _centred_cosine(rows: FloatArray) -> FloatArray:
    centred = rows - rows.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(unit @ unit.T)


def one_label_per_class(truth: IntArray, n_classes: int, rng: np.random.Generator) -> IntArray:
    """Labels (n,) with one random row of each class known and -1 elsewhere."""
    labels = np.full(len(truth), -1, dtype=np.int64)
    for cls in range(n_classes):
        labels[rng.choice(np.flatnonzero(truth == cls))] = cls
    return labels


def _accuracy(labels: IntArray, sample: Sample) -> float:
    return float((labels == sample.labels).mean())
