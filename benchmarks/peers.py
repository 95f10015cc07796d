"""Other packages behind one face: (x, y, seed) -> partner of each row of x."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment, quadratic_assignment
from scipy.spatial.distance import pdist, squareform

from unpaired.registry import solvers


def centred_gaussian_gram(rows):
    """Doubly centred Gaussian Gram matrix at the median bandwidth."""
    distances = squareform(pdist(rows, "sqeuclidean"))
    gram = np.exp(-distances / (2.0 * np.median(distances)))
    return gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()


def gaussian_gram(rows):
    """Gaussian Gram matrix at half the median squared distance."""
    distances = squareform(pdist(rows, "sqeuclidean"))
    return np.exp(-distances / np.median(distances))


def _structure(rows):
    """What POT compares: Gaussian similarities, its best of four tried (also |.|, |.|^2, <.,.>)."""
    distances = squareform(pdist(rows, "sqeuclidean"))
    return np.exp(-distances / (2.0 * np.median(distances)))


def _round(plan):
    partner = np.full(plan.shape[0], -1)
    rows, columns = linear_sum_assignment(-np.asarray(plan))
    partner[rows] = columns
    return partner


def pot_gw(x, y, seed):
    """POT's Gromov-Wasserstein from the uniform plan."""
    import ot

    return _round(ot.gromov.gromov_wasserstein(_structure(x), _structure(y)))


def pot_entropic_gw(x, y, seed):
    """POT's entropic Gromov-Wasserstein."""
    import ot

    return _round(
        ot.gromov.entropic_gromov_wasserstein(
            _structure(x), _structure(y), epsilon=5e-4, solver="PPA", max_iter=100
        )
    )


def pot_semirelaxed_gw(x, y, seed):
    """POT's semi-relaxed Gromov-Wasserstein; many-to-one, read as it is."""
    import ot

    plan = ot.gromov.semirelaxed_gromov_wasserstein(_structure(x), _structure(y))
    return np.asarray(plan).argmax(1)


def pot_lowrank_gw(x, y, seed):
    """POT's low-rank Gromov-Wasserstein; the plan is rounded through its factors."""
    import ot

    q, r, g = ot.gromov.lowrank_gromov_wasserstein_samples(
        x, y, rank=20, seed_init=seed, warn=False
    )
    return _round((q / g) @ r.T)


def scipy_faq(x, y, seed):
    """SciPy's FAQ from the uniform plan on the centred Gram matrices."""
    found = quadratic_assignment(
        centred_gaussian_gram(x), centred_gaussian_gram(y), options={"maximize": True}
    )
    return found.col_ind


def torchgw_sampled(x, y, seed):
    """Sampled Gromov-Wasserstein of torchgw with its defaults."""
    import torch
    import torchgw

    torch.manual_seed(seed)
    plan = torchgw.sampled_gw(torch.as_tensor(x).float(), torch.as_tensor(y).float())
    return _round(plan.numpy() if hasattr(plan, "numpy") else np.asarray(plan))


def solver(name):
    """One of our own solvers from its own default start."""

    def run(x, y, seed):
        gram = gaussian_gram if "lsom" in name or "convex" in name else centred_gaussian_gram
        return solvers[name](gram(x), gram(y)).partner

    run.__doc__ = f"Our solver {name} from its own start."
    return run


PEERS = {
    "POT GW": pot_gw,
    "POT entropic GW": pot_entropic_gw,
    "POT semi-relaxed GW": pot_semirelaxed_gw,
    "POT low-rank GW": pot_lowrank_gw,
    "SciPy FAQ": scipy_faq,
    "torchgw": torchgw_sampled,
}
SOLVERS = {f"solver: {name}": solver(name) for name in sorted(solvers)}


def quiet(function, *arguments):
    """Call a peer without its warnings; it is judged by what it returns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments)
