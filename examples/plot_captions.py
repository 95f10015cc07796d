"""# Photos and captions

You have photos and captions, a few pairs of which you know, and want the right caption for every
photo, also for photos to come. In five minutes: learn from sixty pairs, retrieve, and look.
"""

# %%
# ## The data
#
# So that this page runs anywhere, digits stand in: the upper half of an image is the "photo", the
# lower half its "caption". They have no column in common, as photos and captions have none. With
# real ones, `unpaired encode images folder --out photos.npz` and `unpaired encode texts
# captions.txt --out captions.npz` make the vectors; what that gives on Flickr8k stands under
# [Results](../results.md).

import csv

import numpy as np
from sklearn.datasets import load_digits

digits, label = load_digits().images, load_digits().target
upper, lower = digits[:, :4].reshape(-1, 32), digits[:, 4:].reshape(-1, 32)
rng = np.random.default_rng(0)
order = rng.permutation(len(digits))
known, new = order[:800], order[800:1400]  # rows to learn from, and photos to come
shuffled = rng.permutation(known)  # captions in an order of their own

np.save("photos.npy", upper[known])
np.save("captions.npy", lower[shuffled])
place = {row: number for number, row in enumerate(shuffled)}
with open("pairs.csv", "w", newline="") as file:
    csv.writer(file).writerows((i, place[known[i]]) for i in range(60))
np.save("new-photos.npy", upper[new])
np.save("new-captions.npy", lower[new])

# %%
# ## Learn from sixty pairs and 740 loose rows of each side

# %% [bash]
# unpaired fit photos.npy captions.npy --pairs pairs.csv --out fitted
# unpaired retrieve fitted/model new-photos.npy new-captions.npy -k 5 --out found.csv
# head -4 found.csv

# %%
# ## Look at the result
#
# 600 photos that the fit never saw, against the 600 captions of the same. By chance the caption is
# among the first five in 0.8% of the cases.

import matplotlib.pyplot as plt

with open("found.csv", newline="") as file:
    found = [
        (int(row["query"]), int(row["rank"]), int(row["found"])) for row in csv.DictReader(file)
    ]
hits = {
    k: np.mean([any(q == f for q, r, f in found[5 * i : 5 * i + k]) for i in range(len(new))])
    for k in (1, 5)
}
print({f"R@{k}": f"{share:.1%}" for k, share in hits.items()})
first = np.array([found[5 * i][2] for i in range(len(new))])
print(f"of the same digit: {np.mean(label[new[first]] == label[new]):.0%}")

figure, cells = plt.subplots(2, 6, figsize=(9, 3.4), layout="tight")
for column in range(6):
    for row, under in enumerate((column, first[column])):
        cells[row, column].imshow(
            np.vstack([digits[new[column]][:4], digits[new[under]][4:]]),
            cmap="Greys",
            interpolation="bicubic",
        )
        cells[row, column].axhline(3.5, color="#b0500f", lw=1)
        cells[row, column].set(xticks=[], yticks=[])
cells[0, 0].set_ylabel("the truth")
cells[1, 0].set_ylabel("retrieved")

# %%
# Single partners are hard to tell: many eights have the same lower half. The verdict said so:
# "coarse".
#
# ## What next
#
# - In Python: `unpaired.DMAE().fit(x, y, pairs=pairs)`, `score_matrix`, `transform_x` ([With
#   pairs](../pairs.md)).
# - No pairs at all? Ask first: `unpaired check photos.npy captions.npy` ([Two
#   tables](../match.md)). Photos against captions by unrelated encoders is where it says
#   "unreliable", and rightly.
# - Five captions a photo: a row may stand in several pairs.
