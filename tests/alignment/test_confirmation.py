"""Partners are found again where they are right, also by structure that was not searched."""

import numpy as np
import torch

from unpaired.alignment.alternation import place_free
from unpaired.alignment.confirmation import confirmed_share, finer_structure, mutual
from unpaired.alignment.critics import CanonicalCritic
from unpaired.alignment.refinement import sides_of
from unpaired.plans.plan import make_pairs
from unpaired.spaces.space import Part
from unpaired.views.view import View

CPU = torch.device("cpu")


def rotation_of(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)


def copies(n, d, rng, noise=0.2):
    """Rows and a rotated noisy copy of them, row by row; and that rotation."""
    x, turn = rng.standard_normal((n, d)), rotation_of(d, rng)
    y = x @ turn + noise * rng.standard_normal((n, d))
    return *(torch.tensor(side).float() for side in (x, y)), turn


def as_view(x, y):
    """Rows that are their own coordinates."""
    return View(None, None, x, y)


def as_sides(x, y):
    return sides_of(as_view(x, y), make_pairs(None, len(x), len(y), CPU))


def as_part(rotation):
    return [Part(0, (torch.as_tensor(rotation), torch.eye(rotation.shape[1])))]


def test_mutual_partners_by_hand():
    scores = torch.tensor([[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 5.0, 0.0]])
    rows, partners = mutual(scores)
    assert rows.tolist() == [0, 2]
    assert partners.tolist() == [0, 1]


def test_components_that_were_not_searched_tell_right_partners_from_accidents(rng):
    x = torch.tensor(rng.standard_normal((400, 40)) * 0.97 ** np.arange(40)).float()
    turn = torch.block_diag(*(torch.tensor(rotation_of(20, rng)) for _ in range(2)))
    pairs = make_pairs(None, 400, 400, CPU)
    right = as_part(turn[:20, :20])
    assert finer_structure(as_view(x, x @ turn), pairs, right) > 10
    y = x @ turn
    y[:, 20:] = y[torch.as_tensor(rng.permutation(400)), 20:]  # no row has its own finer part
    assert abs(finer_structure(as_view(x, y), pairs, right)) < 4
    assert np.isnan(finer_structure(as_view(x, y).leading(20), pairs, right))


def test_partners_are_confirmed_where_they_exist_and_lost_where_they_are_accidents(rng):
    x, y, turn = copies(300, 40, rng)
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 300, 300, CPU))
    assert confirmed_share(critic, as_part(turn), rng) > 0.95
    other = torch.tensor(rng.standard_normal((300, 40))).float()
    strangers = CanonicalCritic([as_view(x, other)], make_pairs(None, 300, 300, CPU))
    accident = as_sides(x, other).climb(turn, 60, rng)  # what two strangers share by chance
    left, right = place_free(strangers, as_part(accident))
    assert len(mutual(left @ right.T)[0]) > 60  # many are mutual ...
    assert confirmed_share(strangers, as_part(accident), rng) < 0.75
