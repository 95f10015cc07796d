import os
import sys

import numpy as np
import pytest
import torch


@pytest.fixture
def seed() -> int:
    """Seed of a test; varied through UNPAIRED_TEST_SEED so that none leans on one lucky draw."""
    return int(os.environ.get("UNPAIRED_TEST_SEED", "0"))


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """Generator of a test's random inputs."""
    return np.random.default_rng(seed)


@pytest.fixture
def grams(rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gram matrices of two small views in float64, and a matching that is not its own inverse."""
    n_rows = 7
    x, y = rng.normal(size=(n_rows, 3)), rng.normal(size=(n_rows, 4))
    gram_x = np.array([[np.exp(-((a - b) ** 2).sum() / 8) for b in x] for a in x])
    gram_y = np.array([[np.exp(-((a - b) ** 2).sum() / 18) for b in y] for a in y])
    perm = rng.permutation(n_rows)
    while (perm[perm] == np.arange(n_rows)).all():
        perm = rng.permutation(n_rows)
    return torch.tensor(gram_x), torch.tensor(gram_y), torch.tensor(perm)


@pytest.fixture
def typed(monkeypatch, capsys):
    """Runs the command as typed, in this process; returns exit code, stdout and stderr."""
    from unpaired.cli import main

    def typed(*arguments):
        monkeypatch.setattr(sys, "argv", ["unpaired", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return typed
