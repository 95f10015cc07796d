import pytest

from unpaired import registry
from unpaired.bench.methods import (
    get_method,
    least_pairs,
    make_classifier,
    make_method,
)
from unpaired.errors import InputError
from unpaired.models.classifier import UnsupervisedClassifier
from unpaired.models.dmae import DMAE


def test_names_may_be_spelt_freely():
    for name in ("dmae-smi", "DMAE-SMI", "dmae_smi", "DMAE SMI"):
        assert make_method(name, {}, 3).get_params()["dependence"] == "smi"
    assert make_method("dmae-ukta", {"n_latent": 5}, 3).get_params()["n_latent"] == 5
    assert make_method("dmae", {"hidden": [8, 4]}, 3).hidden == (8, 4)


def test_the_registry_is_asked(monkeypatch):
    lines = {"DMAE-SMI": ("builtins:dict", ""), "New": ("builtins:list", "")}
    monkeypatch.setattr(registry, "methods", registry.Table(lines))
    assert get_method("dmae-smi") is dict
    assert get_method("new") is list
    assert get_method("match") is not None


def test_the_seed_is_given_to_those_who_take_one(place):
    assert make_method("dmae", {}, 7).random_state == 7
    assert make_method("dmae", {"random_state": 1}, 7).random_state == 1
    own = make_method("toy_method:Ridge", {"strength": 2.0}, 7)
    assert (own.strength, own.random_state) == (2.0, 7)
    assert least_pairs("toy_method:Ridge") == 2
    assert least_pairs("dmae-smi") == 0


def test_dmae_names_images_through_the_classifier(place):
    made = make_classifier("DMAE SMI", {"n_rounds": 1}, 0)
    assert isinstance(made, UnsupervisedClassifier)
    assert made.n_rounds == 1
    assert make_classifier("dmae-ukta", {}, 0) is None
    assert make_classifier("toy_method:Ridge", {}, 0) is None
    assert isinstance(make_method("dmae", {}, 0), DMAE)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dmea", 'Did you mean "dmae"'),
        ("no_such_module:Method", "Put the file into the folder"),
        ("toy_method:Rigde", 'has no "Rigde"'),
    ],
)
def test_unknown_methods_are_told(place, name, message):
    with pytest.raises(InputError, match=message):
        get_method(name)


def test_unknown_parameters_are_told():
    with pytest.raises(InputError, match=r"cannot be made with .*n_laten.*It takes dependence"):
        make_method("dmae", {"n_laten": 3}, 0)
