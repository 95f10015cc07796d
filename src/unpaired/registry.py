"""Methods, models, solvers, measures and data by name, loaded when first asked for; one line each.

Each line says where the thing lives and, in a few words, what it is; listing names imports
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any


def find(home: str) -> Any:
    """The object at ``home``, written "package.module:name"."""
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


class Table(Mapping[str, Any]):
    """Names to callables; ``about`` holds what each is, in a few words."""

    def __init__(self, lines: dict[str, tuple[str, str]]) -> None:
        """Keep ``lines``: name -> (home, what it is)."""
        self.homes = {name: home for name, (home, _) in lines.items()}
        self.about = {name: text for name, (_, text) in lines.items()}

    def __getitem__(self, name: str) -> Any:
        return find(self.homes[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


datasets = Table(
    {
        "cifar10-sample": (
            "unpaired.datasets.sample:load_sample",
            "2,000 CIFAR-10 images and 10 class vectors, inside the package",
        ),
    }
)
measures = Table(
    {
        "ukta": ("unpaired.math.dependence:ukta", "unnormalised kernel target alignment"),
        "hsic": ("unpaired.math.dependence:hsic", "Hilbert-Schmidt independence criterion"),
        "cka": ("unpaired.math.dependence:cka", "centred kernel alignment"),
        "smi": ("unpaired.math.dependence:smi", "squared-loss mutual information"),
    }
)
_M = "unpaired.solvers"
solvers = Table(
    {
        "annealed-sinkhorn": (
            f"{_M}.frank_wolfe:annealed_sinkhorn",
            "entropic plans, cooled step by step",
        ),
        "convex-sorting": (f"{_M}.convex_sorting:convex_sorting", "convex relaxation, projected"),
        "convex-sorting-penalised": (
            f"{_M}.convex_sorting:penalised_convex_sorting",
            "convex relaxation with a penalty on sums",
        ),
        "frank-wolfe": (
            f"{_M}.frank_wolfe:frank_wolfe",
            "indefinite relaxation, line search",
        ),
        "kernelized-sorting": (
            f"{_M}.kernelized_sorting:kernelized_sorting",
            "repeated linear assignment",
        ),
        "lsom": (f"{_M}.lsom:lsom", "SMI, density ratio and matching by turns"),
        "lsom-penalised": (f"{_M}.lsom:penalised_lsom", "SMI by gradient ascent with a penalty"),
        "procrustes-hungarian": (
            f"{_M}.kernelized_sorting:procrustes_hungarian",
            "rotation and assignment by turns",
        ),
        "semi-relaxed": (f"{_M}.frank_wolfe:semi_relaxed", "many rows of x to one of y"),
    }
)
models = Table(
    {
        "DMAE": ("unpaired.models.dmae:DMAE", "closed forms, soft matching and networks, our way"),
        "PublishedDMAE": (
            "unpaired.models.published_dmae:PublishedDMAE",
            "deep matching autoencoders as published",
        ),
        "UnsupervisedClassifier": (
            "unpaired.models.classifier:UnsupervisedClassifier",
            "names for images from class vectors",
        ),
    }
)
_B = "unpaired.baselines"
methods = Table(
    {
        "cca": (f"{_B}.cca:CCA", "all pairs: regularised linear CCA"),
        "kcca": (f"{_B}.kcca:KernelCCA", "all pairs: Gaussian kernel CCA"),
        "hsic-cca": (f"{_B}.hsic_cca:HsicCCA", "all pairs: linear maps by HSIC"),
        "deep-cca": (f"{_B}.deep_cca:DeepCCA", "all pairs: networks by total correlation"),
        "hsic-deep-cca": (f"{_B}.hsic_cca:HsicDeepCCA", "all pairs: networks by HSIC"),
        "two-way": (f"{_B}.two_way:TwoWayNets", "all pairs: ranking across and within views"),
        "revise-b": (f"{_B}.revise:ReViSE", "all pairs: autoencoders, prediction of pairs, MMD"),
        "devise": (f"{_B}.devise:DeViSE", "all pairs: hinge rank loss into the space of y"),
        "corrnet": (f"{_B}.corrnet:CorrNet", "all pairs: joint code, correlated halves"),
        "correspondence-ae": (
            f"{_B}.correspondence:CorrespondenceAutoencoder",
            "all pairs: autoencoders with near codes",
        ),
        "bimodal-ae": (f"{_B}.bimodal:BimodalAutoencoder", "all pairs: one code, a view left out"),
        "infonce": (f"{_B}.infonce:InfoNCE", "all pairs: two towers, contrastive"),
        "procrustes": (f"{_B}.procrustes:Procrustes", "all pairs: orthogonal map"),
        "ridge": (f"{_B}.ridge:RidgeMap", "all pairs: ridge regression into the space of y"),
        "asif": (f"{_B}.asif:ASIF", "all pairs: relative representations"),
        "mcca": (f"{_B}.mcca:MCCA", "no pairs: CCA and matching by turns"),
        "deep-mcca": (f"{_B}.deep_mcca:DeepMCCA", "no pairs: deep CCA and matching by turns"),
        "ks": (f"{_B}.kernelized_sorting:KernelizedSorting", "no pairs: kernelized sorting"),
        "convex-ks": (
            f"{_B}.convex_sorting:ConvexKernelizedSorting",
            "no pairs: convex kernelized sorting",
        ),
        "lsom": (f"{_B}.lsom:LSOM", "no pairs: least-squares object matching"),
        "gromov-wasserstein": (
            f"{_B}.gromov:GromovWasserstein",
            "no pairs: agreeing distances, through POT",
        ),
        "wasserstein-procrustes": (
            f"{_B}.wasserstein_procrustes:WassersteinProcrustes",
            "no pairs: clusters by QAP, then rotation and assignment",
        ),
    }
)
TABLES = {"methods": methods, "solvers": solvers, "measures": measures, "datasets": datasets}


def saved_homes() -> list[str]:
    """Homes of all that can be saved and loaded."""
    others = ["unpaired.aligned:Alignment", "unpaired.spaces.translation:Translation"]
    return [*models.homes.values(), *methods.homes.values(), *others]
