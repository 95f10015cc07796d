"""# Two assays of cells

Gene expression of some cells and chromatin accessibility of others, or of the same ones in an
order nobody kept. In five minutes: partners, labels carried over from one assay to the other, and
a verdict that says whether to believe them.
"""

# %%
# ## The data
#
# So that this page runs anywhere, 600 cells of four types are made up: eight hidden factors drive
# the counts of 200 genes and the openness of 150 peaks. Real cells are harder: on SNARE-seq's
# 1,047 cells see [the notebook](../notebook/two-views.md).

import anndata
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

rng = np.random.default_rng(0)
kind = rng.choice(4, 600, p=[0.4, 0.3, 0.2, 0.1])
hidden = 2 * rng.normal(size=(4, 8))[kind] + rng.normal(size=(600, 8)) * np.exp(
    0.5 * rng.normal(size=8)
)
genes = rng.poisson(np.exp(0.5 * hidden @ rng.normal(size=(8, 200)) / np.sqrt(8) + 1))
peaks = rng.random((600, 150)) < 1 / (1 + np.exp(-hidden @ rng.normal(size=(8, 150)) / np.sqrt(8)))

order = rng.permutation(600)  # the second assay has its own order
types = np.array(["B cell", "T cell", "monocyte", "dendritic"])[kind]
rna = anndata.AnnData(
    np.log1p(genes).astype(np.float32),
    obs=pd.DataFrame({"cell_type": types}, index=[f"rna-{i}" for i in range(600)]),
)
atac = anndata.AnnData(
    peaks[order].astype(np.float32), obs=pd.DataFrame(index=[f"atac-{i}" for i in range(600)])
)
for assay, name in ((rna, "X_pca"), (atac, "X_lsi")):
    assay.obsm[name] = PCA(10, random_state=0).fit_transform(assay.X)

# %%
# ## Match them, and carry the cell types over

import unpaired.anndata

m = unpaired.anndata.match(rna, atac, use_rep_x="X_pca", use_rep_y="X_lsi", labels="cell_type")
print(m.verdict)

# %%
# Read that first. How far a single partner can be relied on, its confidence says; cell types are
# groups, and need less. Here the truth is known:

partner = np.argsort(order)
given = atac.obs["unpaired_cell_type"].to_numpy()
print(f"{(given == types[order]).mean():.0%} of the carried-over types are right")
print(f"{(m.partner == partner).mean():.0%} of the cells found their very partner")
print(f"confidence of single partners: median {np.median(m.confidence):.2f}")

# %%
# ## Fifteen cells of known partner
#
# Where some cells were measured by both assays, say so. Held out in turn, they also tell how far
# to believe the rest.

known = np.column_stack([np.arange(15), partner[:15]])
m = unpaired.anndata.match(
    rna, atac, pairs=known, use_rep_x="X_pca", use_rep_y="X_lsi", labels="cell_type"
)
given = atac.obs["unpaired_cell_type"].to_numpy()
print(m.verdict)
print(f"types right: {(given == types[order]).mean():.0%}")
print(f"very partners: {(m.partner == partner).mean():.0%}")

# %%
# ## Look at the space they share

import matplotlib.pyplot as plt

both = np.concatenate([a.obsm["X_unpaired"] - a.obsm["X_unpaired"].mean(0) for a in (rna, atac)])
spots = PCA(2).fit_transform(both)
figure, sides = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="tight")
for axes, name, part, label in (
    (sides[0], "rna", spots[:600], types),
    (sides[1], "atac", spots[600:], types[order]),
):
    for colour, one in zip(
        ("#22559c", "#b0500f", "#2f7d4f", "#7a4a9c"), np.unique(types), strict=True
    ):
        axes.scatter(*part[label == one].T, s=8, color=colour, label=one)
    axes.set(title=f"{name}, coloured by the true type", xticks=[], yticks=[])
sides[1].legend(frameon=False, loc="lower left", bbox_to_anchor=(1, 0))

# %%
# ## The same on files

rna.write_h5ad("rna.h5ad")
atac.write_h5ad("atac.h5ad")

# %% [bash]
# unpaired match rna.h5ad:X_pca atac.h5ad:X_lsi --out result --quiet
# ls result

# %%
# ## What next
#
# - `result/report.html` shows cells side by side, least certain first.
# - Verdict "unreliable"? Labels that it carries over are guesses: bring pairs.
# - Single cells you mean to rely on: `min_confidence=0.5` leaves out those below. It cuts by the
#   confidence in *single* partners, which is more than labels of groups need.
# - Populations that differ: the larger side has cells left out; `leave_out="auto"` leaves out more.
