"""# Photos → names

You have a pile of photos and a list of names, and nobody labelled anything. In five minutes:
names for all of them, and a better answer after you looked at three groups.
"""

# %%
# ## The data
#
# 16,000 CIFAR-10 photos stand inside the package, each as 128 numbers of an image network; the
# ten names come as word vectors and as sentence vectors. The true labels are only for scoring,
# and to play the person who is asked. Your own photos: `unpaired classify folder names.txt --out
# named` makes the vectors for you ([Photos and names](../classes.md#from-a-folder-of-photos)).

import numpy as np

import unpaired
from unpaired.datasets import load_pile, load_sample

sample, pile = load_sample(), load_pile()
truth = np.array(sample.class_names)[pile.labels]
print(pile.features.shape, [vectors.shape for vectors in sample.class_vectors])

# %%
# ## Name them without a label

clf = unpaired.UnsupervisedClassifier(random_state=0)
clf.fit(pile.features, sample.class_vectors, classes=sample.class_names)
right = [clf.score(pile.features, truth)]
print(f"right without a label: {right[0]:.1%}; by chance: 10%")

# %%
# ## Answer three questions
#
# Names are right or wrong for a whole group at a time. `suggest` says which group's name is least
# certain and shows some of its photos. Look at them and say what they are. Ask again after each
# answer: it changes what is uncertain elsewhere.

names = {}
for _ in range(3):
    question = clf.suggest()[0]
    answer = truth[question.rows[0]]  # you: look at the photos in question.rows
    names[question.group] = answer
    clf.fit(pile.features, sample.class_vectors, classes=sample.class_names, names=names)
    right.append(clf.score(pile.features, truth))
    print(f'{question.size:,} photos are "{answer}": {right[-1]:.1%} right')

# %%
# ## Look at the result
#
# Here the truth is known. With your photos it is not: `unpaired classify` writes a page with the
# photos under their names, surest first.

import matplotlib.pyplot as plt

figure, (bars, grid) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(1, 2), layout="tight")
bars.bar(range(4), right, color=["#a9b0bb", "#a9b0bb", "#a9b0bb", "#22559c"])
bars.axhline(0.1, color="black", lw=0.8, ls="--")
bars.set(xticks=range(4), xlabel="answers given", ylabel="share of photos named right", ylim=(0, 1))
shown = np.arange(len(sample.images))
rows = []
for name in clf.classes_:
    own = shown[clf.labels_[shown] == name]
    best = own[np.argsort(-clf.confidence_[own])[:12]]
    rows.append(np.concatenate(list(sample.images[best]), axis=1))
grid.imshow(np.concatenate(rows))
grid.set(
    xticks=[], yticks=16 + 32 * np.arange(10), yticklabels=clf.classes_, title="after three answers"
)

# %%
# ## What next
#
# - New photos: `clf.predict(new)`, or `unpaired predict named/model folder`. Keep the model:
#   `clf.save("folder")`.
# - Labels of some photos help as well: `fit(..., labels)` with -1 for unknown.
# - It went wrong? [Three ways to fail](../classes.md#three-ways-to-fail).
