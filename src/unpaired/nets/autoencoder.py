"""One autoencoder per view."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from unpaired.errors import InputError


@dataclass(frozen=True)
class AutoencoderConfig:
    """The shape of one autoencoder: three encoding and three decoding layers by default."""

    n_inputs: int
    n_latent: int
    hidden: tuple[int, ...] = (256, 128)


def _stack(sizes: tuple[int, ...]) -> nn.Sequential:
    """Fully connected layers with ReLU between them and none at the end."""
    layers: list[nn.Module] = []
    for n_in, n_out in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Autoencoder(nn.Module):
    """Encoder g: (n, n_inputs) -> (n, n_latent), and decoder f back again."""

    def __init__(self, config: AutoencoderConfig, seed: int) -> None:
        """Build both stacks with weights drawn from ``seed``, leaving the global state alone."""
        super().__init__()
        self.config = config
        sizes = (config.n_inputs, *config.hidden, config.n_latent)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = _stack(sizes)
            self.decoder = _stack(sizes[::-1])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the latents z (n, n_latent) and the reconstruction x_hat (n, n_inputs)."""
        latents = self.encoder(x)
        return latents, self.decoder(latents)


def pick_device(name: str = "auto") -> torch.device:
    """The device called ``name``; "auto" takes CUDA, then MPS, then the CPU.

    Raises:
        InputError: when torch knows no such device, or this machine has none.
    """
    if name != "auto":
        try:
            device = torch.device(name)
        except (RuntimeError, TypeError) as error:
            raise InputError(
                f'device must be "auto" or a torch device: got {name!r}. Write device="cpu", or '
                '"cuda:0" for the first graphics card.'
            ) from error
        try:
            torch.zeros(1, device=device).item()  # fails where there is no such device
        except (RuntimeError, AssertionError) as error:
            n_cuda = torch.cuda.device_count()
            raise InputError(
                f"device must be one that this machine can compute on: {name!r} is not, and there "
                f"{'is 1 CUDA device' if n_cuda == 1 else f'are {n_cuda} CUDA devices'}. "
                'Write device="auto" or "cpu".'
            ) from error
        return device
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
