"""The constants of a fit, by name: the default, and those of the paper."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from unpaired._checks import check_choice, check_number, check_sizes
from unpaired.training.closed_form import ClosedFormConfig
from unpaired.training.learner import LearnerConfig
from unpaired.training.loop import LoopConfig
from unpaired.training.objective import Bandwidth, ObjectiveConfig
from unpaired.training.published import PublishedConfig
from unpaired.training.towers import TowerConfig


@dataclass(frozen=True)
class Settings:
    """All constants of a fit; ``DMAE`` takes each of them by name, None meaning the preset's."""

    dependence_weight: float = 1.0
    reconstruction_weight: float = 0.0
    n_latent: int = 600
    hidden: tuple[int, ...] = (256,)
    n_components: int = 600
    bandwidth_x: Bandwidth = "median"
    bandwidth_y: Bandwidth = "median"
    ratio_ridge: float = 1e-2
    ridge: float = 2.0
    soft_weight: float = 0.4
    sum_penalty: float = 1.0
    n_pretrain_epochs: int = 0
    n_rounds: int = 9
    n_epochs: int = 6
    batch_size: int = 1000
    learning_rate: float = 2e-3
    tol: float = 0.002


PRESETS: dict[str, Settings] = {
    "default": Settings(),
    "paper": Settings(
        dependence_weight=0.7,
        reconstruction_weight=1.0,
        n_latent=64,
        hidden=(256, 128),
        n_components=256,
        bandwidth_x=2.5**0.5,
        bandwidth_y=0.5**0.5,
        n_pretrain_epochs=10,
        n_rounds=8,
        n_epochs=3,
        batch_size=256,
        learning_rate=1e-3,
    ),
}
NAMES = tuple(field.name for field in fields(Settings))
WHOLE = ("n_latent", "n_components", "n_epochs", "n_rounds", "n_pretrain_epochs", "batch_size")
LEAST = {
    "n_latent": 1,
    "n_components": 1,
    "batch_size": 2,
    "ratio_ridge": 1e-12,
    "ridge": 1e-12,
    "learning_rate": 1e-12,
    "bandwidth_x": 1e-12,
    "bandwidth_y": 1e-12,
}


def resolve(preset: str, given: dict[str, Any]) -> Settings:
    """The preset's settings with those that were given in their place.

    Raises:
        InputError: when the preset is unknown or a value breaks its rule.
    """
    check_choice(preset, "preset", PRESETS)
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if name == "hidden":
            check_sizes(value, "hidden")
        elif not (name.startswith("bandwidth") and value == "median"):
            check_number(value, name, LEAST.get(name, 0), integer=name in WHOLE)
    return replace(PRESETS[preset], **chosen)


def learner_config(dependence: str, settings: Settings) -> LearnerConfig:
    """The default learner's constants."""
    return LearnerConfig(
        ClosedFormConfig(
            n_components=settings.n_latent,
            ridge=settings.ridge,
            max_rank=settings.n_components,
            n_rounds=settings.n_rounds,
            soft_weight=settings.soft_weight,
        ),
        TowerConfig(
            hidden=settings.hidden[0] if settings.hidden else 0,
            n_epochs=settings.n_epochs,
            batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
        ),
        objective_config(dependence, settings),
    )


def objective_config(dependence: str, settings: Settings) -> ObjectiveConfig:
    """What the networks minimise."""
    return ObjectiveConfig(
        dependence,
        settings.dependence_weight,
        settings.bandwidth_x,
        settings.bandwidth_y,
        settings.ratio_ridge,
        settings.reconstruction_weight,
    )


def published_config(dependence: str, relation: str, settings: Settings) -> PublishedConfig:
    """The published method's constants."""
    return PublishedConfig(
        objective_config(dependence, settings),
        n_latent=settings.n_latent,
        hidden=tuple(settings.hidden),
        n_components=settings.n_components,
        sum_penalty=settings.sum_penalty,
        many_to_one=relation == "many-to-one",
        loop=LoopConfig(
            settings.n_pretrain_epochs,
            settings.n_rounds,
            settings.n_epochs,
            settings.batch_size,
            settings.learning_rate,
            settings.tol,
        ),
    )
