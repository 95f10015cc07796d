"""One tower per view: a linear map plus a network's correction, and a decoder where one is used."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class TowerConfig:
    """The shape of one tower; no ``hidden`` layer leaves the linear map alone."""

    n_inputs: int
    n_latent: int
    hidden: tuple[int, ...] = (512,)
    n_outputs: int = 0
    """Width of the decoder's output; 0 for no decoder."""


def _layers(sizes: tuple[int, ...]) -> nn.Sequential:
    """Fully connected layers with ReLU between them and none at the end."""
    layers: list[nn.Module] = []
    for n_in, n_out in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Tower(nn.Module):
    """Encoder x -> x W + b + correction(x), and a decoder latents -> outputs.

    The correction's last layer starts at zero, so that a tower begins as its linear map and a good
    linear start is never lost to random weights.
    """

    def __init__(self, config: TowerConfig, seed: int, start: Tensor | None = None) -> None:
        """Draw weights from ``seed``, leaving the global state alone; ``start`` is W (p, k)."""
        super().__init__()
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.linear = nn.Linear(config.n_inputs, config.n_latent)
            sizes = (config.n_inputs, *config.hidden, config.n_latent)
            self.correction = _layers(sizes) if config.hidden else None
            out = (config.n_latent, *config.hidden[::-1], config.n_outputs)
            self.decoder = _layers(out) if config.n_outputs else None
        if start is not None:
            with torch.no_grad():
                self.linear.weight.copy_(start.T)
                self.linear.bias.zero_()
                if self.correction is not None:
                    for parameter in self.correction[-1].parameters():
                        parameter.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Return the latents (n, n_latent) of rows (n, n_inputs)."""
        latents: Tensor = self.linear(x)
        return latents if self.correction is None else latents + self.correction(x)

    def decode(self, latents: Tensor) -> Tensor:
        """Return the decoder's outputs (n, n_outputs)."""
        assert self.decoder is not None
        outputs: Tensor = self.decoder(latents)
        return outputs
