"""Every constant of the published method, by the paper's names: value, meaning and origin."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from unpaired._checks import check_choice, check_number
from unpaired.errors import InputError

DEPENDENCES = ("smi", "ukta")
RELATIONS = ("one-to-one", "many-to-one")
READOUTS = ("density-ratio", "cosine", "linear-map")
PI_RIDGES = {"one-to-one": 0.1, "many-to-one": 0.01}
"""``pi_ridge`` where none is given."""
MAX_PLAN = 40_000_000
"""Entries of a relaxed matching, at most: with gradients it takes about 2 GiB."""


@dataclass(frozen=True)
class PublishedConfig:
    """All constants of a fit. "Paper" means the value is printed there; "ours" that it is silent.

    A constant that a regime does not use must not be given in it: ``resolve`` says so.
    """

    dependence: str = "smi"
    """D: "smi" or "ukta". Paper."""
    relation: str = "one-to-one"
    """"many-to-one" drops the column sums of Pi. Paper."""
    readout: str = "density-ratio"
    """What scores rows of x against rows of y. Ours: the paper does not say."""
    lam: float = 0.7
    """lambda, weight of the dependence against the reconstruction. Paper."""
    lam_pi: float = 1.0
    """lambda_Pi, weight of the squared errors of the sums of Pi. Paper."""
    sigma2_x: float = 2.5
    """sigma_x^2 of the Gaussian kernel on the latents of x, at mean squared distance 2. Paper."""
    sigma2_y: float = 0.5
    """sigma_y^2, the same for y. Paper."""
    reconstruction_weight: float = 1.0
    """Weight of both errors. Paper: 1; 0 gives its Deep-SMI and Deep-uKTA."""
    hidden: tuple[int, ...] = (256, 128)
    """Hidden layers of the encoder; with the latent layer three, as in the paper. Sizes: ours."""
    n_latent: int = 64
    """Latent dimensions. Ours."""
    n_components: int = 256
    """Principal components of each view that the networks see, at most. Ours."""
    ratio_ridge: float = 1e-4
    """Ridge of the density ratio in the Theta step and in the read-out. Ours."""
    pi_ridge: float = 0.1
    """Ridge of the density ratio in the Pi step; 0.01 for many-to-one (``PI_RIDGES``). Ours: a
    ratio fitted as tightly as in the Theta step fits any matching and nothing moves, and a
    one-to-one matching has more freedom than a labelling."""
    n_basis: int = 500
    """Basis pairs of a density ratio over all rows, at most. Ours: the paper takes all rows."""
    n_pretrain_epochs: int = 10
    """Epochs of each autoencoder alone. Paper: some. Number: ours."""
    n_rounds: int = 8
    """Rounds of Theta step and Pi step, at most. Ours."""
    n_epochs: int = 5
    """Epochs of the networks in a Theta step. Ours."""
    n_pi_steps: int = 100
    """Ascent steps of a Pi step, at most. Ours."""
    batch_size: int = 256
    """Pairs in a batch, of known and of matched ones each. Ours."""
    learning_rate: float = 1e-3
    """Adam's. Ours."""
    tol: float = 0.002
    """Stop when a round changes at most this share of the partners. Paper: nothing changes."""


NAMES = tuple(field.name for field in fields(PublishedConfig))
_WHOLE = {
    "n_latent": 1,
    "n_components": 1,
    "n_basis": 2,
    "n_pretrain_epochs": 0,
    "n_rounds": 1,
    "n_epochs": 1,
    "n_pi_steps": 1,
    "batch_size": 2,
}
_POSITIVE = ("lam_pi", "sigma2_x", "sigma2_y", "ratio_ridge", "pi_ridge", "learning_rate")
_CHOICES = {"dependence": DEPENDENCES, "relation": RELATIONS, "readout": READOUTS}


def resolve(given: dict[str, Any]) -> PublishedConfig:
    """The paper's constants with those that were given in their place, each checked.

    Raises:
        InputError: when a value breaks its rule, or could have no effect beside the others.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if name in _CHOICES:
            check_choice(value, name, _CHOICES[name])
        elif name == "hidden":
            if not isinstance(value, tuple | list):
                raise InputError(f"hidden must be a tuple of layer sizes: got {value!r}.")
            for size in value:
                check_number(size, "hidden", 1, integer=True)
        elif name in _WHOLE:
            check_number(value, name, _WHOLE[name], integer=True)
        else:
            check_number(value, name, 1e-12 if name in _POSITIVE else 0)
    config = replace(PublishedConfig(), **chosen)
    if "pi_ridge" not in chosen:
        config = replace(config, pi_ridge=PI_RIDGES[config.relation])
    if config.lam == 0 and config.reconstruction_weight == 0:
        raise InputError(
            "lam and reconstruction_weight must not both be 0: nothing is left to learn. "
            "Raise one of them."
        )
    smi = config.dependence == "smi"
    _refuse(chosen, smi, "ratio_ridge", 'dependence="ukta" fits no density ratio')
    _refuse(chosen, smi, "pi_ridge", 'dependence="ukta" fits no density ratio')
    decoder = config.reconstruction_weight > 0
    _refuse(
        chosen, decoder, "n_pretrain_epochs", "with reconstruction_weight=0 there is no decoder"
    )
    return config


def check_used(given: dict[str, Any], config: PublishedConfig, *, matches: bool) -> None:
    """Refuse constants of the Pi step in a fit that has none.

    Raises:
        InputError: when one was given although all rows that could be matched have known partners.
    """
    why = "all pairs are known, so there is no Pi step"
    for name in ("lam_pi", "tol", "n_pi_steps", "pi_ridge"):
        _refuse({k: v for k, v in given.items() if v is not None}, matches, name, why)
    uses_basis = matches or config.readout == "density-ratio"
    chosen = {k: v for k, v in given.items() if v is not None}
    why = f'all pairs are known and readout="{config.readout}" fits no density ratio'
    _refuse(chosen, uses_basis, "n_basis", why)
    smi_used = config.lam > 0 or config.readout == "density-ratio"
    why = f'with lam=0 and readout="{config.readout}" no density ratio is fitted with it'
    _refuse(chosen, smi_used, "ratio_ridge", why)
    kernels_used = matches or smi_used
    for name in ("sigma2_x", "sigma2_y"):
        why = f'with lam=0, all pairs known and readout="{config.readout}" there is no kernel'
        _refuse(chosen, kernels_used, name, why)


def _refuse(chosen: dict[str, Any], used: bool, name: str, why: str) -> None:
    if name in chosen and not used:
        raise InputError(f"{name}={chosen[name]!r} would have no effect: {why}. Leave it out.")
