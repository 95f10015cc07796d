import pytest

from unpaired import registry
from unpaired.baselines.deep_cca import DeepCCA
from unpaired.bench.config import MethodSpec
from unpaired.bench.methods import (
    get_method,
    is_classifier,
    knows_relation,
    least_pairs,
    make_method,
)
from unpaired.errors import InputError


def by(name, **params):
    return MethodSpec(name, name, params)


def test_names_may_be_spelt_freely():
    for name in ("deep-cca", "DeepCCA", "deep_cca", "Deep CCA"):
        assert isinstance(make_method(by(name), 3), DeepCCA)
    assert make_method(by("deep-cca", n_latent=5), 3).n_latent == 5
    assert make_method(by("dmae", hidden=[8, 4]), 3).hidden == (8, 4)


def test_what_a_task_sets_gives_way_to_the_configuration():
    many = {"relation": "many-to-one"}
    assert make_method(by("mcca"), 0, **many).relation == "many-to-one"
    assert make_method(by("mcca", relation="one-to-one"), 0, **many).relation == "one-to-one"


def test_the_registry_is_asked(monkeypatch):
    lines = {"Deep CCA": ("builtins:dict", ""), "New": ("builtins:list", "")}
    monkeypatch.setattr(registry, "methods", registry.Table(lines))
    assert get_method("deep-cca") is dict
    assert get_method("new") is list
    assert get_method("match") is not None


def test_the_seed_is_given_to_those_who_take_one(place):
    assert make_method(by("dmae"), 7).random_state == 7
    assert make_method(by("dmae", random_state=1), 7).random_state == 1
    own = make_method(by("toy_method:Ridge", strength=2.0), 7)
    assert (own.strength, own.random_state) == (2.0, 7)
    assert least_pairs("toy_method:Ridge") == 2
    assert least_pairs("dmae") == 0


def test_classifiers_and_methods_that_know_the_relation(place):
    assert [is_classifier(n) for n in ("classifier", "dmae", "toy_method:Ridge")] == [True, 0, 0]
    assert [knows_relation(n) for n in ("dmae", "deep-mcca", "cca")] == [True, True, False]


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
    with pytest.raises(InputError, match=r"cannot be made with .*n_laten.*It takes"):
        make_method(by("dmae", n_laten=3), 0)
