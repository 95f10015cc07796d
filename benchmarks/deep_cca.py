"""Deep CCA beside cca-zoo's: total correlation of held-out rows, same data, widths and epochs.

Each picks its learning rate of three by a fifth of the training rows and is then fitted on all.

Run: python -m benchmarks.deep_cca [--seeds 3]

Needs cca-zoo and lightning (pip install "cca-zoo[deep]"). Both read their latents by linear CCA
fitted on the training rows; what is compared is the sum of the correlations of the held-out rows.
"""

from __future__ import annotations

import argparse
import logging
import warnings

import numpy as np

from unpaired.baselines.deep_cca import DeepCCA

N_LATENT, HIDDEN, N_EPOCHS, BATCH = 3, 64, 40, 250
RATES = (2e-3, 5e-3, 1e-2)


def bent_views(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two views of three factors, each bent in its own way, in 12 and 10 columns."""
    rng = np.random.default_rng(seed)
    factors = rng.uniform(-1, 1, (n, 3))
    lift_x, lift_y = rng.standard_normal((6, 12)), rng.standard_normal((6, 10))
    x = np.c_[np.sin(3 * factors), factors**2] @ lift_x + 0.2 * rng.standard_normal((n, 12))
    y = np.c_[np.cos(3 * factors), np.abs(factors)] @ lift_y + 0.2 * rng.standard_normal((n, 10))
    return x / x.std(0), y / y.std(0)


def held_out_correlation(train, test) -> float:
    """Sum of held-out correlations after linear CCA fitted to the training latents."""
    from cca_zoo.linear import CCA

    pair = CCA(n_components=N_LATENT).fit(list(train)).transform(list(test))
    return float(sum(np.corrcoef(pair[0][:, k], pair[1][:, k])[0, 1] for k in range(N_LATENT)))


def ours(x, y, n_train: int, seed: int, rate: float) -> float:
    model = DeepCCA(
        n_latent=N_LATENT,
        hidden=(HIDDEN, HIDDEN),
        n_epochs=N_EPOCHS,
        batch_size=BATCH,
        learning_rate=rate,
        readout="cosine",  # the read-out is the same for both, below
        random_state=seed,
    ).fit(x[:n_train], y[:n_train], "aligned")
    latents = model._map(x, 0), model._map(y, 1)
    return held_out_correlation([z[:n_train] for z in latents], [z[n_train:] for z in latents])


def theirs(x, y, n_train: int, seed: int, rate: float) -> float:
    import lightning.pytorch as pl
    import torch
    from cca_zoo.deep import DCCA, MultiviewDataset
    from torch import nn
    from torch.utils.data import DataLoader

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.manual_seed(seed)
    views = [v.astype("float32") for v in (x, y)]
    encoders = [
        nn.Sequential(
            nn.Linear(v.shape[1], HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, N_LATENT),
        )
        for v in views
    ]
    data = MultiviewDataset([v[:n_train] for v in views])
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    model = DCCA(n_components=N_LATENT, encoders=encoders, learning_rate=rate)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pl.Trainer(
            max_epochs=N_EPOCHS,
            accelerator="cpu",
            logger=False,
            enable_progress_bar=False,
            enable_checkpointing=False,
            enable_model_summary=False,
        ).fit(model, loader)
    with torch.no_grad():
        latents = [z.numpy() for z in model([torch.as_tensor(v) for v in views])]
    return held_out_correlation([z[:n_train] for z in latents], [z[n_train:] for z in latents])


def tuned(method, x, y, n_train: int, seed: int) -> float:
    """The method at the rate that is best on the last fifth of the training rows."""
    n_fit = n_train * 4 // 5
    tried = {rate: method(x[:n_train], y[:n_train], n_fit, seed, rate) for rate in RATES}
    return method(x, y, n_train, seed, max(tried, key=tried.__getitem__))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    n_seeds = parser.parse_args().seeds
    found = []
    for seed in range(n_seeds):
        x, y = bent_views(2000, seed)
        row = [held_out_correlation([x[:1500], y[:1500]], [x[1500:], y[1500:]])]
        row += [tuned(method, x, y, 1500, seed) for method in (ours, theirs)]
        found.append(row)
        print(f"seed {seed}: linear {row[0]:.3f}, ours {row[1]:.3f}, cca-zoo {row[2]:.3f}")
    linear, own, other = np.mean(found, axis=0)
    print(f"mean of {n_seeds}: linear {linear:.3f}, ours {own:.3f}, cca-zoo {other:.3f}, of 3")


if __name__ == "__main__":
    main()
