"""Matching CCA: CCA and bipartite matching by turns, from seed pairs (Haghighi et al. 2008)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired._checks import check_choice, check_number
from unpaired.baselines.base import Found
from unpaired.baselines.cca import CCA
from unpaired.baselines.closed_form import PairedMaps, cca_fit, choose_ridges
from unpaired.baselines.inputs import pair_moments
from unpaired.baselines.rematch import best_pairs, partner_of, share_changed
from unpaired.naming.smooth_space import unit_rows
from unpaired.types import FloatArray, IntArray

RELATIONS = ("one-to-one", "many-to-one")


@dataclass(eq=False, repr=False, kw_only=True)
class MCCA(CCA):
    """CCA on the pairs believed so far, then a matching of all other rows, by turns.

    Each round believes a larger share of the matching, surest pairs first, and ends by believing
    all of it; known pairs stay. Ridges are chosen once, on the known pairs.

    Args:
        n_rounds: Rounds of CCA and matching; round r believes the share r / n_rounds.
        relation: "one-to-one" or "many-to-one".
        n_components: Dimensions of the embedding, at most.
        ridge_x: Ridge of x in units of its mean variance, or "auto".
        ridge_y: The same for y.
        power: Power of the correlations by which directions are scaled.
        n_inputs: Principal components of each view that are used, at most.
        random_state: Seed of the held-out pairs.

    References: haghighi2008.
    """

    n_rounds: int = 10
    relation: str = "one-to-one"

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.n_rounds, "n_rounds", 1, integer=True)
        check_choice(self.relation, "relation", RELATIONS)

    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        fit = cca_fit(self.n_components, self.power)
        ridges = choose_ridges(fit, x, y, known, self.ridge_x, self.ridge_y, rng)
        pairs, partner, changed = known, partner_of(known, len(x)), 0.0
        maps = fit(pair_moments(x, y, known), *ridges)
        for number in range(1, self.n_rounds + 1):
            embed_x, embed_y = unit_rows(x @ maps.map_x), unit_rows(y @ maps.map_y)
            new, scores = best_pairs(embed_x, embed_y, known, self.relation)
            if not len(new):
                break
            believed = new[: -(-len(new) * number // self.n_rounds)]
            pairs = np.concatenate([known, believed])
            maps = fit(pair_moments(x, y, pairs), *ridges)
            matched = partner_of(np.concatenate([known, new]), len(x))
            changed = share_changed(partner, matched)
            partner = matched
            step = {"step": float(number), "loss": -float(scores.mean()), "changed": changed}
            self.history_.append(step)
        objective = float(maps.correlations.sum())
        return maps, Found(partner, objective, converged=changed <= 0.01)
