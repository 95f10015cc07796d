"""Every kind of feature map through its arrays."""

import torch

from unpaired.views.features import fit_features
from unpaired.views.stored import KINDS, map_from_arrays, map_to_arrays
from unpaired.views.view import GEODESICS, LINEAR, fit_view

CPU = torch.device("cpu")


def test_every_kind_of_map_comes_back_from_its_arrays(rng):
    x, y = (torch.tensor(rng.standard_normal((n, d))) for n, d in ((80, 6), (70, 5)))
    linear, geodesic = fit_view(LINEAR, x, y, rng), fit_view(GEODESICS[0], x, y, rng)
    maps = [linear.map_x, geodesic.map_x]
    assert {found.kind for found in maps} == set(KINDS)
    unseen = torch.tensor(rng.standard_normal((11, 6)))
    for found in maps:
        again = map_from_arrays(map_to_arrays(found), CPU)
        assert type(again) is type(found)
        assert torch.equal(again(unseen), found(unseen))


def test_names_of_arrays_are_those_of_saved_files(rng):
    rows = torch.tensor(rng.standard_normal((30, 4)))
    arrays = map_to_arrays(fit_features(rows, rng, max_rank=3))
    preparation = {"roots", "shares", "by_row", "units", "divisor", "centre"}
    own = {"inverse_width", "basis", "offset", "variances"}
    names = {f"prepare.{name}" for name in preparation} | own
    assert set(arrays) == {f"principal.{name}" for name in names}
