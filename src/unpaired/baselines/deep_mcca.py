"""Deep matching CCA: deep CCA and bipartite matching by turns, from seed pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired._checks import check_choice, check_number
from unpaired.baselines.base import Found
from unpaired.baselines.deep_cca import DeepCCA
from unpaired.baselines.mcca import RELATIONS
from unpaired.baselines.rematch import best_pairs, partner_of, share_changed
from unpaired.naming.smooth_space import unit_rows
from unpaired.nets.autoencoder import pick_device
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class DeepMCCA(DeepCCA):
    """MCCA with deep CCA in the place of CCA; the towers go on from round to round.

    Args:
        n_rounds: Rounds of training and matching; round r believes the share r / n_rounds.
        n_epochs_per_round: Epochs after each matching.
        relation: "one-to-one" or "many-to-one".
        n_latent: See DeepCCA, as all that follow.

    References: haghighi2008, andrew2013, mukherjee2017.
    """

    n_rounds: int = 4
    n_epochs_per_round: int = 4
    relation: str = "one-to-one"

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("n_rounds", "n_epochs_per_round"):
            check_number(getattr(self, name), name, 1, integer=True)
        check_choice(self.relation, "relation", RELATIONS)

    def _fit(self, x: FloatArray, y: FloatArray, known: IntArray) -> Found | None:
        self._device = pick_device(self.device)
        inputs = self._prepare(x, y, known)
        self._train(inputs, known)
        self._finish(inputs, known)
        partner, changed = partner_of(known, len(x)), 0.0
        for number in range(1, self.n_rounds + 1):
            embed_x, embed_y = unit_rows(self._map(x, 0)), unit_rows(self._map(y, 1))
            new, _ = best_pairs(embed_x, embed_y, known, self.relation)
            if not len(new):
                break
            believed = new[: -(-len(new) * number // self.n_rounds)]
            pairs = np.concatenate([known, believed])
            self._train(inputs, pairs, self.n_epochs_per_round)
            self._finish(inputs, pairs)
            matched = partner_of(np.concatenate([known, new]), len(x))
            changed = share_changed(partner, matched)
            partner = matched
            self.history_[-1]["changed"] = changed
        return Found(partner, -self.history_[-1]["loss"], converged=changed <= 0.01)
