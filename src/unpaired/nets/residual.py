"""A linear map and a small network beside it."""

from __future__ import annotations

from torch import Tensor, nn


class ResidualTower(nn.Module):
    """Latents z = x @ start + network(x), and a decoder back to x when one is asked for."""

    def __init__(self, start: Tensor, hidden: int, *, decodes: bool = False) -> None:
        """Build around the map ``start`` (n_inputs, n_latent); the network adds nothing at first.

        Weights are drawn from torch's global state: seed it outside.
        """
        super().__init__()
        n_inputs, n_latent = start.shape
        self.linear = nn.Parameter(start.detach().clone().contiguous())
        self.residual: nn.Sequential | None = None
        if hidden:
            last = nn.Linear(hidden, n_latent, bias=False)
            nn.init.zeros_(last.weight)
            self.residual = nn.Sequential(nn.Linear(n_inputs, hidden), nn.ReLU(), last)
        self.decoder = nn.Linear(n_latent, n_inputs) if decodes else None

    def forward(self, rows: Tensor) -> Tensor:
        """Latents (n, n_latent) of whitened rows (n, n_inputs)."""
        latents = rows @ self.linear
        if self.residual is not None:
            latents = latents + self.residual(rows)
        return latents
