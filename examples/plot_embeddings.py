"""# Translate embeddings

A database holds vectors of an old model; the new model is here, the old documents are not all at
hand. In five minutes: a map from the old vectors to the new, learned from *different* documents,
applied and checked.
"""

# %%
# ## The data
#
# So that this page runs anywhere, digit images are the "documents" and two random networks of one
# layer the "models". Text encoders differ by more: which pairs of them can be translated without
# a pair of documents stands in [the notebook](../notebook/translation.md).

import numpy as np
from sklearn.datasets import load_digits

rng = np.random.default_rng(0)
documents = load_digits().data / 16
documents = documents - documents.mean(0)
old = np.tanh(documents @ rng.normal(size=(64, 128)) / 4)
new = np.tanh(documents @ rng.normal(size=(64, 96)) / 4)

order = rng.permutation(len(documents))
np.save("old.npy", old[order[:800]])  # what the database holds
np.save("new.npy", new[order[800:1600]])  # other documents, embedded by the new model
np.save("more-old.npy", old[order[1600:]])

# %%
# ## Learn the map, and apply it

# %% [bash]
# unpaired translate old.npy new.npy --out map
# unpaired translate map more-old.npy --out more-new.npy

# %%
# ## Check it
#
# 197 documents that neither side of the fit has seen: does a translated vector find its own
# document by cosine?

import matplotlib.pyplot as plt

moved, target = np.load("more-new.npy"), new[order[1600:]]
unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (moved, target)]
scores = unit[0] @ unit[1].T
rank = (scores > np.diag(scores)[:, None]).sum(1)
print(f"P@1 {np.mean(rank == 0):.1%}, P@10 {np.mean(rank < 10):.1%} of {len(rank)}")

figure, axes = plt.subplots(figsize=(6, 3), layout="tight")
others = scores[~np.eye(len(scores), dtype=bool)]
axes.hist(
    [others, np.diag(scores)],
    60,
    density=True,
    label=["other documents", "its own document"],
    color=["#a9b0bb", "#22559c"],
)
axes.set(xlabel="cosine of a translated vector to", yticks=[])
axes.legend(frameon=False)

# %%
# Vectors of text encoders mostly share a mean, so that cosines to wrong documents are far from zero
# there: believe the verdict and ranks, not a cosine alone.
#
# ## What next
#
# - The map is plain arrays in `map/translation/`: `row @ matrix + offset`; `--onnx` writes it as
#   one ONNX file.
# - Documents that both models embedded: `--pairs`. With ten or more, some are held out and told.
# - In Python: `unpaired.align(old, new).translate_x(rows)` ([Translate
#   vectors](../translate.md)).
