"""A linear map and a small network beside it."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn


class ResidualTower(nn.Module):
    """Latents z = x @ start + network(x): depth begins where a closed form ends."""

    def __init__(self, start: Tensor, hidden: tuple[int, ...]) -> None:
        """Build around the map ``start`` (n_inputs, n_latent); the network adds nothing at first.

        ``hidden`` are the sizes of the network's layers, none for the linear map alone. Weights are
        drawn from torch's global state: seed it outside.
        """
        super().__init__()
        n_inputs, n_latent = start.shape
        self.linear = nn.Parameter(start.detach().clone().contiguous())
        self.residual: nn.Sequential | None = None
        if hidden:
            layers: list[nn.Module] = []
            for n_in, n_out in pairwise((n_inputs, *hidden)):
                layers += [nn.Linear(n_in, n_out), nn.ReLU()]
            last = nn.Linear(hidden[-1], n_latent, bias=False)
            nn.init.zeros_(last.weight)
            self.residual = nn.Sequential(*layers, last)

    def forward(self, rows: Tensor) -> Tensor:
        """Latents (n, n_latent) of whitened rows (n, n_inputs)."""
        latents = rows @ self.linear
        return latents if self.residual is None else latents + self.residual(rows)
