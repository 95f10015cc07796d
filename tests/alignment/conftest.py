import numpy as np
import pytest


@pytest.fixture
def copies():
    """Makes rows, a rotated noisy copy of them in another order, and the partner of each row."""

    def copies(n, d, rng, noise=0.1):
        x = rng.standard_normal((n, d))
        order = rng.permutation(n)
        y = x @ np.linalg.qr(rng.standard_normal((d, d)))[0] + noise * rng.standard_normal((n, d))
        return x, y[order], np.argsort(order)

    return copies
