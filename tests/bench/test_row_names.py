"""A row of a table holds what its name says: labels against the estimators built for them."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from unpaired.bench.cells import read_cells
from unpaired.bench.config import read_config
from unpaired.bench.methods import PUBLISHED, get_method, is_classifier, make_method, method_home
from unpaired.bench.namers import make_namer
from unpaired.bench.tables import row_value

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "experiments").glob("*.toml"))
TABLES = sorted((ROOT / "benchmarks" / "results").glob("*/cells.jsonl"))
# label -> the class it must be, written down by hand.
CLASSES = {
    "ASIF": "ASIF",
    "Bimodal AE": "BimodalAutoencoder",
    "CCA": "CCA",
    "Convex kernelized sorting": "ConvexKernelizedSorting",
    "Corr-AE": "CorrespondenceAutoencoder",
    "CorrNet": "CorrNet",
    "DMAE": "DMAE",
    "DeViSE": "DeViSE",
    "Deep-MCCA": "DeepMCCA",
    "DeepCCA": "DeepCCA",
    "Gromov-Wasserstein": "GromovWasserstein",
    "HSIC-CCA": "HsicCCA",
    "HSIC-DeepCCA": "HsicDeepCCA",
    "InfoNCE": "InfoNCE",
    "KCCA": "KernelCCA",
    "Kernelized sorting": "KernelizedSorting",
    "LSOM": "LSOM",
    "MCCA": "MCCA",
    "Procrustes": "Procrustes",
    "Published DMAE-SMI": "PublishedDMAE",
    "Published DMAE-uKTA": "PublishedDMAE",
    "Published Deep-SMI": "PublishedDMAE",
    "Published Deep-uKTA": "PublishedDMAE",
    "ReViSE-b": "ReViSE",
    "Ridge": "RidgeMap",
    "Two-way nets": "TwoWayNets",
    "UnsupervisedClassifier": "UnsupervisedClassifier",
    "Wasserstein-Procrustes": "WassersteinProcrustes",
    "match": "GeometricMatch",
}
SAYS = {
    "Published DMAE-SMI": {"dependence": "smi"},
    "Published DMAE-uKTA": {"dependence": "ukta"},
    "Published Deep-SMI": {"dependence": "smi", "reconstruction_weight": 0.0},
    "Published Deep-uKTA": {"dependence": "ukta", "reconstruction_weight": 0.0},
}


STARTS = {"": None, "start of the engine": "engine", "random start": "random"}


def base_name(label):
    """A label without what follows a comma, such as how it was started."""
    return label.partition(", ")[0]


def start_name(label):
    """What a label says of the matching that a method begins from."""
    return STARTS[label.partition(", ")[2]]


def begins(method):
    """What a method is told to begin from, by the key of a cell."""
    return method.get("fit", {}).get("start", method["params"].get("seeds"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_row_is_built_as_its_name_says(path):
    config = read_config(path)
    labels = [method.label for method in config.methods]
    assert len(set(labels)) == len(labels)
    for method in config.methods:
        label = base_name(method.label)
        assert method_home(method.name).partition(":")[2] == CLASSES[label]
        assert PUBLISHED.get(method.name, {}) == SAYS.get(label, {})
        told = {"params": method.params, "fit": method.fit}
        assert begins(told) == start_name(method.label)
        if config.task == "ucl" and "zero-shot" not in config.settings:
            made = make_namer(method, 0).model
            many_to_one = getattr(made, "relation", None) == "many-to-one"
            assert many_to_one or is_classifier(method.name), "one relation for all rows"
        else:
            made = make_method(method, 0)
        assert type(made).__name__ == CLASSES[label]
        for name, value in SAYS.get(label, {}).items():
            assert getattr(made, name) == value


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_every_committed_cell_is_labelled_as_what_it_is(path):
    records, damaged = read_cells(path)
    assert records
    assert damaged == []
    for record in records.values():
        label, name = base_name(record["label"]), record["key"]["method"]["name"]
        assert method_home(name).partition(":")[2] == CLASSES[label]
        assert record["estimator"] == CLASSES[label]
        assert PUBLISHED.get(name, {}) == SAYS.get(label, {})
        assert begins(record["key"]["method"]) == start_name(record["label"])


def test_no_row_without_pairs_begins_from_the_engine_unsaid():
    for path in CONFIGS:
        for cell in read_config(path).cells():
            rival = "seeds" in inspect.signature(get_method(cell.method.name)).parameters
            if rival and cell.setting != "sup" and row_value(cell.row) == 0:
                assert start_name(cell.method.label) in ("engine", "random"), (path.stem, cell.row)


def twins():
    """Labels and methods that some configuration calls the same by construction."""
    found = {}
    for path in CONFIGS:
        by_label = {method.label: method for method in read_config(path).methods}
        for method in by_label.values():
            for setting, twin in method.same.items():
                found[setting, method.label, twin] = method, by_label[twin]
    return found


@pytest.mark.parametrize("key", twins())
def test_rows_that_are_called_the_same_are_the_same(key, seed):
    setting, _, _ = key
    assert setting == "sup"
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((60, 4))
    x = factors @ rng.standard_normal((4, 9)) + 0.3 * rng.standard_normal((60, 9))
    owner = np.repeat(np.arange(60), 2)
    y = factors[owner] @ rng.standard_normal((4, 8)) + 0.3 * rng.standard_normal((120, 8))
    pairs = np.column_stack([owner, np.arange(120)])
    one, other = (
        make_method(method, 3).fit(x, y, pairs=pairs).score_matrix(x, y) for method in twins()[key]
    )
    np.testing.assert_array_equal(one, other)
