import numpy as np
import pytest

from unpaired._random import derive_rng, derive_seed, resolve_seed
from unpaired.errors import InputError


@pytest.mark.parametrize("value", [0, 7, 2**70, np.int64(7), np.uint8(7)])
def test_an_integer_is_its_own_seed(value):
    assert resolve_seed(value) == int(value)
    assert type(resolve_seed(value)) is int


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_a_seed_and_moves_on(make, seed):
    first, again = make(seed), make(seed)
    seeds = [resolve_seed(first) for _ in range(5)]
    assert seeds == [resolve_seed(again) for _ in range(5)]
    assert len(set(seeds)) == 5
    assert all(0 <= s < 2**32 for s in seeds)
    assert max(seeds) >= 2**16  # the whole range is used


def test_no_seed_draws_a_new_one_each_time():
    assert len({resolve_seed(None) for _ in range(5)}) == 5


@pytest.mark.parametrize("value", [-1, 1.0, "0", [1], np.nan])
def test_wrong_seed(value):
    with pytest.raises(InputError) as error:
        resolve_seed(value)
    assert str(error.value) == (
        "random_state must be None, a non-negative integer or a NumPy generator: "
        f"got {value!r}. Pass an integer such as 0 for repeatable results."
    )


def test_children_depend_on_seed_and_name_only(seed):
    def draws(s, name):
        return derive_rng(s, name).random(4).tolist()

    first = draws(seed, "start")
    draws(seed, "other")
    assert draws(seed, "start") == first
    assert draws(seed, "other") != first
    assert draws(seed + 1, "start") != first
    assert draws(2**40 + seed, "start") != first


def test_derived_seeds(seed):
    assert derive_seed(seed, "a") == derive_seed(seed, "a")
    seeds = {derive_seed(s, name) for s in (seed, seed + 1) for name in ("a", "b", "start")}
    assert len(seeds) == 6
    assert all(0 <= s < 2**31 for s in seeds)
