"""The demo: name photos that nobody labelled, then ask for the names of three groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np

from unpaired.datasets.sample import Pile, load_pile, load_sample
from unpaired.evaluation.classifier import classifier_scores, oracle_accuracy
from unpaired.experiment import package_versions, timed
from unpaired.models.classifier import UnsupervisedClassifier
from unpaired.naming.clustering import mean_by
from unpaired.results import Naming, RunResult
from unpaired.types import FloatArray, IntArray

Tell = Callable[[str], None]

N_ANSWERS = 3
N_EXAMPLES = 8
NO_LABELS, ANSWERED = "No labels", "Three answers"


@dataclass(frozen=True)
class Answer:
    """What was asked about a group of photos, and what was answered."""

    group: int
    size: int
    called: str
    told: str


def run_demo(
    seed: int = 0,
    tell: Tell = lambda line: None,
    during: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> RunResult:
    """Name 16,000 photos with no label and after three answers, beside a baseline.

    ``tell`` gets a line per stage, and ``during`` is entered with a few words while one goes on.
    The labels of the sample are used to score, and to answer the three questions; the first run
    sees none.
    """
    seconds: dict[str, float] = {}
    with timed(seconds, "load"), during("Loading the photos"):
        sample, pile = load_sample(), load_pile()
    names, n_classes = sample.class_names, len(sample.class_names)
    tell(f"{len(pile.labels):,} photos, {n_classes} class names, no labels")
    with timed(seconds, "k-means baseline"), during("The baseline, k-means"):
        clusters, baseline = name_by_kmeans(pile.features, sample.glove, seed)
    tell(f"baseline, k-means + one uniform-start FAQ: {_accuracy(baseline, pile):.3f}")
    model = UnsupervisedClassifier(random_state=seed)
    with timed(seconds, NO_LABELS.lower()), during("Grouping and naming"):
        model.fit(pile.features, sample.class_vectors)
    unlabelled = describe_naming(NO_LABELS, model, pile, names)
    tell(f"{NO_LABELS.lower()}: {_accuracy(unlabelled.labels, pile):.3f}")
    with timed(seconds, ANSWERED.lower()), during("Asking three questions"):
        answers = ask(model, pile, sample.class_vectors, names)
    for answer in answers:
        tell(f'asked: what are the {answer.size:,} photos called "{answer.called}"? {answer.told}')
    answered = describe_naming(ANSWERED, model, pile, names)
    tell(f"{ANSWERED.lower()}: {_accuracy(answered.labels, pile):.3f}")
    headline = {
        NO_LABELS: _accuracy(unlabelled.labels, pile),
        ANSWERED: _accuracy(answered.labels, pile),
        "k-means + FAQ, no labels": _accuracy(baseline, pile),
        "k-means named by an oracle": oracle_accuracy(clusters, pile.labels, n_classes),
        "Chance": 1.0 / n_classes,
    }
    return RunResult(
        title="Naming photos that nobody labelled",
        headline=headline,
        settings={
            "data": f"{len(pile.labels):,} CIFAR-10 photos, {len(sample.images):,} of them shown",
            "image features": "EfficientNet-Lite0, 128 principal components of 8 bits a photo",
            "class vectors": "word vectors and sentence vectors of the ten names",
            **model.get_params(),
        },
        seed=seed,
        versions=package_versions(),
        seconds=seconds,
        namings=(answered, unlabelled),
        images=sample.images,
        notes=demo_notes(headline, answers),
    )


def ask(
    model: UnsupervisedClassifier,
    pile: Pile,
    class_vectors: Sequence[FloatArray],
    class_names: Sequence[str],
) -> list[Answer]:
    """What was asked and answered; the fitted ``model`` has learned it.

    One question at a time, about the group whose name is then least certain. The answer is what a
    person would see: the commonest true class of the photos shown as examples.
    """
    names: dict[int, int] = {}
    answers = []
    for _ in range(N_ANSWERS):
        (question,) = model.suggest(1, n_examples=N_EXAMPLES)
        votes = np.bincount(pile.labels[question.rows], minlength=len(class_names))
        votes[list(names.values())] = -1  # a class has one group
        told = int(votes.argmax())
        called = int(np.bincount(model.labels_[model.groups_ == question.group]).argmax())
        answers.append(
            Answer(question.group, question.size, class_names[called], class_names[told])
        )
        names[question.group] = told
        model.fit(pile.features, class_vectors, names=names)
    return answers


def demo_notes(headline: dict[str, float], answers: Sequence[Answer]) -> tuple[str, ...]:
    """What the numbers say, in sentences."""
    ours, baseline = headline[NO_LABELS], headline["k-means + FAQ, no labels"]
    verdict = "beats" if ours > baseline else "does not beat"
    asked = "; ".join(
        f'{answer.size:,} photos it called "{answer.called}" are "{answer.told}"'
        for answer in answers
    )
    return (
        f"Without a label, {ours:.1%} of the photos got the right name. This {verdict} the "
        f"baseline, k-means with its centres named by one uniform-start FAQ, at {baseline:.1%}.",
        f"It then asked for the names of three groups, the least certain first, and was told: "
        f"{asked}. With that {headline[ANSWERED]:.1%} are right. The answers come from the true "
        f"classes of the {N_EXAMPLES} photos it shows of each group; no other label was used.",
        "An oracle that names each k-means cluster by its photos' true classes gets "
        f"{headline['k-means named by an oracle']:.1%}; guessing gets {headline['Chance']:.0%}.",
        "No photo's label and no pair of photo and word was used in the first run. The image "
        "features come from a network that saw ImageNet labels, the word and sentence vectors "
        "from text: unsupervised means no label of these photos.",
        "When a name is wrong it is usually wrong for a whole group. Confidence is the probability "
        "that a photo belongs to its group times the probability of the group's name, as far as "
        "the geometry of photos and words can tell; where words mislead, so does it.",
    )


def describe_naming(
    title: str, model: UnsupervisedClassifier, pile: Pile, class_names: tuple[str, ...]
) -> Naming:
    """What the report shows of one fit; the true labels are looked at here and not before."""
    history = [dict(step) for step in model.history_]
    rounds = [step for step in history if "changed" in step]
    for step, partners in zip(rounds, model.trace_[1:], strict=True):
        scores = classifier_scores(partners, pile.labels, len(class_names))
        step.update(precision=scores["precision"], recall=scores["recall"])
    return Naming(
        title=title,
        class_names=class_names,
        labels=model.match_.partner,
        confidence=model.confidence_,
        truth=pile.labels,
        history=history,
        verdict=model.verdict_,
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


def _accuracy(labels: IntArray, pile: Pile) -> float:
    return float((labels == pile.labels).mean())
