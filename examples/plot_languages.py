"""# Words of two languages

Word vectors of two languages, trained apart, and no dictionary. In five minutes: ask whether it
will work, match, and read the result with the words in it.
"""

# %%
# ## The data
#
# So that this page runs anywhere, made-up vectors stand in: 1,000 "words" in clusters of uneven
# size; the second language turns them, widens 100 columns to 300 and adds noise. Real languages
# differ by more: what [English and French](../notebook/first-figures.md), or [English and
# Japanese](../will-it-work.md) give without a pair is another matter.

from pathlib import Path

import numpy as np

from unpaired.datasets.toy import rotated_clusters

data = rotated_clusters(1000, np.random.default_rng(0), d_x=100, d_y=300, noise=1.0, uneven=True)
words = {"x": [f"word-{i}" for i in range(1000)], "y": [""] * 1000}
for row, partner in enumerate(data.truth):
    words["y"][partner] = f"mot-{row}"
for name, rows in (("english.csv", "x"), ("french.csv", "y")):
    vectors = getattr(data, rows)
    lines = [
        f"{word},{','.join(f'{v:.4f}' for v in row)}"
        for word, row in zip(words[rows], vectors, strict=True)
    ]
    header = ",".join(["word", *(f"v{c}" for c in range(vectors.shape[1]))])
    Path(name).write_text("\n".join([header, *lines]) + "\n")

# %%
# ## Will it work?

# %% [bash]
# unpaired check english.csv french.csv

# %%
# ## Match

# %% [bash]
# unpaired match english.csv french.csv --out result
# head -4 result/match.csv

# %%
# ## Read the result
#
# A dictionary is a file of two columns. Where you have a small one, keep it out of the match and
# let it judge: `--truth` marks right and wrong rows on the page.

with open("dictionary.csv", "w") as file:
    file.writelines(f"word-{i},mot-{i}\n" for i in range(200))

# %% [bash]
# unpaired report result --truth dictionary.csv

# %%

import csv

import matplotlib.pyplot as plt

with open("result/match.csv", newline="") as file:
    rows = list(csv.DictReader(file))
right = np.array([row["x"].removeprefix("word-") == row["y"].removeprefix("mot-") for row in rows])
margin = np.array([float(row["margin"]) for row in rows])
print(f"{right.mean():.1%} of 1,000 words found their translation; by chance: 0.1%")

figure, axes = plt.subplots(figsize=(6, 3), layout="tight")
bins = np.linspace(margin.min(), margin.max(), 40)
axes.hist(
    [margin[right], margin[~right]],
    bins,
    stacked=True,
    label=["right", "wrong"],
    color=["#22559c", "#b3261e"],
)
axes.set(xlabel="margin over the runner-up", ylabel="words")
axes.legend(frameon=False)

# %%
# ## What next
#
# - "coarse" means neighbourhoods of words, not single translations.
# - Ten entries of a dictionary help more than any setting: `--pairs dictionary.csv`.
# - Another word list to translate: `unpaired translate result more-english.csv --out more.npy`.
