"""One view's part of the model: principal components, autoencoder, scaled latents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unpaired.nets.autoencoder import Autoencoder, AutoencoderConfig
from unpaired.published.config import PublishedConfig
from unpaired.published.objective import latent_scale

BLOCK_ROWS = 4096


@dataclass(frozen=True)
class InputMap:
    """Principal components of a view, all scaled alike to mean square 1."""

    centre: Tensor
    """(1, d)."""
    axes: Tensor
    """(d, p)."""

    def __call__(self, rows: Tensor) -> Tensor:
        """(n, d) -> (n, p)."""
        return (rows - self.centre) @ self.axes


def fit_input_map(rows: Tensor, n_components: int) -> InputMap:
    """The first principal components that vary; directions keep their relative size."""
    centre = rows.mean(0, keepdim=True)
    _, lengths, axes = torch.linalg.svd((rows - centre).double().cpu(), full_matrices=False)
    variances = lengths**2 / len(rows)
    kept = min(n_components, max(1, int((variances > 1e-10 * variances[0]).sum())))
    scale = variances[:kept].mean().clamp_min(1e-300).sqrt()
    return InputMap(centre, (axes[:kept].T / scale).to(rows.dtype).to(rows.device))


def make_network(n_inputs: int, config: PublishedConfig, seed: int) -> Autoencoder:
    """Encoder and decoder of one view; by default 3 + 3 layers."""
    return Autoencoder(AutoencoderConfig(n_inputs, config.n_latent, tuple(config.hidden)), seed)


@dataclass(frozen=True)
class TrainedView:
    """All that turns rows of a view into latents at mean squared distance 2."""

    inputs: InputMap
    net: Autoencoder
    centre: Tensor
    """(1, n_latent) of the training rows' latents."""
    scale: Tensor

    @torch.no_grad()
    def encode(self, rows: Tensor) -> Tensor:
        """Scaled latents, (n, d) -> (n, n_latent)."""
        parts = [self.net.encoder(self.inputs(block)) for block in torch.split(rows, BLOCK_ROWS)]
        return (torch.cat(parts) - self.centre) / self.scale

    def arrays(self) -> dict[str, np.ndarray]:
        """All that ``view_from_arrays`` needs."""
        shape = self.net.config
        found = {
            "input_centre": self.inputs.centre,
            "axes": self.inputs.axes,
            "centre": self.centre,
            "scale": self.scale,
            "sizes": torch.tensor([shape.n_inputs, *shape.hidden, shape.n_latent]),
        }
        found |= {f"net.{name}": tensor for name, tensor in self.net.state_dict().items()}
        return {name: tensor.detach().cpu().numpy() for name, tensor in found.items()}


def trained_view(inputs: InputMap, net: Autoencoder, rows: Tensor) -> TrainedView:
    """The view whose latents of ``rows`` (already principal components) get scale 2."""
    with torch.no_grad():
        centre, scale = latent_scale(net.encoder(rows))
    return TrainedView(inputs, net, centre, scale)


def view_from_arrays(arrays: dict[str, np.ndarray], device: torch.device) -> TrainedView:
    """The view that ``arrays`` were taken from."""
    tensors = {name: torch.as_tensor(array, device=device) for name, array in arrays.items()}
    sizes = [int(size) for size in arrays["sizes"]]
    net = Autoencoder(AutoencoderConfig(sizes[0], sizes[-1], tuple(sizes[1:-1])), seed=0)
    weights = {k.removeprefix("net."): t for k, t in tensors.items() if k.startswith("net.")}
    net.load_state_dict(weights)
    inputs = InputMap(tensors["input_centre"], tensors["axes"])
    return TrainedView(inputs, net.to(device), tensors["centre"], tensors["scale"])
